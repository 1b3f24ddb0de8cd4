//! Chooses the key and fields of each table for a draft, and the roles of the fields.

use super::comment;
use super::draft::{Draft, Entry, Field, Guess, Stream};
use super::guess::{self, Candidate};
use super::naming::{self, ExistingNames};
use super::person;
use super::personal;
use super::relate;
use super::samples::Samples;
use super::{Omission, OmissionReason};
use crate::catalogue::{Catalogue, Column, Table, TableKind};
use crate::definitions::MAX_IDENTIFIER_CHARS;
use crate::mapping::SourceKind;
use crate::sensitive;

/// Maximum number of `unique` sets.
const MAX_UNIQUE: usize = 16;
/// Maximum number of `one_of` values.
const MAX_VALUES: usize = 1000;

/// The note on a list of values that were sampled, not declared.
pub(super) const SAMPLED: &str = "guess: sampled, not declared; filters refuse any other value";

/// Drafts a mapping of a catalogue, and keeps the names already given.
pub(super) fn draft(catalogue: &Catalogue, given: &ExistingNames, samples: &Samples) -> Draft {
    let names = naming::streams(&catalogue.tables, given);
    let types = naming::types(&catalogue.tables);
    let mut draft = Draft {
        streams: Vec::new(),
        left_out: Vec::new(),
    };
    for ((table, name), type_name) in catalogue.tables.iter().zip(names).zip(types) {
        if !is_mappable_name(&table.name) {
            draft
                .left_out
                .push(table_left_out(table, OmissionReason::Unnameable));
            continue;
        }
        let mut stream = stream(catalogue.kind, table, name, type_name, given);
        list_samples(&mut stream, catalogue.kind, table, samples);
        choose_parts(&mut stream, table, given);
        for entry in &stream.fields {
            if let Entry::LeftOut { column, why } = entry {
                let column = Some(column.clone());
                let table = table.name.clone();
                draft.left_out.push(Omission {
                    table,
                    column,
                    reason: why.clone(),
                });
            }
        }
        if let Some(why) = &stream.unserved {
            draft.left_out.push(table_left_out(table, why.clone()));
        }
        draft.streams.push(stream);
    }
    relate::relate(&mut draft, catalogue, given);
    draft
}

fn table_left_out(table: &Table, reason: OmissionReason) -> Omission {
    Omission {
        table: table.name.clone(),
        column: None,
        reason,
    }
}

fn stream(
    kind: SourceKind,
    table: &Table,
    name: String,
    type_name: String,
    given: &ExistingNames,
) -> Stream {
    let names = naming::fields(table, given);
    let fields: Vec<Entry> = table
        .columns
        .iter()
        .zip(names)
        .map(|(column, name)| entry(kind, table, column, name))
        .collect();
    let mut stream = Stream {
        name,
        type_name,
        table: table.name.clone(),
        unserved: None,
        key: Vec::new(),
        key_note: None,
        title: None,
        event_time: None,
        updated: None,
        deleted: None,
        search: Vec::new(),
        unique: Vec::new(),
        fields,
        relations: Vec::new(),
        unrelated: Vec::new(),
        remark: table.comment.clone(),
    };
    choose_key(&mut stream, table);
    stream.unique = table
        .unique
        .iter()
        .filter_map(|columns| key_fields(&stream, columns))
        .filter(|set| *set != stream.key)
        .take(MAX_UNIQUE)
        .collect();
    stream
}

fn entry(kind: SourceKind, table: &Table, column: &Column, name: String) -> Entry {
    let left_out = |why| Entry::LeftOut {
        column: column.name.clone(),
        why,
    };
    if !is_mappable_name(&column.name) {
        return left_out(OmissionReason::Unnameable);
    }
    if let Some(reason) = sensitive::looks_secret(&column.name) {
        return left_out(OmissionReason::Secret(reason));
    }
    if let Some(why) = unserved_type(kind, &column.native_type) {
        return left_out(why);
    }
    let one_of = listed(column);
    Entry::Field(Field {
        name,
        column: column.name.clone(),
        datatype: column.datatype,
        required: !column.nullable,
        many: column.many,
        generated: column.generated,
        // A closed list says more than a length.
        max_length: column
            .max_length
            .filter(|_| one_of.is_empty() && column.datatype.is_text()),
        one_of,
        note: personal::note(table, column).or_else(|| {
            let is_untyped = column.native_type.trim().is_empty();
            is_untyped.then_some("guess: the store declares no type")
        }),
        remark: column.comment.clone(),
    })
}

/// The closed list of values, if a mapping can hold all of them.
fn listed(column: &Column) -> Vec<String> {
    let all = &column.one_of;
    let whole = column.datatype.is_text()
        && all.len() <= MAX_VALUES
        && all.iter().all(|it| is_listable(it));
    if whole { all.clone() } else { Vec::new() }
}

/// Whether `one_of` can hold a value.
pub(super) fn is_listable(value: &str) -> bool {
    !value.chars().any(char::is_control)
        && sensitive::first_hidden(value).is_none()
        && !sensitive::looks_like_dsn(value)
}

/// Lists the sampled values of fields as `one_of`.
fn list_samples(stream: &mut Stream, kind: SourceKind, table: &Table, samples: &Samples) {
    for entry in &mut stream.fields {
        let Entry::Field(field) = entry else {
            continue;
        };
        let column = table.column(&field.column);
        let values = column.map(|it| samples.listed(kind, table, it));
        if let Some(values) = values.filter(|it| !it.is_empty()) {
            field.one_of = values;
            field.max_length = None;
            field.note = Some(SAMPLED);
        }
    }
}

