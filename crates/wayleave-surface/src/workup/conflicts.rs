//! Finds where records disagree about one entity.
//!
//! Either two records of one entity, in two connections, state one field differently; or two
//! related records differ in two fields with the same predicate in the mapping, which declares that
//! they state the same.

use wayleave_plan::refusal::Refusal;
use wayleave_plan::request::Section;
use wayleave_plan::value::Value;
use wayleave_plan::view::{FieldView, StreamView};

use super::gap::{Gap, Gaps};
use super::node::{Node, ReachedRecords, SUBJECT};
use super::quote;
use super::reader::WorkupReader;
use super::relations::Link;
use super::resolve::same_entity;
use super::statement::{RecordUse, Statement};

/// Maximum length of a disputed value, in characters.
const MAX_VALUE_CHARS: usize = 120;
/// Maximum number of records inspected for one title.
const MAX_NAMESAKES: u32 = 5;

/// The record of the same entity in another connection.
pub(super) struct Counterpart {
    pub(super) node: usize,
    /// How it was recognised.
    by: &'static str,
}

/// The records of the same entity in the other connections of the dataset.
pub(super) async fn counterparts<'a>(
    reader: &WorkupReader<'a>,
    reached: &mut ReachedRecords<'a>,
    gaps: &mut Gaps,
) -> Vec<Counterpart> {
    let node = reached.get(SUBJECT).clone();
    let mut found = Vec::new();
    let name = node.stream.name();
    for stream in reader.streams().filter(|stream| stream.name() == name) {
        match others(reader, &node, stream).await {
            Err(refusal) => gaps.add(Gap::unread(stream.connection_id(), &refusal)),
            Ok(others) => {
                let same = |it: Node<'a>| same_entity(&node, &it).map(|by| (it, by));
                let own = stream.connection_id() == node.stream.connection_id();
                let known: Vec<(Node<'a>, &str)> = others.into_iter().filter_map(same).collect();
                match known.as_slice() {
                    [(one, by)] if !own => {
                        let node = reached.add(one.clone());
                        found.push(Counterpart { node, by });
                    }
                    [] => {}
                    several => gaps.add(namesakes(stream, several, reached)),
                }
            }
        }
    }
    found
}

/// The records of a stream with the key or the title of a record, except for that record.
async fn others<'a>(
    reader: &WorkupReader<'a>,
    node: &Node<'a>,
    stream: &'a StreamView,
) -> Result<Vec<Node<'a>>, Refusal> {
    let mut found: Vec<Node<'a>> = match node.title() {
        Some(title) => reader.by_title(stream, "eq", &title, MAX_NAMESAKES).await?,
        None => Vec::new(),
    };
    if stream.connection_id() != node.stream.connection_id()
        && let Some(around) = reader.alone(stream)
    {
        let id = format!(
            "{}/{}:{}",
            stream.connection_id(),
            stream.name(),
            node.key()
        );
        for record in reader.by_id(&around, &[&id]).await? {
            if !found.iter().any(|it| it.id() == record.id()) {
                found.push(Node::new(stream, record));
            }
        }
    }
    found.retain(|it| it.id() != node.id());
    Ok(found)
}

