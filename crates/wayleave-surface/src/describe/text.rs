//! The description of a stream as text.

use serde_json::Value as Json;
use wayleave_model::mapping::Datatype;
use wayleave_plan::filter;
use wayleave_plan::request::{
    DEFAULT_ROWS, MAX_EXPANDED, MAX_EXPANDED_RECORDS, MAX_GROUP_FIELDS, MAX_METRICS, MAX_ROWS,
    MAX_SORT_KEYS,
};
use wayleave_plan::view::{FieldView, StreamView};

use super::{
    DetailLimits, LEGEND, MAX_CONNECTIONS, StreamHolders, changes, example, field, writes,
};
use crate::escape::inline;

/// The whole text.
pub(super) fn text(
    groups: &[StreamHolders<'_>],
    others: &[&str],
    types: &[Datatype],
    example: Option<&Json>,
    full: Option<&StreamView>,
    room: DetailLimits,
) -> String {
    let mut text = String::new();
    for holders in groups {
        heading(&mut text, holders, room);
        fields(&mut text, holders.stream, full, room);
        footing(&mut text, holders, room);
    }
    if !others.is_empty() {
        say!(
            text,
            "also in connection_id {}: schema with connection_id describes each\n",
            others.join(" ")
        );
    }
    text.push_str("types:\n");
    type_lines(&mut text, types);
    say!(
        text,
        "query_records: fields projects (key fields always come along); \
         sort up to {MAX_SORT_KEYS}; limit 1..{MAX_ROWS}, default {DEFAULT_ROWS}; count none, estimated, \
         exact; expand up to {MAX_EXPANDED} relations, {MAX_EXPANDED_RECORDS} records each\n\
         aggregate: up to {MAX_METRICS} metrics, {MAX_GROUP_FIELDS} group_by fields; count needs no field\n\
         legend: {LEGEND}\n"
    );
    if let Some(example) = example {
        say!(text, "example: {} {example}\n", example::TOOL);
    }
    text
}

fn fields(text: &mut String, stream: &StreamView, full: Option<&StreamView>, room: DetailLimits) {
    if !room.lists_fields_in_text() {
        text.push_str("fields:\n");
        for it in stream.fields() {
            say!(text, "- {}\n", field::line(it, full, room));
        }
        return;
    }
    let shown: Vec<&FieldView> = stream.fields().take(room.members).collect();
    for datatype in Datatype::ALL {
        let typed = shown.iter().filter(|it| it.datatype() == *datatype);
        let names: Vec<&str> = typed.map(|it| it.name()).collect();
        if !names.is_empty() {
            say!(text, "{datatype} fields: {}\n", names.join(" "));
        }
    }
    let left = stream.fields().count() - shown.len();
    if left > 0 {
        say!(
            text,
            "cut: {left} fields are not shown; a wrong name is answered with the nearest\n"
        );
    }
}

fn heading(text: &mut String, holders: &StreamHolders<'_>, room: DetailLimits) {
    let stream = holders.stream;
    say!(
        text,
        "stream {} type {} connector_key {}",
        stream.name(),
        stream.type_name(),
        stream.connector_key()
    );
    if let Some(description) = stream.description().filter(|_| room.description > 0) {
        text.push_str(": ");
        text.push_str(&inline(description, room.description * 2));
    }
    if stream.is_suspended() {
        text.push_str(
            "\nsuspended: its source has changed since its mapping was ratified; it cannot be \
             read until its operator fixes that",
        );
    }
    text.push_str("\nconnection_id");
    for connection in holders.connections.iter().take(MAX_CONNECTIONS) {
        say!(text, " {}", connection.connection_id);
        if connection.label != connection.connection_id {
            say!(text, " ({})", inline(&connection.label, 48));
        }
    }
    if holders.connections.len() > MAX_CONNECTIONS {
        let left = holders.connections.len() - MAX_CONNECTIONS;
        say!(text, " and {left} more, which schema without stream lists");
    }
    let key: Vec<&str> = stream.key_fields().iter().map(FieldView::name).collect();
    say!(text, "\nkey {}", key.join(" "));
    for (name, field) in [
        ("title", stream.title()),
        ("event_time", stream.event_time()),
    ] {
        if let Some(field) = field {
            say!(text, "; {name} {}", field.name());
        }
    }
    text.push('\n');
}

fn footing(text: &mut String, holders: &StreamHolders<'_>, room: DetailLimits) {
    let stream = holders.stream;
    let relations: Vec<String> = stream
        .relations()
        .take(room.members)
        .map(|it| {
            let many = if stream.is_to_one(it) { "" } else { " (many)" };
            format!("{} -> {}{many}", it.name, it.to)
        })
        .collect();
    let search: Vec<&str> = stream.search().map(FieldView::name).collect();
    say!(
        text,
        "relations: {}\nsearch: {}\nchanges_since: {}\n",
        or_none(&relations.join(", ")),
        or_none(&search.join(" ")),
        changes(stream)
    );
    let writes = writes(holders);
    if !writes.is_empty() {
        say!(text, "writes: {}\n", writes.join(" "));
    }
    for measure in stream.measures().iter().take(room.members) {
        say!(
            text,
            "measure {} {} = {}\n",
            measure.name(),
            measure.datatype(),
            inline(measure.expression(), 200)
        );
    }
    if room.notes {
        for note in &holders.notes {
            say!(text, "note: {}\n", inline(note, 300));
        }
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// What each type can do. Types that can do the same share a line.
fn type_lines(text: &mut String, types: &[Datatype]) {
    let mut lines: Vec<(String, String)> = Vec::new();
    for datatype in types {
        let operators = filter::operators(*datatype);
        let able = if operators.is_empty() {
            "only shown".to_owned()
        } else {
            let aggregates = field::words(datatype.aggregates());
            format!(
                "filter {}; sort; aggregate {aggregates}",
                operators.join(" ")
            )
        };
        match lines.iter_mut().find(|(_, known)| *known == able) {
            Some((names, _)) => say!(names, " {datatype}"),
            None => lines.push((datatype.to_string(), able)),
        }
    }
    for (names, able) in lines {
        say!(text, "- {names}: {able}\n");
    }
}
