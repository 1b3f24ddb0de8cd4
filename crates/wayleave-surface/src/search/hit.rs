//! One hit as a caller sees it: the record, and the part of it that matched.

use serde_json::{Map, Value as Json};
use wayleave_plan::request::address;
use wayleave_plan::search::SearchStream;
use wayleave_plan::value::Value;
use wayleave_plan::view::FieldView;
use wayleave_search::Query;
use wayleave_search::snippet::{beginning, snippet};

use super::find::{Hit, texts};
use crate::{escape, ids};

/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 96;

/// A hit ready to be written.
pub(super) struct WrittenHit {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) snippet: String,
    pub(super) score: Json,
    pub(super) structure: Json,
}

/// Prepares a hit with a snippet of at most `most` characters.
#[expect(
    clippy::expect_used,
    reason = "a hit with another score would seem ranked otherwise"
)]
pub(super) fn shown(hit: &Hit, stream: &SearchStream, query: &Query, most: usize) -> WrittenHit {
    let id = &hit.position.id;
    let title = title(hit, stream);
    let snippet = found(hit, stream, query, &title, most);
    let score = hit.position.score.to_string();
    let score = Json::from(score.parse::<f64>().expect("a score is a number"));
    let view = &stream.view;
    let mut members = Map::with_capacity(10);
    for (name, value) in [
        ("id", id.as_str()),
        ("title", &title),
        ("url", &address::record(view.type_name(), id)),
        ("snippet", &snippet),
        ("stream", view.name()),
        ("connection_id", view.connection_id()),
        ("connector_key", view.connector_key()),
        ("record_id", &hit.record.key_text()),
    ] {
        members.insert(name.to_owned(), value.into());
    }
    if stream.label != view.connection_id() {
        members.insert("label".to_owned(), stream.label.as_str().into());
    }
    members.insert("score".to_owned(), score.clone());
    WrittenHit {
        id: id.clone(),
        title,
        snippet,
        score,
        structure: Json::Object(members),
    }
}

fn value<'a>(hit: &'a Hit, field: Option<&FieldView>) -> Option<&'a Value> {
    hit.record.value(field?.name())
}

/// The record's own title where it is visible; else the connection's label, the stream, and the
/// time of the event or, without a time, the key.
fn title(hit: &Hit, stream: &SearchStream) -> String {
    let own = value(hit, stream.view.title())
        .and_then(Value::to_text)
        .map(|title| escape::inline(&title, MAX_TITLE_CHARS))
        .filter(|title| !title.trim().is_empty());
    own.unwrap_or_else(|| {
        let when = value(hit, stream.view.event_time()).and_then(Value::to_text);
        let which = when.unwrap_or_else(|| ids::readable_key(&hit.record));
        let title = format!("{}: {} {which}", stream.label, stream.view.name());
        escape::inline(&title, MAX_TITLE_CHARS)
    })
}

/// The part that matched, never the title alone: where only the title matches, the field's name
/// precedes it.
fn found(hit: &Hit, stream: &SearchStream, query: &Query, title: &str, most: usize) -> String {
    let own = stream.view.title().map(FieldView::name);
    let mut texts = texts(stream, &hit.record);
    // The title is shown already: among texts that match equally well, another one says more.
    texts.sort_by_key(|(field, _)| Some(*field) == own);
    let pairs = texts.iter().map(|(field, text)| (*field, text.as_ref()));
    let analyzer = stream.view.search_analyzer().into();
    match snippet(query, analyzer, pairs, most) {
        Some(found) if found.plain.trim() == title.trim() => {
            format!("{}: {}", found.field, found.marked)
        }
        Some(found) => found.marked,
        None => texts
            .iter()
            .map(|(_, text)| beginning(text, most))
            .find(|text| !text.is_empty() && text != title)
            .unwrap_or_default(),
    }
}
