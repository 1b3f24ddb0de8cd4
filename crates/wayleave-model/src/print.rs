//! Prints a mapping as canonical text, which [`crate::parse`] reads back as an equal mapping.
//!
//! Omits keys with their default value. Comments are not part of a mapping, so they are not
//! printed.

use std::fmt::{self, Display, Write};

use crate::mapping::{
    Capability, Connection, Dataset, ExactNumber, Field, Mapping, Origin, Relation, Scalar,
    Spanned, Stream,
};

/// Prints a mapping as TOML.
pub fn print(mapping: &Mapping) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_mapping(&mut text, mapping);
    text
}

fn write_mapping(out: &mut String, mapping: &Mapping) -> fmt::Result {
    write_dataset(out, &mapping.dataset)?;
    for connection in &mapping.connections {
        write_connection(out, connection)?;
    }
    for stream in &mapping.streams {
        write_stream(out, stream)?;
    }
    for capability in &mapping.capabilities {
        write_capability(out, capability)?;
    }
    Ok(())
}

fn write_dataset(out: &mut String, dataset: &Dataset) -> fmt::Result {
    writeln!(out, "[dataset]")?;
    line(out, "name", text(&dataset.name))?;
    optional(out, "title", dataset.title.as_ref())?;
    optional(out, "description", dataset.description.as_ref())?;
    line(out, "kind", text(dataset.kind.as_str()))?;
    optional(out, "schema", dataset.schema.as_ref())?;
    if dataset.iri.value != Dataset::default_iri(&dataset.name) {
        line(out, "iri", text(&dataset.iri))?;
    }
    Ok(())
}

fn write_connection(out: &mut String, connection: &Connection) -> fmt::Result {
    writeln!(out, "\n[[connections]]")?;
    line(out, "id", text(&connection.id))?;
    optional(out, "label", connection.label.as_ref())?;
    line(out, "source", text(&connection.source))
}

fn write_stream(out: &mut String, stream: &Stream) -> fmt::Result {
    let name = &stream.name;
    writeln!(out, "\n[streams.{name}]")?;
    line(out, "type", text(&stream.type_name))?;
    if stream.table != *name {
        line(out, "table", text(&stream.table))?;
    }
    line(out, "key", texts(&stream.key))?;
    optional(out, "title", stream.title.as_ref())?;
    optional(out, "event_time", stream.event_time.as_ref())?;
    optional(out, "updated", stream.updated.as_ref())?;
    optional(out, "deleted", stream.deleted.as_ref())?;
    if !stream.search.is_empty() {
        line(out, "search", texts(&stream.search))?;
    }
    if let Some(analyzer) = &stream.analyzer {
        line(out, "analyzer", text(analyzer.value.as_str()))?;
    }
    if !stream.unique.is_empty() {
        line(
            out,
            "unique",
            list(stream.unique.iter().map(|set| texts(set))),
        )?;
    }
    optional(out, "description", stream.description.as_ref())?;
    for field in &stream.fields {
        write_field(out, name, field)?;
    }
    for relation in &stream.relations {
        write_relation(out, name, relation)?;
    }
    if !stream.measures.is_empty() {
        writeln!(out, "\n[streams.{name}.measures]")?;
        for measure in &stream.measures {
            line(out, &measure.name, text(measure.expression.text()))?;
        }
    }
    Ok(())
}

