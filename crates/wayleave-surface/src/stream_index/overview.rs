//! One stream of an overview, on one line: its fields by type, its relations, its measures.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::Datatype;
use wayleave_plan::view::{FieldView, StreamView};

use crate::escape::inline;

/// Explains the marks in a line.
pub(super) const LEGEND: &str = "Each line: key, fields by type (* computed, [] several values), \
    relations to one (usable in paths: relation.field), to many (some, none, expand), measures.";

/// A field's name with its marks, and its closed list if it has at most `values` values.
fn marked(field: &FieldView, values: usize) -> String {
    let mut name = field.name().to_owned();
    if field.is_computed() {
        name.push('*');
    }
    if field.is_many() {
        name.push_str("[]");
    }
    if let Some(mask) = field.mask() {
        say!(name, "(masked {mask})");
    }
    let one_of = field.one_of();
    if !one_of.is_empty() && one_of.len() <= values {
        let values = one_of.iter().map(|it| inline(&it.to_string(), 32));
        let values: Vec<String> = values.collect();
        say!(name, "({})", values.join("|"));
    }
    name
}

/// The fields of each type, in the order documents list types.
fn by_type(stream: &StreamView, values: usize) -> Vec<(Datatype, String)> {
    let typed = |datatype: &Datatype| {
        let fields = stream.fields().filter(|it| it.datatype() == *datatype);
        let names: Vec<String> = fields.map(|it| marked(it, values)).collect();
        (!names.is_empty()).then(|| (*datatype, names.join(" ")))
    };
    Datatype::ALL.iter().filter_map(typed).collect()
}

/// The to-one or the to-many relations: names and target streams.
fn relations(stream: &StreamView, to_one: bool) -> Vec<(&str, &str)> {
    let relations = stream.relations();
    let relations = relations.filter(|it| stream.is_to_one(it) == to_one);
    relations
        .map(|it| (it.name.as_str(), it.to.as_str()))
        .collect()
}

/// Appends the line after a stream's name.
pub(super) fn line(text: &mut String, stream: &StreamView, values: usize) {
    let key: Vec<&str> = stream.key_fields().iter().map(FieldView::name).collect();
    say!(text, " key {}", key.join(" "));
    for (datatype, names) in by_type(stream, values) {
        say!(text, "; {datatype} {names}");
    }
    for (word, to_one) in [("one", true), ("many", false)] {
        let relations = relations(stream, to_one);
        if !relations.is_empty() {
            say!(text, "; {word}");
        }
        for (name, to) in relations {
            say!(text, " {name}->{to}");
        }
    }
    let measures = stream.measures().iter();
    let measures: Vec<String> = measures
        .map(|it| format!("{}={}", it.name(), inline(it.expression(), 120)))
        .collect();
    if !measures.is_empty() {
        say!(text, "; measures {}", measures.join(", "));
    }
}

/// The same as structure.
pub(super) fn structure(object: &mut Map<String, Json>, stream: &StreamView, values: usize) {
    let mut put = |name: &str, value: Json| object.insert(name.to_owned(), value);
    let key: Vec<&str> = stream.key_fields().iter().map(FieldView::name).collect();
    put("key", key.join(" ").into());
    let fields = by_type(stream, values).into_iter();
    let fields = fields.map(|(datatype, names)| (datatype.to_string(), names.into()));
    put("fields", Json::Object(fields.collect()));
    for (word, to_one) in [("one", true), ("many", false)] {
        let relations = relations(stream, to_one);
        if !relations.is_empty() {
            let relations = relations.into_iter();
            let relations = relations.map(|(name, to)| (name.to_owned(), json!(to)));
            put(word, Json::Object(relations.collect()));
        }
    }
    if !stream.measures().is_empty() {
        let measures = stream.measures().iter();
        let measures = measures.map(|it| (it.name().to_owned(), json!(it.expression())));
        put("measures", Json::Object(measures.collect()));
    }
}
