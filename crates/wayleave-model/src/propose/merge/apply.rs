//! Updates the streams of a document.

use toml_edit::{Decor, DocumentMut, InlineTable, Item, Key, Table, Value};

use super::mark::{self, CHANGED, GONE, NEW};
use super::{Change, MergeContext, comment, is_computed, sampled, text};
use crate::propose::draft::{Relation, Stream};
use crate::propose::{render, seen_columns};

/// Marks missing and changed entries and adds new ones, in every stream.
pub(super) fn to_streams(document: &mut DocumentMut, context: &MergeContext<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    let Some(Item::Table(streams)) = document.get_mut("streams") else {
        return changes;
    };
    let read =
        |(stream, item): (&str, &Item)| (stream.to_owned(), text(item, "table", stream).to_owned());
    let all: Vec<(String, String)> = streams.iter().map(read).collect();
    for (stream, table) in all {
        if context.catalogue.table(&table).is_none() {
            let words = format!("table {} is not there any more", comment::name(&table));
            mark::put(streams, &stream, GONE, &words);
            changes.push(Change::GoneTable { table, stream });
            continue;
        }
        mark::take(streams, &stream, GONE);
        if let Some(Item::Table(of)) = streams.get_mut(&stream) {
            changes.extend(to_fields(of, &table, context));
            if context.given.streams.get(&table) == Some(&stream) {
                changes.extend(add_fields(of, &table, context));
            }
        }
    }
    changes
}

/// Marks the fields whose columns are missing or declared differently.
fn to_fields(stream: &mut Table, table: &str, context: &MergeContext<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    let Some(Item::Table(fields)) = stream.get_mut("fields") else {
        return changes;
    };
    let read =
        |(field, item): (&str, &Item)| (field.to_owned(), text(item, "column", field).to_owned());
    let stored = fields.iter().filter(|(_, item)| !is_computed(item));
    let all: Vec<(String, String)> = stored.map(read).collect();
    let drafted = context.draft.streams.iter().find(|it| it.table == table);
    for (field, column) in all {
        let found = context
            .catalogue
            .table(table)
            .and_then(|it| it.column(&column));
        let table = table.to_owned();
        let Some(found) = found else {
            let words = format!("column {} is not there any more", comment::name(&column));
            mark::put(fields, &field, GONE, &words);
            changes.push(Change::GoneColumn {
                table,
                column,
                field,
            });
            continue;
        };
        mark::take(fields, &field, GONE);
        let is = seen_columns::declared(found);
        if let Some(was) = context.declared(&table, &column).filter(|was| **was != is) {
            let words = format!("was {} and is {}", comment::name(was), comment::name(&is));
            mark::put(fields, &field, CHANGED, &words);
            changes.push(Change::Redeclared {
                table: table.clone(),
                column: column.clone(),
                was: was.clone(),
                is,
            });
        }
        let drafted = drafted.and_then(|it| it.field_of(&column));
        if drafted.is_some_and(|it| sampled::list_values(fields, &field, it)) {
            changes.push(Change::Sampled {
                table,
                column,
                field,
            });
        }
    }
    changes
}

/// Adds the new columns of the table, and the relations that need them.
fn add_fields(stream: &mut Table, table: &str, context: &MergeContext<'_>) -> Vec<Change> {
    let new = context.columns(table);
    let Some(draft) = context.draft.streams.iter().find(|it| it.table == table) else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    for column in &new {
        let field = draft.field_of(column);
        if let Some(field) = field {
            let note = field.note.map(str::to_owned);
            let value = render::field_value(field);
            insert(stream, "fields", &field.name, &value, note);
        }
        changes.push(Change::NewColumn {
            table: table.to_owned(),
            column: (*column).clone(),
            field: field.map(|it| it.name.clone()),
        });
    }
    add_relations(stream, draft, &new, context);
    changes
}

fn add_relations(stream: &mut Table, draft: &Stream, new: &[&String], context: &MergeContext<'_>) {
    let is_gained = |relation: &Relation| match &relation.reverse_of {
        Some(forward) => {
            let near = |(ours, _): &(String, String)| context.reads(&draft.table, ours);
            context.is_gained(forward) && relation.on.iter().all(near)
        }
        None => relation.on.iter().any(|(ours, _)| new.contains(&ours)),
    };
    for relation in &draft.relations {
        let name = &relation.name;
        let is_there = stream
            .get("relations")
            .is_some_and(|it| it.get(name).is_some());
        if is_gained(relation) && !is_there && context.holds(&relation.to, &relation.on) {
            let value = render::relation_value(relation);
            let note = relation.reverse_of.as_ref().map(render::reverse_note);
            insert(stream, "relations", name, &value, note);
        }
    }
}

/// Adds an entry the way its neighbours are written: under a header of its own, or on one line.
fn insert(stream: &mut Table, section: &str, name: &str, value: &str, note: Option<String>) {
    let Ok(Value::InlineTable(value)) = value.parse::<Value>() else {
        return;
    };
    let entries = stream
        .entry(section)
        .or_insert_with(|| Item::Table(Table::new()));
    match entries {
        Item::Table(entries) => {
            let headed = !entries.is_empty()
                && entries
                    .iter()
                    .all(|(_, it)| it.as_table().is_some_and(|it| !it.is_dotted()));
            if headed {
                entries.insert(name, Item::Table(under_header(value, note)));
            } else {
                let decor = Decor::new(format!("{NEW}\n"), " ");
                let key = Key::new(name).with_leaf_decor(decor);
                let value = Value::InlineTable(spaced(value, note));
                entries.insert_formatted(&key, Item::Value(value));
            }
        }
        Item::Value(Value::InlineTable(entries)) => {
            entries.insert(name, Value::InlineTable(value));
        }
        _ => {}
    }
}

fn under_header(value: InlineTable, note: Option<String>) -> Table {
    let mut table = value.into_table();
    table.fmt();
    let note = note.map(|it| format!("# {it}\n")).unwrap_or_default();
    table.decor_mut().set_prefix(format!("\n{NEW}\n{note}"));
    table
}

fn spaced(mut value: InlineTable, note: Option<String>) -> InlineTable {
    value.decor_mut().set_prefix(" ");
    if let Some(note) = note {
        value.decor_mut().set_suffix(format!("  # {note}"));
    }
    value
}