fn write_field(out: &mut String, stream: &str, field: &Field) -> fmt::Result {
    writeln!(out, "\n[streams.{stream}.fields.{}]", field.name)?;
    match &field.origin {
        Origin::Column(column) if *column == field.name => {}
        Origin::Column(column) => line(out, "column", text(column))?,
        Origin::Computed(expression) => line(out, "compute", text(expression.text()))?,
    }
    line(out, "datatype", text(field.datatype.as_str()))?;
    if field.predicate != field.name {
        line(out, "predicate", text(&field.predicate))?;
    }
    optional(out, "description", field.description.as_ref())?;
    flag(out, "required", field.required.value, false)?;
    flag(out, "many", field.many.value, false)?;
    flag(out, "generated", field.generated.value, false)?;
    if !field.one_of.is_empty() {
        line(
            out,
            "one_of",
            list(field.one_of.iter().map(|value| scalar(value))),
        )?;
    }
    optional(out, "pattern", field.pattern.as_ref())?;
    for (key, length) in [
        ("min_length", &field.min_length),
        ("max_length", &field.max_length),
    ] {
        if let Some(length) = length {
            line(out, key, length)?;
        }
    }
    for (key, value) in [
        ("min_value", &field.min_value),
        ("max_value", &field.max_value),
    ] {
        if let Some(value) = value {
            line(out, key, number(value))?;
        }
    }
    flag(out, "filter", field.filter.value, field.is_scalar())?;
    flag(out, "sort", field.sort.value, field.is_scalar())?;
    let aggregate = Field::default_aggregate(field.datatype.value, field.many.value);
    if field.aggregate.value != aggregate {
        line(
            out,
            "aggregate",
            list(field.aggregate.iter().map(|op| text(op.as_str()))),
        )?;
    }
    if let Some(mask) = &field.mask {
        line(out, "mask", text(&mask.to_string()))?;
    }
    Ok(())
}

fn write_relation(out: &mut String, stream: &str, relation: &Relation) -> fmt::Result {
    writeln!(out, "\n[streams.{stream}.relations.{}]", relation.name)?;
    line(out, "to", text(&relation.to))?;
    let joins: Vec<_> = relation
        .on
        .iter()
        .map(|join| format!("{} = {}", key(&join.column), text(&join.field)))
        .collect();
    line(out, "on", format!("{{ {} }}", joins.join(", ")))?;
    if relation.type_name.value != Relation::default_type(&relation.name) {
        line(out, "type", text(&relation.type_name))?;
    }
    optional(out, "description", relation.description.as_ref())
}

fn write_capability(out: &mut String, capability: &Capability) -> fmt::Result {
    writeln!(out, "\n[capabilities.{}]", capability.name)?;
    optional(out, "connection", capability.connection.as_ref())?;
    line(out, "stream", text(&capability.stream))?;
    line(out, "action", text(capability.action.as_str()))?;
    if !capability.fields.is_empty() {
        line(out, "fields", texts(&capability.fields))?;
    }
    line(out, "source", text(&capability.source))?;
    flag(out, "idempotency", capability.idempotency.value, false)?;
    optional(out, "description", capability.description.as_ref())
}

fn line(out: &mut String, key: &str, value: impl Display) -> fmt::Result {
    writeln!(out, "{key} = {value}")
}

fn optional(out: &mut String, key: &str, value: Option<&Spanned<String>>) -> fmt::Result {
    value.map_or(Ok(()), |value| line(out, key, text(value)))
}

fn flag(out: &mut String, key: &str, value: bool, default: bool) -> fmt::Result {
    if value == default {
        Ok(())
    } else {
        line(out, key, value)
    }
}

/// A TOML string.
pub(crate) fn text(value: &str) -> String {
    toml_edit::Value::from(value).to_string()
}

/// A TOML key, quoted if necessary.
pub(crate) fn key(name: &str) -> String {
    toml_edit::Key::new(name).display_repr().into_owned()
}

fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(", "))
}

fn texts(values: &[Spanned<String>]) -> String {
    list(values.iter().map(|value| text(value)))
}

fn scalar(value: &Scalar) -> String {
    match value {
        Scalar::Text(value) => text(value),
        Scalar::Number(value) => number(value),
    }
}

/// A TOML number if that is lossless, else an exact one in quotes.
fn number(value: &ExactNumber) -> String {
    let digits = value.to_string();
    let float = || ExactNumber::from_f64(value.to_f64()).is_some_and(|read| read == *value);
    if value.to_i64().is_some() || (!value.is_whole() && float()) {
        digits
    } else {
        text(&digits)
    }
}