/// Why a column of that type cannot be served, if so.
#[expect(
    clippy::expect_used,
    reason = "a split has a first part, if an empty one"
)]
pub(super) fn unserved_type(kind: SourceKind, native_type: &str) -> Option<OmissionReason> {
    let native = native_type.to_ascii_lowercase();
    let name = native.split(['(', ' ', '[']).next().expect("a first part");
    let shapes = [
        "geometry",
        "point",
        "linestring",
        "polygon",
        "geometrycollection",
    ];
    match name {
        "tsvector" => Some(OmissionReason::SearchIndex),
        "bytea" | "binary" | "varbinary" => Some(OmissionReason::Bytes),
        _ if name.ends_with("blob") => Some(OmissionReason::Bytes),
        _ if kind == SourceKind::Mysql && shapes.iter().any(|it| name.ends_with(it)) => {
            Some(OmissionReason::Bytes)
        }
        _ => None,
    }
}

/// The fields of some columns, if all of them can be part of a key.
fn key_fields(stream: &Stream, columns: &[String]) -> Option<Vec<String>> {
    columns
        .iter()
        .map(|column| stream.field_of(column))
        .map(|field| field.filter(|it| it.datatype.can_be_key() && !it.many))
        .map(|field| field.map(|it| it.name.clone()))
        .collect()
}

/// Chooses the primary key, else the first unique columns that are never NULL.
fn choose_key(stream: &mut Stream, table: &Table) {
    if !stream.fields.iter().any(|it| matches!(it, Entry::Field(_))) {
        stream.unserved = Some(OmissionReason::NoFields);
        return;
    }
    let never_null = |columns: &&Vec<String>| {
        columns
            .iter()
            .all(|it| table.column(it).is_some_and(|it| !it.nullable))
    };
    if let Some(key) = key_fields(stream, &table.primary_key).filter(|it| !it.is_empty()) {
        let nullable = table
            .primary_key
            .iter()
            .filter(|it| !never_null(&&vec![(*it).clone()]));
        let nullable: Vec<&str> = nullable.map(String::as_str).collect();
        if !nullable.is_empty() {
            let names = comment::names(nullable);
            stream.key_note = Some(format!(
                "the store lets {names} be NULL, and such a record cannot be served"
            ));
        }
        stream.key = key;
        return;
    }
    let mut unique = table.unique.iter().filter(never_null);
    if let Some(key) = unique.find_map(|it| key_fields(stream, it)) {
        stream.key = key;
        stream.key_note =
            Some("there is no primary key: these are unique and never NULL".to_owned());
        return;
    }
    let missing = table
        .primary_key
        .iter()
        .find(|it| stream.field_of(it).is_none());
    stream.unserved = Some(match missing {
        Some(column) => OmissionReason::KeyLeftOut {
            column: column.clone(),
        },
        None => OmissionReason::NoKey,
    });
    let (key, note) = likely_key(stream, table);
    stream.key = key;
    stream.key_note = Some(note.to_owned());
}

/// The likely key of a table that declares none, such as a view.
fn likely_key(stream: &Stream, table: &Table) -> (Vec<String>, &'static str) {
    if let Some(key) = table.unique.iter().find_map(|it| key_fields(stream, it)) {
        return (key, "unique, yet the store lets it be NULL");
    }
    let own = naming::snake(&format!("{}_id", naming::singular_snake(&table.name)));
    let fields = || {
        let fields = table
            .columns
            .iter()
            .filter_map(|it| stream.field_of(&it.name));
        fields.filter(|it| it.datatype.can_be_key() && !it.many)
    };
    let named = |name: &str| fields().find(|it| naming::snake(&it.column) == name);
    let ending = || fields().find(|it| naming::snake(&it.column).ends_with("_id"));
    match named("id").or_else(|| named(&own)).or_else(ending) {
        Some(field) => (
            vec![field.name.clone()],
            "a guess by its name, nothing in the store says so",
        ),
        None => (
            Vec::new(),
            "name the fields that tell one record from another",
        ),
    }
}

fn choose_parts(stream: &mut Stream, table: &Table, given: &ExistingNames) {
    let refers = |name: &String| {
        table
            .foreign_keys
            .iter()
            .any(|key| key.columns.contains(name))
    };
    let candidates: Vec<Candidate<'_>> = table
        .columns
        .iter()
        .filter_map(|column| {
            let field = stream.field_of(&column.name)?;
            Some(Candidate {
                column,
                field: &field.name,
                refers: refers(&column.name),
                in_key: stream.key.contains(&field.name),
                is_listed: !column.one_of.is_empty() || !field.one_of.is_empty(),
            })
        })
        .collect();
    let full_name = person::full_name(
        table,
        &candidates,
        &mut relate::names_in_use(stream, table, given),
    );
    let title = guess::title(table, &candidates);
    let event_time = guess::event_time(&candidates);
    let updated = guess::updated(&candidates);
    // A view over live rows has no deleted ones to mark.
    let deleted = (table.kind == TableKind::Table)
        .then(|| guess::deleted(&candidates))
        .flatten();
    let search = guess::search(&candidates);
    stream.title = match &full_name {
        Some(field) => Some(Guess {
            field: field.name.clone(),
            note: "guess: a person's whole name",
        }),
        None => title,
    };
    stream.event_time = event_time;
    stream.updated = updated;
    stream.deleted = deleted;
    stream.search = search;
    stream.fields.extend(full_name.map(Entry::Computed));
}

/// Whether a mapping can hold the name of a table or column.
pub(super) fn is_mappable_name(name: &str) -> bool {
    !name.trim().is_empty()
        && name.chars().count() <= MAX_IDENTIFIER_CHARS
        && !name.chars().any(char::is_control)
        && sensitive::first_hidden(name).is_none()
        && !sensitive::looks_like_dsn(name)
}
