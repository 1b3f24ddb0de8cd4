//! Records that are one or two relations away from the entity.

use std::collections::{BTreeMap, BTreeSet};

use wayleave_plan::Record;
use wayleave_plan::expand::RelatedRecords;
use wayleave_plan::neighbours::{Direction, Edge, NeighbourPlan};
use wayleave_plan::request::{MAX_EXPANDED_RECORDS, Section};

use super::gap::{Gap, Gaps};
use super::node::{Node, ReachedRecords, SUBJECT};
use super::quote;
use super::reader::{StopReason, WorkupReader, run_concurrently};
use super::statement::{RecordUse, Statement};

/// Maximum number of records one relation away whose own relations are followed.
const MAX_FOLLOWED: usize = 60;
/// Maximum number of these from one stream.
const MAX_FOLLOWED_PER_STREAM: usize = 20;
/// Maximum number of fields of a related record shown beside its name.
const MAX_DETAIL_FIELDS: usize = 4;
/// Maximum length of each of these fields, in characters.
const MAX_DETAIL_CHARS: usize = 60;

/// A relation that was followed from one record to another.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    relation: String,
    type_name: String,
    direction: Direction,
    near_fields: Vec<String>,
    far_fields: Vec<String>,
}

/// Follows the relations of the entity.
pub(super) async fn first_hop<'a>(
    reader: &WorkupReader<'a>,
    reached: &mut ReachedRecords<'a>,
    gaps: &mut Gaps,
) -> Vec<Link> {
    let node = reached.get(SUBJECT);
    let (stream, id) = (node.stream, node.id().to_owned());
    let Some(connection) = reader.call.view.connection(stream.connection_id()) else {
        return Vec::new();
    };
    let around = NeighbourPlan::with_neighbours(connection, stream);
    let records = match reader.by_id(&around, &[&id]).await {
        Ok(records) => records,
        Err(refusal) => {
            gaps.add(Gap::unread(stream.connection_id(), &refusal));
            return Vec::new();
        }
    };
    let mut links = Vec::new();
    for (edge, related) in followed(reader, &around, &records, gaps).await {
        let Some((record, related)) = records.first().zip(related.into_iter().next()) else {
            continue;
        };
        if related.records.is_empty() {
            gaps.add(empty(edge, record));
        }
        if related.more {
            gaps.add(many(edge, SUBJECT));
        }
        links.extend(linked(reader, edge, SUBJECT, related, reached));
    }
    links
}

/// Follows the relations of the records that the first hop reached, except for the way back.
pub(super) async fn second_hop<'a>(
    reader: &WorkupReader<'a>,
    first: &[Link],
    reached: &mut ReachedRecords<'a>,
    gaps: &mut Gaps,
) -> Vec<Link> {
    let mut links = Vec::new();
    for ((connection_id, name), ids) in to_follow(first, reached, gaps) {
        let connection = reader.call.view.connection(&connection_id);
        let Some((connection, stream)) = connection.and_then(|it| Some((it, it.stream(&name)?)))
        else {
            continue;
        };
        let around = NeighbourPlan::with_neighbours(connection, stream);
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let records = match reader.by_id(&around, &ids).await {
            Ok(records) => records,
            Err(refusal) => {
                gaps.add(Gap::unread(&format!("{connection_id}/{name}"), &refusal));
                continue;
            }
        };
        for (edge, related) in followed(reader, &around, &records, gaps).await {
            for (record, related) in records.iter().zip(related) {
                let Some(from) = reached.place(&record.id()) else {
                    continue;
                };
                if related.more {
                    gaps.add(many(edge, from));
                }
                links.extend(linked(reader, edge, from, related, reached));
            }
        }
    }
    let known: BTreeSet<(usize, usize)> = first.iter().map(|it| (it.from, it.to)).collect();
    links.retain(|link| link.to != SUBJECT && !known.contains(&(SUBJECT, link.to)));
    links
}

/// The records of the first hop to continue from, by stream; reports a cut.
fn to_follow(
    first: &[Link],
    reached: &ReachedRecords<'_>,
    gaps: &mut Gaps,
) -> BTreeMap<(String, String), Vec<String>> {
    let mut by_stream: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut all = 0;
    let mut left = 0;
    for node in first.iter().map(|link| reached.get(link.to)) {
        let stream = (
            node.stream.connection_id().to_owned(),
            node.stream.name().to_owned(),
        );
        let ids = by_stream.entry(stream).or_default();
        if ids.iter().any(|id| id == node.id()) {
            continue;
        }
        if ids.len() >= MAX_FOLLOWED_PER_STREAM || all >= MAX_FOLLOWED {
            left += 1;
            continue;
        }
        all += 1;
        ids.push(node.id().to_owned());
    }
    if left > 0 {
        gaps.add(Gap::partial(
            "fan_out",
            format!("the relations of {left} related records were not followed further"),
        ));
    }
    by_stream.retain(|_, ids| !ids.is_empty());
    by_stream
}

