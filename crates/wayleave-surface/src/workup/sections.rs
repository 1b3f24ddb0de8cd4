//! The sections about the record itself, its timeline, and the texts that name the entity.

use wayleave_plan::request::{Section, WorkupRequest};
use wayleave_plan::value::Value;
use wayleave_search::Query;
use wayleave_search::snippet::snippet;

use super::gap::{Gap, Gaps};
use super::node::{Node, ReachedRecords, SUBJECT};
use super::quote;
use super::reader::{WorkupReader, phrase};
use super::statement::{RecordUse, Statement};
use crate::indexing::words_of;
use crate::search::MissingStream;

/// Maximum length of a value of the record, in characters.
const MAX_VALUE_CHARS: usize = 240;
/// Maximum length of a passage, in characters.
const MAX_PASSAGE_CHARS: usize = 160;
/// Maximum number of texts that name the entity.
const MAX_PASSAGES: u32 = 12;

/// States what the record itself says; fields without a value are a gap.
pub(super) fn record(node: &Node<'_>, gaps: &mut Gaps) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut empty = Vec::new();
    for (field, value) in node.fields() {
        let name = field.name().to_owned();
        if *value == Value::Null {
            empty.push(name);
            continue;
        }
        statements.push(Statement {
            section: Section::Record,
            text: format!("{name}: {}", quote::value(value, MAX_VALUE_CHARS)),
            uses: vec![RecordUse::new(SUBJECT, vec![name])],
        });
    }
    if !empty.is_empty() {
        let text = format!("no value for {}", empty.join(", "));
        gaps.add(Gap::shown(
            "empty_fields",
            text,
            vec![RecordUse::new(SUBJECT, empty)],
        ));
    }
    statements
}

/// Lists the events of every record that was reached, by time.
pub(super) fn timeline(request: &WorkupRequest, reached: &ReachedRecords<'_>) -> Vec<Statement> {
    let mut events: Vec<(i64, usize, Statement)> = Vec::new();
    for (place, node) in reached.all() {
        let Some(time) = node.time().filter(|time| within(request, time.micros)) else {
            continue;
        };
        let mut fields = vec![time.field.to_owned()];
        fields.extend(node.name_fields());
        let statement = Statement {
            section: Section::Timeline,
            text: format!("{}: {} ({})", time.text, node.name(), time.field),
            uses: vec![RecordUse::new(place, fields)],
        };
        events.push((time.micros, place, statement));
    }
    events.sort_by(|a, b| {
        let id = |place: usize| reached.get(place).id();
        a.0.cmp(&b.0).then_with(|| id(a.1).cmp(id(b.1)))
    });
    let mut statements: Vec<Statement> = Vec::new();
    for (_, _, statement) in events {
        match statements.last_mut() {
            // Several records tell of the same event.
            Some(last) if last.text == statement.text => last.uses.extend(statement.uses),
            _ => statements.push(statement),
        }
    }
    statements
}

fn within(request: &WorkupRequest, at: i64) -> bool {
    request.since.is_none_or(|since| at >= since) && request.until.is_none_or(|until| at < until)
}

/// Finds the texts that name the entity: passages of other records that contain its title.
pub(super) async fn texts<'a>(
    reader: &WorkupReader<'a>,
    request: &WorkupRequest,
    counterparts: &[usize],
    reached: &mut ReachedRecords<'a>,
    gaps: &mut Gaps,
) -> Vec<Statement> {
    let title = reached.get(SUBJECT).title();
    let q = title.map(|title| phrase(&title)).unwrap_or_default();
    let query = Query::parse(&q, |_| false);
    if query.is_empty() {
        let text = "the record has no title to look for in texts".to_owned();
        gaps.add(Gap::shown("no_title", text, Vec::new()));
        return Vec::new();
    }
    let found = match reader.best(q, MAX_PASSAGES).await {
        Ok(found) => found,
        Err(refusal) if refusal.code.retryable() => {
            gaps.add(Gap::unread("the text of this dataset", &refusal));
            return Vec::new();
        }
        Err(_) => {
            let text = "no text of this dataset can be searched".to_owned();
            gaps.add(Gap::shown("no_text", text, Vec::new()));
            return Vec::new();
        }
    };
    for (connection_id, why) in &found.missing {
        gaps.add(match why {
            MissingStream::Unread(refusal) => {
                Gap::unread(&format!("texts of {connection_id}"), refusal)
            }
            MissingStream::Indexing | MissingStream::NotIndexed => {
                let why = why.as_str();
                let text = format!("texts of {connection_id} could not be searched: {why}");
                Gap::partial("not_indexed", text)
            }
        });
    }
    let nodes = match reader.nodes(&found.ids).await {
        Ok(nodes) => nodes,
        Err(refusal) => {
            gaps.add(Gap::unread("the text of this dataset", &refusal));
            return Vec::new();
        }
    };
    let mut statements = Vec::new();
    for node in nodes {
        let place = reached.place(node.id());
        let is_subject = place.is_some_and(|it| it == SUBJECT || counterparts.contains(&it));
        let timely = node.time().is_none_or(|time| within(request, time.micros));
        if is_subject || !timely {
            continue;
        }
        if let Some((text, field)) = passage(&query, &node) {
            let mut fields = node.name_fields();
            fields.push(field);
            let uses = vec![RecordUse::new(reached.add(node), fields)];
            statements.push(Statement {
                section: Section::Text,
                text,
                uses,
            });
        }
    }
    if found.more {
        let text = format!("only the best {MAX_PASSAGES} texts were looked at");
        gaps.add(Gap::shown("fan_out", text, Vec::new()));
    }
    statements
}

/// The matching passage of a record, and its field.
fn passage(query: &Query, node: &Node<'_>) -> Option<(String, String)> {
    let texts: Vec<(String, String)> = node
        .stream
        .search()
        .filter_map(|field| {
            let value = node.value(field.name())?;
            Some((field.name().to_owned(), words_of(value).into_owned()))
        })
        .collect();
    let pairs = texts
        .iter()
        .map(|(field, text)| (field.as_str(), text.as_str()));
    let analyzer = node.stream.search_analyzer().into();
    let found = snippet(query, analyzer, pairs, MAX_PASSAGE_CHARS)?;
    let (field, whole) = texts.into_iter().find(|(field, _)| *field == found.field)?;
    let quoted = quote::part(&found.plain, &whole);
    Some((
        format!("{} names it in {field}: {quoted}", node.name()),
        field,
    ))
}
