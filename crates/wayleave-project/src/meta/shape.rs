//! Edits one stream of a mapping's text, keeping comments and layout of everything else.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};
use wayleave_model::names::NameKind;

use super::MetaRefusal;

/// A stream, as far as it is to be set.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StreamShape {
    /// The class of its records.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    type_name: Option<String>,
    /// The table or view, exactly as the store has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) table: Option<String>,
    /// The fields that identify a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Vec<String>>,
    /// The field that names a record for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The field that says when a record's event happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_time: Option<String>,
    /// The field that grows whenever a record changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated: Option<String>,
    /// The field that marks a record as deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<String>,
    /// The fields that full-text search reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<Vec<String>>,
    /// Sets of fields that no two records share.
    #[serde(skip_serializing_if = "Option::is_none")]
    unique: Option<Vec<Vec<String>>>,
    /// What the stream holds. Agents read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Fields to add or change, by name. One with `compute` is computed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, FieldShape>,
    /// Relations to add or change, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    relations: BTreeMap<String, RelationShape>,
    /// Measures to add or change: expressions over aggregates, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    measures: BTreeMap<String, String>,
}

/// A field, as far as it is to be set.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct FieldShape {
    /// The column, exactly as the store has it. Default: the field's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    /// An expression that the field is computed from, in place of a column.
    #[serde(skip_serializing_if = "Option::is_none")]
    compute: Option<String>,
    /// string, integer, decimal, number, boolean, date, datetime, json or iri.
    #[serde(skip_serializing_if = "Option::is_none")]
    datatype: Option<String>,
    /// An absolute IRI, or a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    predicate: Option<String>,
    /// What the field means. Agents read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Whether every record has a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    required: Option<bool>,
    /// Whether a record may have many values.
    #[serde(skip_serializing_if = "Option::is_none")]
    many: Option<bool>,
    /// Whether the store fills the value in.
    #[serde(skip_serializing_if = "Option::is_none")]
    generated: Option<bool>,
    /// The closed list of values: strings or numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    one_of: Option<Vec<Json>>,
    /// A regular expression that values match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    /// The minimum length, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_length: Option<u32>,
    /// The maximum length, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_length: Option<u32>,
    /// The minimum value: a number, or an exact string.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_value: Option<Json>,
    /// The maximum value.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_value: Option<Json>,
    /// Whether filters may name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<bool>,
    /// Whether records may be sorted by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sort: Option<bool>,
    /// What aggregates may do with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate: Option<Vec<String>>,
}

/// A relation, as far as it is to be set.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RelationShape {
    /// The stream it leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// What joins the two: our column to their field.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    on: BTreeMap<String, String>,
    /// The edge's type. Default: the name in capitals.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    type_name: Option<String>,
    /// What the edge means. Agents read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl StreamShape {
    /// Whether only the table is set, so that the rest is generated from the source.
    pub(super) fn is_only_table(&self) -> bool {
        let named = serde_json::to_value(self).unwrap_or_default();
        let named = named.as_object().map_or(0, serde_json::Map::len);
        self.table.is_some() && named == 1
    }
}

/// Parses a mapping's text for editing.
pub(super) fn parse(text: &str) -> Result<DocumentMut, MetaRefusal> {
    text.parse::<DocumentMut>().map_err(|_| {
        MetaRefusal::argument("the mapping to change is not TOML")
            .hint("wayleave_meta_mapping_check shows where it breaks")
    })
}

/// Whether the mapping has that stream.
pub(super) fn has_stream(document: &DocumentMut, stream: &str) -> bool {
    let streams = document.get("streams").and_then(Item::as_table_like);
    streams.is_some_and(|it| it.contains_key(stream))
}

/// Inserts a stream.
pub(super) fn insert_stream(
    document: &mut DocumentMut,
    stream: &str,
    item: Item,
) -> Result<(), MetaRefusal> {
    check_stream(stream)?;
    streams(document)?.insert(stream, item);
    Ok(())
}

