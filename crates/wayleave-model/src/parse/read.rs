//! Converts a TOML table to the types of a mapping, with defaults.
//!
//! Reports nothing: malformed parts are already reported, and are omitted here.

use toml::de::{DeTable, DeValue};

use super::shape::in_order;
use super::{UnreadableEntries, value};
use std::sync::Arc;

use crate::mapping::{
    Action, AggregateOp, Capability, Connection, Dataset, Datatype, Expression, Field, Join,
    Mapping, NamedMeasure, Origin, Relation, Scalar, SearchAnalyzer, SourceKind, Spanned, Stream,
};
use crate::mask::{Mask, ParseMaskError};

/// A table of the document, with its name.
pub(crate) struct Entry<'t, 'a> {
    pub(crate) name: Spanned<String>,
    pub(crate) table: &'t DeTable<'a>,
}

impl<'t, 'a> Entry<'t, 'a> {
    /// The document itself.
    pub(crate) fn root(table: &'t DeTable<'a>) -> Self {
        Self {
            name: Spanned::new(String::new(), 0..0),
            table,
        }
    }

    fn get(&self, key: &str) -> Option<&'t toml::Spanned<DeValue<'a>>> {
        self.table.get(key)
    }

    fn at<T>(&self, value: T) -> Spanned<T> {
        self.name.with(value)
    }

    /// The string under `key`.
    pub(crate) fn text(&self, key: &str) -> Option<Spanned<String>> {
        text(self.get(key)?)
    }

    fn word<T>(&self, key: &str, from_word: fn(&str) -> Option<T>) -> Option<Spanned<T>> {
        let word = self.text(key)?;
        Some(word.with(from_word(&word)?))
    }

    fn flag(&self, key: &str, default: bool) -> Spanned<bool> {
        match self.get(key).map(|value| (value.get_ref(), value.span())) {
            Some((DeValue::Boolean(flag), span)) => Spanned::new(*flag, span),
            _ => self.at(default),
        }
    }

    fn count(&self, key: &str) -> Option<Spanned<u32>> {
        let found = self.get(key)?;
        Some(Spanned::new(
            value::count_of(found.get_ref())?,
            found.span(),
        ))
    }

    fn number(&self, key: &str) -> Option<Spanned<crate::mapping::ExactNumber>> {
        let found = self.get(key)?;
        Some(Spanned::new(
            value::number_of(found.get_ref())?,
            found.span(),
        ))
    }