fn namesakes<'a>(
    stream: &StreamView,
    several: &[(Node<'a>, &str)],
    reached: &mut ReachedRecords<'a>,
) -> Gap {
    let many = several.len();
    let text = format!(
        "{many} other record(s) of {}/{} have the same title or key and may or may not be the same",
        stream.connection_id(),
        stream.name()
    );
    let title = stream.title().map(|it| it.name().to_owned());
    let fields: Vec<String> = title.into_iter().collect();
    let mut uses = vec![RecordUse::new(SUBJECT, fields.clone())];
    for (node, _) in several {
        uses.push(RecordUse::new(reached.add(node.clone()), fields.clone()));
    }
    Gap::shown("namesakes", text, uses)
}

impl Counterpart {
    /// States where else the entity is recorded.
    pub(super) fn statement(&self, reached: &ReachedRecords<'_>) -> Statement {
        let (one, other) = (reached.get(SUBJECT), reached.get(self.node));
        let fields = |node: &Node<'_>| -> Vec<String> {
            node.key_names().chain(node.name_fields()).collect()
        };
        Statement {
            section: Section::Record,
            text: format!("also recorded as {}, by the same {}", other.id(), self.by),
            uses: vec![
                RecordUse::new(SUBJECT, fields(one)),
                RecordUse::new(self.node, fields(other)),
            ],
        }
    }

    /// States where it differs from the record itself.
    pub(super) fn conflicts(&self, reached: &ReachedRecords<'_>) -> Vec<Statement> {
        let (one, other) = (reached.get(SUBJECT), reached.get(self.node));
        let mut statements = Vec::new();
        for (field, value) in one.fields() {
            let theirs = other.value(field.name());
            if !is_stated(one, field) {
                continue;
            }
            if let Some(theirs) = theirs.filter(|it| differ(value, it)) {
                let name = field.name().to_owned();
                let text = format!(
                    "{name} is {} in {} and {} in {}, the same entity by {}",
                    quote::value(value, MAX_VALUE_CHARS),
                    one.stream.connection_id(),
                    quote::value(theirs, MAX_VALUE_CHARS),
                    other.stream.connection_id(),
                    self.by,
                );
                statements.push(disputed(
                    text,
                    (SUBJECT, vec![name.clone()]),
                    (self.node, vec![name]),
                ));
            }
        }
        statements
    }
}

/// Whether a field states something about the entity, as opposed to fields that its store uses to
/// find, join and track records.
fn is_stated(node: &Node<'_>, field: &FieldView) -> bool {
    let stream = node.stream;
    !stream.is_joined_on(field)
        && field.is_scalar()
        && !field.is_masked()
        && !stream.key_fields().contains(field)
        && stream.updated() != Some(field)
}

/// Where related records differ in fields to which the mapping gives one predicate.
pub(super) fn between(links: &[Link], reached: &ReachedRecords<'_>) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    for link in links {
        let (one, other) = (reached.get(link.from), reached.get(link.to));
        for (ours, value) in one.fields() {
            for (theirs, other_value) in other.fields() {
                let disputed_by_both = same_property(ours, theirs)
                    && differ(value, other_value)
                    && is_stated(one, ours)
                    && is_stated(other, theirs);
                if !disputed_by_both {
                    continue;
                }
                let (our_name, their_name) = (ours.name(), theirs.name());
                let text = format!(
                    "{our_name} of {} is {}, {their_name} of {} is {}",
                    one.name(),
                    quote::value(value, MAX_VALUE_CHARS),
                    other.name(),
                    quote::value(other_value, MAX_VALUE_CHARS),
                );
                let fields = |node: &Node<'_>, field: &str| {
                    let mut fields = node.name_fields();
                    fields.push(field.to_owned());
                    fields
                };
                let statement = disputed(
                    text,
                    (link.from, fields(one, our_name)),
                    (link.to, fields(other, their_name)),
                );
                if !statements.contains(&statement) {
                    statements.push(statement);
                }
            }
        }
    }
    statements
}

/// Whether a person declared that two fields state the same, by giving them one predicate. Fields
/// of the same name share a predicate by default, which declares nothing.
fn same_property(one: &FieldView, other: &FieldView) -> bool {
    let said = |field: &FieldView| field.predicate() != field.name();
    one.predicate() == other.predicate() && (said(one) || said(other))
}

/// Whether two values are both present and differ.
fn differ(one: &Value, other: &Value) -> bool {
    match (one.to_text(), other.to_text()) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    }
}

fn disputed(text: String, one: (usize, Vec<String>), other: (usize, Vec<String>)) -> Statement {
    Statement {
        section: Section::Conflicts,
        text,
        uses: vec![
            RecordUse::new(one.0, one.1),
            RecordUse::new(other.0, other.1),
        ],
    }
}
