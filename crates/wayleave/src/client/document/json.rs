//! JSON, with the comments and trailing commas that some clients allow.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstNode, CstObject, CstRootNode},
};
use serde_json::Value;
use wayleave_model::sensitive;

use super::{DocumentError, EntryEdit, HIDDEN_VALUE, place};
use crate::client::entry::is_same_server;

const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn put(text: &str, what: &EntryEdit<'_>) -> Result<String, DocumentError> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = parse(text)?;
    let settings = root.object_value().ok_or_else(|| DocumentError::Shape {
        member: "it".to_owned(),
        expected: "an object",
    })?;
    let servers = object_in(&settings, what.kind.servers())?;
    put_entry(&servers, what)?;
    if let Some(input) = &what.entry.input {
        put_input(&settings, input)?;
    }
    Ok(root.to_string())
}

fn parse(text: &str) -> Result<CstRootNode, DocumentError> {
    CstRootNode::parse(text, &OPTIONS).map_err(|error| {
        let (line, column) = place(text, error.range().start);
        let what = error.kind().to_string();
        let mut letters = what.chars();
        let first = letters.next().map(|c| c.to_ascii_lowercase());
        DocumentError::Syntax {
            line,
            column,
            what: first.into_iter().chain(letters).collect(),
        }
    })
}

/// The member of this name, which must not be duplicated.
fn one(object: &CstObject, name: &str) -> Result<Option<CstNode>, DocumentError> {
    let named = |it: &jsonc_parser::cst::CstObjectProp| it.decoded_name().as_deref() == Some(name);
    let mut found = object.properties().into_iter().filter(named);
    let first = found.next();
    if found.next().is_some() {
        return Err(DocumentError::Twice {
            member: name.to_owned(),
        });
    }
    Ok(first.and_then(|it| it.value()))
}

fn object_in(object: &CstObject, name: &str) -> Result<CstObject, DocumentError> {
    match one(object, name)? {
        None => Ok(object.object_value_or_set(name)),
        Some(node) => node.as_object().ok_or_else(|| DocumentError::Shape {
            member: name.to_owned(),
            expected: "an object",
        }),
    }
}

fn put_entry(servers: &CstObject, what: &EntryEdit<'_>) -> Result<(), DocumentError> {
    let entry = what.entry;
    let there = one(servers, &entry.name)?;
    let object = there.as_ref().and_then(CstNode::as_object);
    let ours = there
        .and_then(|node| node.to_serde_value())
        .map(|value| is_ours(&value, what));
    match (ours, object) {
        (None, _) => {
            servers.append(&entry.name, input(&Value::from(entry.members.clone())));
        }
        (Some(true), Some(object)) => merge(&object, what)?,
        (Some(_), _) if what.replace => {
            if let Some(member) = servers.get(&entry.name) {
                member.set_value(input(&Value::from(entry.members.clone())));
            }
        }
        (Some(_), _) => {
            return Err(DocumentError::Taken {
                name: entry.name.clone(),
            });
        }
    }
    Ok(())
}

fn is_ours(value: &Value, what: &EntryEdit<'_>) -> bool {
    let arguments = value.get("args").and_then(Value::as_array);
    let arguments: Vec<_> = arguments
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let urls = ["url", "httpUrl", "serverUrl"];
    let url = urls.iter().find_map(|it| value.get(it)?.as_str());
    is_same_server(what.server, &arguments, url)
}

/// Sets the members of the entry, and keeps others that a person set for the server.
fn merge(object: &CstObject, what: &EntryEdit<'_>) -> Result<(), DocumentError> {
    for (name, wanted) in &what.entry.members {
        match wanted {
            Value::Object(members) => {
                let inner = object_in(object, name)?;
                for (name, wanted) in members {
                    set(&inner, name, wanted)?;
                }
            }
            wanted => set(object, name, wanted)?,
        }
    }
    for name in what.entry.contradicting() {
        if let Some(member) = object.get(name) {
            member.remove();
        }
    }
    Ok(())
}

fn set(object: &CstObject, name: &str, wanted: &Value) -> Result<(), DocumentError> {
    let there = one(object, name)?.and_then(|node| node.to_serde_value());
    if there.as_ref() == Some(wanted) {
        return Ok(());
    }
    match object.get(name) {
        Some(member) => member.set_value(input(wanted)),
        None => {
            object.append(name, input(wanted));
        }
    }
    Ok(())
}

/// Adds an input question, unless there is one with the same id.
fn put_input(settings: &CstObject, wanted: &Value) -> Result<(), DocumentError> {
    let inputs = match one(settings, "inputs")? {
        None => settings.array_value_or_set("inputs"),
        Some(node) => node.as_array().ok_or_else(|| DocumentError::Shape {
            member: "inputs".to_owned(),
            expected: "a list",
        })?,
    };
    let asked = inputs.elements().iter().any(|it| {
        let there = it.to_serde_value();
        there.is_some_and(|it| it.get("id") == wanted.get("id"))
    });
    if !asked {
        inputs.append(input(wanted));
    }
    Ok(())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(it) => CstInputValue::Bool(*it),
        Value::Number(it) => CstInputValue::Number(it.to_string()),
        Value::String(it) => CstInputValue::String(it.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), input(value)))
                .collect(),
        ),
    }
}

/// The text, with every value hidden that does not belong to this entry.
pub(super) fn shown(text: &str, what: &EntryEdit<'_>) -> String {
    let Ok(root) = parse(text) else {
        return String::new();
    };
    withhold(&CstNode::from(root.clone()), &mut Vec::new(), what);
    root.to_string()
}

fn withhold(node: &CstNode, path: &mut Vec<String>, what: &EntryEdit<'_>) {
    if let Some(text) = node.as_string_lit() {
        let value = text.decoded_value();
        if !value.is_ok_and(|value| is_shown(path, &value, what)) {
            text.set_raw_value(format!("\"{HIDDEN_VALUE}\""));
        }
    } else if let Some(comment) = node.as_comment() {
        let hidden = if comment.is_line_comment() {
            format!("// {HIDDEN_VALUE}")
        } else {
            format!("/* {HIDDEN_VALUE} */")
        };
        comment.set_raw_value(hidden);
    } else if let Some(member) = node.as_object_prop() {
        path.push(member.decoded_name().unwrap_or_default());
        for node in member.children().into_iter().skip(1) {
            withhold(&node, path, what);
        }
        path.pop();
    } else {
        for node in node.children() {
            withhold(&node, path, what);
        }
    }
}

fn is_shown(path: &[String], value: &str, what: &EntryEdit<'_>) -> bool {
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["inputs", ..] => what.entry.input.as_ref().is_some_and(|input| {
            let ours = input.as_object().into_iter().flatten();
            ours.into_iter().any(|(_, it)| it.as_str() == Some(value))
        }),
        // May contain a secret of the person: show only values this program wrote, and references.
        [servers, name, place @ ("env" | "headers"), member]
            if *servers == what.kind.servers() && *name == what.entry.name =>
        {
            let wanted = what.entry.members.get(*place).and_then(|it| it.get(member));
            wanted.and_then(Value::as_str) == Some(value) || is_reference(value)
        }
        [servers, name, ..] => *servers == what.kind.servers() && *name == what.entry.name,
        _ => false,
    }
}

/// Whether a value refers to a variable instead of holding its value.
fn is_reference(value: &str) -> bool {
    let labelled = format!("token: \"{value}\"");
    sensitive::redact(&labelled) == labelled
}