    fn list<T>(
        &self,
        key: &str,
        read: impl Fn(&toml::Spanned<DeValue<'a>>) -> Option<T>,
    ) -> Option<Spanned<Vec<T>>> {
        let found = self.get(key)?;
        match found.get_ref() {
            DeValue::Array(list) => Some(Spanned::new(
                list.iter().filter_map(read).collect(),
                found.span(),
            )),
            _ => None,
        }
    }

    fn texts(&self, key: &str) -> Vec<Spanned<String>> {
        self.list(key, text)
            .map(|list| list.value)
            .unwrap_or_default()
    }

    /// The tables under `key`, by name.
    fn named(&self, key: &str) -> Vec<(Spanned<String>, Option<Entry<'t, 'a>>)> {
        let Some(DeValue::Table(table)) = self.get(key).map(toml::Spanned::get_ref) else {
            return Vec::new();
        };
        in_order(table)
            .into_iter()
            .map(|(name, span, value)| {
                let name = Spanned::new(name.to_owned(), span);
                let entry = match value.get_ref() {
                    DeValue::Table(table) => Some(Entry {
                        name: name.clone(),
                        table,
                    }),
                    _ => None,
                };
                (name, entry)
            })
            .collect()
    }

    /// The list of tables under `key`.
    pub(crate) fn tables(&self, key: &str) -> Vec<Entry<'t, 'a>> {
        let Some(DeValue::Array(list)) = self.get(key).map(toml::Spanned::get_ref) else {
            return Vec::new();
        };
        list.iter()
            .filter_map(|value| match value.get_ref() {
                DeValue::Table(table) => Some(Entry {
                    name: Spanned::new(String::new(), value.span()),
                    table,
                }),
                _ => None,
            })
            .collect()
    }
}

fn text(value: &toml::Spanned<DeValue<'_>>) -> Option<Spanned<String>> {
    match value.get_ref() {
        DeValue::String(text) => Some(Spanned::new(text.to_string(), value.span())),
        _ => None,
    }
}

/// As much of the mapping as can be read, and the entries that cannot.
pub(super) fn mapping(table: &DeTable<'_>) -> (Mapping, UnreadableEntries) {
    let root = Entry::root(table);
    let mut broken = UnreadableEntries::default();
    let none = DeTable::new();
    let dataset = match root.get("dataset").map(toml::Spanned::get_ref) {
        Some(DeValue::Table(table)) => dataset(&Entry::root(table)),
        _ => dataset(&Entry::root(&none)),
    };
    let mut streams = Vec::new();
    for (name, entry) in root.named("streams") {
        match entry {
            Some(entry) => streams.push(Arc::new(stream(&entry, &mut broken))),
            None => drop(broken.streams.insert(name.value)),
        }
    }
    let mapping = Mapping {
        dataset,
        connections: root
            .tables("connections")
            .iter()
            .filter_map(connection)
            .collect(),
        streams,
        capabilities: root
            .named("capabilities")
            .into_iter()
            .filter_map(|(_, entry)| capability(&entry?))
            .collect(),
    };
    (mapping, broken)
}

fn dataset(entry: &Entry<'_, '_>) -> Dataset {
    let name = entry
        .text("name")
        .unwrap_or_else(|| entry.at(String::new()));
    Dataset {
        title: entry.text("title"),
        description: entry.text("description"),
        kind: entry
            .word("kind", SourceKind::from_word)
            // A kind with schemas, so that an unreadable kind does not reject a schema.
            .unwrap_or_else(|| entry.at(SourceKind::Postgres)),
        schema: entry.text("schema"),
        iri: entry
            .text("iri")
            .unwrap_or_else(|| name.with(Dataset::default_iri(&name))),
        name,
    }
}

fn connection(entry: &Entry<'_, '_>) -> Option<Connection> {
    Some(Connection {
        id: entry.text("id")?,
        label: entry.text("label"),
        source: entry
            .text("source")
            .unwrap_or_else(|| entry.at(String::new())),
    })
}

fn stream(entry: &Entry<'_, '_>, broken: &mut UnreadableEntries) -> Stream {
    let name = entry.name.clone();
    let mut fields = Vec::new();
    for (field_name, entry) in entry.named("fields") {
        match entry.and_then(|entry| field(&entry)) {
            Some(field) => fields.push(Arc::new(field)),
            None => drop(broken.fields.insert((name.value.clone(), field_name.value))),
        }
    }
    let mut relations = Vec::new();
    for (relation_name, entry) in entry.named("relations") {
        match entry.and_then(|entry| relation(&entry)) {
            Some(relation) => relations.push(Arc::new(relation)),
            None => drop(
                broken
                    .relations
                    .insert((name.value.clone(), relation_name.value)),
            ),
        }
    }
    Stream {
        type_name: entry
            .text("type")
            .unwrap_or_else(|| name.with(String::new())),
        table: entry.text("table").unwrap_or_else(|| name.clone()),
        key: entry.texts("key"),
        title: entry.text("title"),
        event_time: entry.text("event_time"),
        updated: entry.text("updated"),
        deleted: entry.text("deleted"),
        search: entry.texts("search"),
        analyzer: entry.word("analyzer", SearchAnalyzer::from_word),
        unique: entry
            .list("unique", |value| match value.get_ref() {
                DeValue::Array(fields) => Some(Spanned::new(
                    fields.iter().filter_map(text).collect(),
                    value.span(),
                )),
                _ => None,
            })
            .map(|list| list.value)
            .unwrap_or_default(),
        description: entry.text("description"),
        fields,
        relations,
        measures: measures(entry),
        name,
    }
}

fn field(entry: &Entry<'_, '_>) -> Option<Field> {
    let datatype = entry.word("datatype", Datatype::from_word)?;
    let plain = Field::new(entry.name.clone(), datatype);
    let many = entry.flag("many", false);
    let scalar = Field::scalar(plain.datatype.value, many.value);
    Some(Field {
        origin: origin(entry, &plain.name)?,
        predicate: entry
            .text("predicate")
            .unwrap_or_else(|| plain.predicate.clone()),
        description: entry.text("description"),
        required: entry.flag("required", false),
        generated: entry.flag("generated", false),
        one_of: entry
            .list("one_of", |value| listed(value, plain.datatype.value))
            .unwrap_or_else(|| plain.one_of.clone()),
        pattern: entry.text("pattern"),
        min_length: entry.count("min_length"),
        max_length: entry.count("max_length"),
        min_value: entry.number("min_value"),
        max_value: entry.number("max_value"),
        filter: entry.flag("filter", scalar),
        sort: entry.flag("sort", scalar),
        aggregate: aggregates(entry).unwrap_or_else(|| {
            entry.at(Field::default_aggregate(plain.datatype.value, many.value))
        }),
        mask: mask(entry).ok()?,
        many,
        name: plain.name,
        datatype: plain.datatype,
    })
}

/// The required mask. A field with an unreadable mask is omitted.
fn mask(entry: &Entry<'_, '_>) -> Result<Option<Spanned<Mask>>, ParseMaskError> {
    if entry.get("mask").is_none() {
        return Ok(None);
    }
    let word = entry.text("mask").ok_or(ParseMaskError)?;
    let mask = word.parse()?;
    Ok(Some(Spanned::new(mask, word.span)))
}

/// The origin of the values; `None` if it is unreadable.
fn origin(entry: &Entry<'_, '_>, name: &Spanned<String>) -> Option<Origin> {
    match entry.text("compute") {
        Some(text) => Some(Origin::Computed(expression(text)?)),
        None => Some(Origin::Column(
            entry.text("column").unwrap_or_else(|| name.clone()),
        )),
    }
}

fn expression(text: Spanned<String>) -> Option<Spanned<Expression>> {
    let expression = Expression::parse(text.value).ok()?;
    Some(Spanned::new(expression, text.span))
}

fn measures(entry: &Entry<'_, '_>) -> Vec<Arc<NamedMeasure>> {
    let Some(DeValue::Table(table)) = entry.get("measures").map(toml::Spanned::get_ref) else {
        return Vec::new();
    };
    in_order(table)
        .into_iter()
        .filter_map(|(name, span, value)| {
            Some(Arc::new(NamedMeasure {
                name: Spanned::new(name.to_owned(), span),
                expression: expression(text(value)?)?,
            }))
        })
        .collect()
}

/// A value of `one_of`. In `decimal` fields a number in quotes is exact.
fn listed(value: &toml::Spanned<DeValue<'_>>, datatype: Datatype) -> Option<Spanned<Scalar>> {
    let number = || value::number_of(value.get_ref()).map(Scalar::Number);
    let scalar = match value.get_ref() {
        DeValue::String(_) if datatype == Datatype::Decimal => {
            number().or_else(|| text(value).map(|text| Scalar::Text(text.value)))
        }
        DeValue::String(text) => Some(Scalar::Text(text.to_string())),
        _ => number(),
    };
    Some(Spanned::new(scalar?, value.span()))
}

fn aggregates(entry: &Entry<'_, '_>) -> Option<Spanned<Vec<AggregateOp>>> {
    let mut list = entry.list("aggregate", |value| AggregateOp::from_word(&text(value)?))?;
    list.value.sort();
    list.value.dedup();
    Some(list)
}

fn relation(entry: &Entry<'_, '_>) -> Option<Relation> {
    let on = match entry.get("on").map(toml::Spanned::get_ref) {
        Some(DeValue::Table(table)) => in_order(table)
            .into_iter()
            .filter_map(|(column, span, field)| {
                Some(Join {
                    column: Spanned::new(column.to_owned(), span),
                    field: text(field)?,
                })
            })
            .collect(),
        _ => Vec::new(),
    };
    let name = entry.name.clone();
    Some(Relation {
        to: entry.text("to")?,
        on,
        type_name: entry
            .text("type")
            .unwrap_or_else(|| name.with(Relation::default_type(&name))),
        description: entry.text("description"),
        name,
    })
}

fn capability(entry: &Entry<'_, '_>) -> Option<Capability> {
    Some(Capability {
        name: entry.name.clone(),
        connection: entry.text("connection"),
        stream: entry.text("stream")?,
        action: entry.word("action", Action::from_word)?,
        fields: entry.texts("fields"),
        source: entry
            .text("source")
            .unwrap_or_else(|| entry.at(String::new())),
        idempotency: entry.flag("idempotency", false),
        description: entry.text("description"),
    })
}