/// Merges the given entries into a stream, and creates the stream if it is missing.
pub(super) fn merge(
    document: &mut DocumentMut,
    stream: &str,
    set: &StreamShape,
) -> Result<(), MetaRefusal> {
    check_stream(stream)?;
    let set =
        serde_json::to_value(set).map_err(|error| MetaRefusal::argument(error.to_string()))?;
    let Json::Object(set) = set else {
        return Ok(());
    };
    let streams = streams(document)?;
    let entry = streams
        .entry(stream)
        .or_insert_with(|| Item::Table(Table::new()));
    let table = entry
        .as_table_like_mut()
        .ok_or_else(|| not_a_table(stream))?;
    for (name, value) in set {
        match (name.as_str(), value) {
            ("fields" | "relations" | "measures", Json::Object(entries)) => {
                merge_entries(table, &name, entries)?;
            }
            (_, value) => put(table, &name, &value)?,
        }
    }
    Ok(())
}

fn merge_entries(
    stream: &mut dyn TableLike,
    section: &str,
    entries: serde_json::Map<String, Json>,
) -> Result<(), MetaRefusal> {
    let section_item = stream
        .entry(section)
        .or_insert_with(|| Item::Table(Table::new()));
    let section_table = section_item.as_table_like_mut();
    let section_table = section_table.ok_or_else(|| not_a_table(section))?;
    for (name, value) in entries {
        let Json::Object(members) = value else {
            put(section_table, &name, &value)?;
            continue;
        };
        let empty = || Item::Value(Value::InlineTable(InlineTable::new()));
        let entry = section_table.entry(&name).or_insert_with(empty);
        let table = entry
            .as_table_like_mut()
            .ok_or_else(|| not_a_table(&name))?;
        for (key, value) in members {
            put(table, &key, &value)?;
        }
        if let Some(inline) = entry.as_inline_table_mut() {
            inline.fmt();
        }
    }
    Ok(())
}

/// Removes entries of a stream.
pub(super) fn remove(
    document: &mut DocumentMut,
    stream: &str,
    paths: &[String],
) -> Result<(), MetaRefusal> {
    for path in paths {
        let mut segments: Vec<&str> = path.split('.').collect();
        let last = segments.pop().unwrap_or_default();
        let mut at = streams(document)?.get_mut(stream);
        for segment in segments {
            at = at
                .and_then(Item::as_table_like_mut)
                .and_then(|it| it.get_mut(segment));
        }
        let removed = at
            .and_then(Item::as_table_like_mut)
            .and_then(|it| it.remove(last));
        if removed.is_none() {
            return Err(MetaRefusal::argument(format!(
                "stream `{stream}` has no `{path}` to remove"
            ))
            .hint("paths are like `title`, `fields.fax` or `fields.name.pattern`"));
        }
    }
    Ok(())
}

fn streams(document: &mut DocumentMut) -> Result<&mut dyn TableLike, MetaRefusal> {
    let streams = document.entry("streams").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    streams
        .as_table_like_mut()
        .ok_or_else(|| not_a_table("streams"))
}

fn check_stream(stream: &str) -> Result<(), MetaRefusal> {
    if NameKind::Stream.matches(stream) {
        return Ok(());
    }
    let pattern = NameKind::Stream.pattern();
    Err(MetaRefusal::argument(format!(
        "`stream` is a name: {pattern}"
    )))
}

fn not_a_table(name: &str) -> MetaRefusal {
    MetaRefusal::argument(format!("`{name}` of the mapping is not a table"))
        .hint("wayleave_meta_mapping_check shows where it breaks")
}

/// Sets a key, and keeps its trailing comment.
fn put(table: &mut dyn TableLike, key: &str, value: &Json) -> Result<(), MetaRefusal> {
    let mut value = to_toml(value)?;
    match table.get_mut(key) {
        Some(Item::Value(known)) => {
            let decor = known.decor().clone();
            *value.decor_mut() = decor;
            *known = value;
        }
        _ => {
            table.insert(key, Item::Value(value));
        }
    }
    Ok(())
}

fn to_toml(value: &Json) -> Result<Value, MetaRefusal> {
    Ok(match value {
        Json::String(text) => text.as_str().into(),
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(float)) => float.into(),
            (None, None) => return Err(MetaRefusal::argument("a number is out of range")),
        },
        Json::Array(values) => {
            let values: Result<Array, _> = values.iter().map(to_toml).collect();
            Value::Array(values?)
        }
        Json::Object(members) => {
            let mut table = InlineTable::new();
            for (name, value) in members {
                table.insert(name, to_toml(value)?);
            }
            Value::InlineTable(table)
        }
        Json::Null => return Err(MetaRefusal::argument("null cannot be set; use `remove`")),
    })
}
