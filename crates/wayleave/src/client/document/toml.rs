//! TOML, with its comments.

use serde_json::Value as Json;
use toml_edit::{
    Array, DocumentMut, Formatted, InlineTable, Item, Table, TableLike, Value, value,
    visit_mut::{VisitMut, visit_table_like_kv_mut},
};

use super::{DocumentError, EntryEdit, HIDDEN_VALUE, place};
use crate::client::entry::is_same_server;

pub(super) fn put(text: &str, what: &EntryEdit<'_>) -> Result<String, DocumentError> {
    let mut document = parse(text)?;
    let servers = document
        .as_table_mut()
        .entry(what.kind.servers())
        .or_insert_with(|| {
            let mut servers = Table::new();
            servers.set_implicit(true);
            Item::Table(servers)
        });
    let inline = servers.is_inline_table();
    let servers = table(servers, what.kind.servers())?;
    let entry = what.entry;
    let Some(there) = servers.get_mut(&entry.name) else {
        servers.insert(&entry.name, made(what, inline));
        return Ok(document.to_string());
    };
    if there.as_table_like().is_some_and(|it| is_ours(it, what)) {
        merge(table(there, &entry.name)?, what)?;
    } else if what.replace {
        // Replaced in place, with the comments above it.
        let decor = there.as_table().map(|it| it.decor().clone());
        *there = made(what, inline || !there.is_table());
        if let (Some(made), Some(decor)) = (there.as_table_mut(), decor) {
            *made.decor_mut() = decor;
        }
    } else {
        return Err(DocumentError::Taken {
            name: entry.name.clone(),
        });
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, DocumentError> {
    text.parse::<DocumentMut>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let (line, column) = place(text, at);
        // Only the message: the error's own excerpt could contain a secret.
        let what = error.message().lines().next().unwrap_or_default();
        DocumentError::Syntax {
            line,
            column,
            what: what.to_owned(),
        }
    })
}

fn table<'a>(item: &'a mut Item, member: &str) -> Result<&'a mut dyn TableLike, DocumentError> {
    item.as_table_like_mut()
        .ok_or_else(|| DocumentError::Shape {
            member: member.to_owned(),
            expected: "a table",
        })
}

fn made(what: &EntryEdit<'_>, inline: bool) -> Item {
    let members = what
        .entry
        .members
        .iter()
        .map(|(name, wanted)| (name.as_str(), of_json(wanted)));
    if inline {
        value(members.collect::<InlineTable>())
    } else {
        let mut table = Table::new();
        members.for_each(|(name, wanted)| {
            table.insert(name, value(wanted));
        });
        Item::Table(table)
    }
}

fn is_ours(table: &dyn TableLike, what: &EntryEdit<'_>) -> bool {
    let arguments = table.get("args").and_then(Item::as_array);
    let arguments: Vec<_> = arguments
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let url = table.get("url").and_then(Item::as_str);
    is_same_server(what.server, &arguments, url)
}

fn merge(table: &mut dyn TableLike, what: &EntryEdit<'_>) -> Result<(), DocumentError> {
    for (name, wanted) in &what.entry.members {
        if name == "env_vars" {
            add_names(table, name, wanted)?;
            continue;
        }
        let there = table.get(name).and_then(Item::as_value);
        if there.is_none_or(|there| !same(there, wanted)) {
            replace(table, name, of_json(wanted));
        }
    }
    for name in what.entry.contradicting() {
        table.remove(name);
    }
    Ok(())
}

/// Adds the missing names to a list.
fn add_names(table: &mut dyn TableLike, member: &str, wanted: &Json) -> Result<(), DocumentError> {
    let names = table
        .entry(member)
        .or_insert_with(|| value(Array::new()))
        .as_array_mut()
        .ok_or_else(|| DocumentError::Shape {
            member: member.to_owned(),
            expected: "a list",
        })?;
    let wanted = wanted.as_array().into_iter().flatten();
    for name in wanted.filter_map(Json::as_str) {
        if !names.iter().any(|it| it.as_str() == Some(name)) {
            names.push(name);
        }
    }
    Ok(())
}

/// Sets a value, and keeps its trailing comment.
fn replace(table: &mut dyn TableLike, name: &str, mut wanted: Value) {
    match table.get_mut(name).and_then(Item::as_value_mut) {
        Some(there) => {
            *wanted.decor_mut() = there.decor().clone();
            *there = wanted;
        }
        None => {
            table.insert(name, value(wanted));
        }
    }
}

fn same(there: &Value, wanted: &Json) -> bool {
    match (there, wanted) {
        (Value::String(there), Json::String(wanted)) => there.value() == wanted,
        (Value::Array(there), Json::Array(wanted)) => {
            there.len() == wanted.len() && there.iter().zip(wanted).all(|(a, b)| same(a, b))
        }
        _ => false,
    }
}

/// Converts an entry's value: TOML entries have only texts and lists of texts.
fn of_json(wanted: &Json) -> Value {
    match wanted {
        Json::Array(values) => Value::Array(values.iter().map(of_json).collect()),
        Json::String(text) => Value::from(text.as_str()),
        other => Value::from(other.to_string()),
    }
}

/// The text, with every value hidden that does not belong to this entry.
pub(super) fn shown(text: &str, what: &EntryEdit<'_>) -> String {
    let Ok(mut document) = parse(text) else {
        return String::new();
    };
    let mut withhold = HideValues {
        what: *what,
        path: Vec::new(),
    };
    withhold.visit_document_mut(&mut document);
    let text = document.to_string();
    text.split_inclusive('\n').map(without_comment).collect()
}

/// A line with its comment hidden. Every text that could contain a `#` is hidden already.
fn without_comment(line: &str) -> String {
    match line.split_once('#') {
        Some((code, comment)) => {
            let end = if comment.ends_with('\n') { "\n" } else { "" };
            format!("{code}# {HIDDEN_VALUE}{end}")
        }
        None => line.to_owned(),
    }
}

struct HideValues<'a> {
    what: EntryEdit<'a>,
    path: Vec<String>,
}

impl VisitMut for HideValues<'_> {
    fn visit_table_like_kv_mut(&mut self, key: toml_edit::KeyMut<'_>, node: &mut Item) {
        self.path.push(key.get().to_owned());
        visit_table_like_kv_mut(self, key, node);
        self.path.pop();
    }

    fn visit_string_mut(&mut self, node: &mut Formatted<String>) {
        let path: Vec<_> = self.path.iter().map(String::as_str).collect();
        let (servers, entry) = (self.what.kind.servers(), &self.what.entry.name);
        let ours =
            matches!(path.as_slice(), [first, name, ..] if *first == servers && *name == entry);
        let guarded = matches!(path.get(2), Some(&("env" | "http_headers")));
        if !ours || guarded || node.value().contains('#') {
            let decor = node.decor().clone();
            *node = Formatted::new(HIDDEN_VALUE.to_owned());
            *node.decor_mut() = decor;
        }
    }
}