/// Follows each relation from each of the records; reports a relation that cannot be read.
async fn followed<'e>(
    reader: &WorkupReader<'_>,
    around: &'e NeighbourPlan,
    records: &[Record],
    gaps: &mut Gaps,
) -> Vec<(&'e Edge, Vec<RelatedRecords>)> {
    let reads = around.edges().iter().map(|edge| async move {
        let read = match edge.expansion.plan(records) {
            None => Ok(None),
            Some(plan) => reader.rows(&plan).await.map(Some),
        };
        (edge, read)
    });
    let mut found = Vec::new();
    for (edge, read) in run_concurrently(reads.collect()).await {
        match read {
            Ok(read) => {
                if read.as_ref().is_some_and(|read| read.cut) {
                    gaps.add(Gap::stopped(StopReason::Caps));
                }
                let rows = read.map(|read| read.rows).unwrap_or_default();
                found.push((edge, edge.expansion.attach(records, &rows)));
            }
            Err(refusal) => {
                let target = edge.expansion.target();
                let place = format!("{}/{}", target.connection_id(), target.name());
                gaps.add(Gap::unread(&place, &refusal));
            }
        }
    }
    found
}

fn linked<'a>(
    reader: &WorkupReader<'a>,
    edge: &Edge,
    from: usize,
    related: RelatedRecords,
    reached: &mut ReachedRecords<'a>,
) -> Vec<Link> {
    let target = edge.expansion.target();
    let Some(stream) = reader.stream(target.connection_id(), target.name()) else {
        return Vec::new();
    };
    let link = |record: Record| Link {
        from,
        to: reached.add(Node::new(stream, record)),
        relation: edge.expansion.relation().to_owned(),
        type_name: edge.type_name.clone(),
        direction: edge.direction,
        near_fields: edge.near_fields.clone(),
        far_fields: edge.far_fields.clone(),
    };
    related.records.into_iter().map(link).collect()
}

fn empty(edge: &Edge, record: &Record) -> Gap {
    let name = called(edge);
    let text = if !edge.expansion.has_join_values(record) {
        format!("{name} is not set")
    } else if edge.direction == Direction::Incoming {
        format!("{name}: no record that may be read")
    } else {
        format!("{name} leads to no record that may be read")
    };
    let uses = vec![RecordUse::new(SUBJECT, edge.near_fields.clone())];
    Gap::shown("missing_relation", text, uses)
}

fn many(edge: &Edge, from: usize) -> Gap {
    let text = format!(
        "{}: only the first {MAX_EXPANDED_RECORDS} were read",
        called(edge)
    );
    let mut gap = Gap::shown(
        "fan_out",
        text,
        vec![RecordUse::new(from, edge.near_fields.clone())],
    );
    gap.partial = true;
    gap
}

fn called(edge: &Edge) -> String {
    let target = edge.expansion.target().name();
    let relation = edge.expansion.relation();
    match edge.direction {
        Direction::Outgoing => format!("relation {relation} to {target}"),
        Direction::Incoming => format!("references from {target} as {relation}"),
    }
}

impl Link {
    fn uses(&self, reached: &ReachedRecords<'_>, details: Vec<String>) -> Vec<RecordUse> {
        let named = |place: usize, more: &[String]| {
            let mut fields = reached.get(place).name_fields();
            fields.extend_from_slice(more);
            RecordUse::new(place, fields)
        };
        let mut near = RecordUse::new(self.from, self.near_fields.clone());
        if self.from != SUBJECT {
            near = named(self.from, &self.near_fields);
        }
        let mut far = named(self.to, &self.far_fields);
        far.fields.extend(details);
        vec![near, far]
    }

    /// The link as a statement about the entity itself.
    pub(super) fn direct_statement(&self, reached: &ReachedRecords<'_>) -> Statement {
        let to = reached.get(self.to);
        let (shown, fields) = details(to, &self.far_fields);
        let (relation, type_name) = (&self.relation, &self.type_name);
        let text = match self.direction {
            Direction::Outgoing => format!("{relation} ({type_name}): {}{shown}", to.name()),
            Direction::Incoming => {
                let stream = to.stream.name();
                format!(
                    "named as {relation} ({type_name}) by {stream}: {}{shown}",
                    to.name()
                )
            }
        };
        Statement {
            section: Section::Relations,
            text,
            uses: self.uses(reached, fields),
        }
    }

    /// The link as a statement about a record one hop away.
    pub(super) fn indirect_statement(&self, reached: &ReachedRecords<'_>) -> Statement {
        let (from, to) = (reached.get(self.from).name(), reached.get(self.to).name());
        let (relation, type_name) = (&self.relation, &self.type_name);
        let text = match self.direction {
            Direction::Outgoing => format!("{from} has {relation} ({type_name}): {to}"),
            Direction::Incoming => format!("{from} is named as {relation} ({type_name}) by {to}"),
        };
        Statement {
            section: Section::SecondHop,
            text,
            uses: self.uses(reached, Vec::new()),
        }
    }
}

/// The first few short values of a record beside its name, with their fields.
fn details(node: &Node<'_>, joined: &[String]) -> (String, Vec<String>) {
    let named = node.name_fields();
    let stream = node.stream;
    let passing = |name: &str| {
        named.iter().chain(joined).any(|it| it == name)
            || stream.key_fields().iter().any(|it| it.name() == name)
            || stream.updated().is_some_and(|it| it.name() == name)
    };
    let mut shown = String::new();
    let mut fields = Vec::new();
    for (field, value) in node.fields() {
        if fields.len() == MAX_DETAIL_FIELDS {
            break;
        }
        if passing(field.name()) || !field.is_scalar() || value.to_text().is_none() {
            continue;
        }
        say!(
            shown,
            ", {} {}",
            field.name(),
            quote::value(value, MAX_DETAIL_CHARS)
        );
        fields.push(field.name().to_owned());
    }
    (shown, fields)
}
