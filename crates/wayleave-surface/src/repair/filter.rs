//! Repairs the names, operators and values of a filter, whichever query language it imitates.

mod condition;

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::Datatype;

use super::names::Names;
pub(super) use condition::of_measure;

/// Maximum nesting depth of a repaired filter.
const MAX_DEPTH: usize = 4;

/// Infix operators of conditions written as text, longest first.
const SIGNS: &[(&str, &str)] = &[
    ("<=", "lte"),
    (">=", "gte"),
    ("<>", "ne"),
    ("!=", "ne"),
    ("==", "eq"),
    ("=", "eq"),
    ("<", "lt"),
    (">", "gt"),
];

/// The intended filter; `None` if it cannot be determined.
pub(super) fn repaired(names: &Names<'_>, given: &Json) -> Option<Map<String, Json>> {
    read(names, given, 0)
}

fn read(names: &Names<'_>, given: &Json, depth: usize) -> Option<Map<String, Json>> {
    if depth > MAX_DEPTH {
        return None;
    }
    match given {
        Json::Object(filter) => {
            if names.view("field").is_none()
                && let Some((field, condition)) = triple(filter)
            {
                return object(names, &Map::from_iter([(field, condition)]), depth);
            }
            object(names, filter, depth)
        }
        Json::Array(parts) => {
            let mut all = Map::new();
            for part in parts {
                join(&mut all, read(names, part, depth + 1)?)?;
            }
            Some(all)
        }
        Json::String(text) => {
            let mut all = Map::new();
            for part in conjuncts(text) {
                let (field, condition) = from_text(&part)?;
                join(
                    &mut all,
                    object(names, &Map::from_iter([(field, condition)]), depth)?,
                )?;
            }
            Some(all)
        }
        _ => None,
    }
}

/// A condition as an object: `{"field": "x", "op": ">", "value": 1}`.
fn triple(filter: &Map<String, Json>) -> Option<(String, Json)> {
    let get = |names: &[&str]| names.iter().find_map(|it| filter.get(*it));
    let field = get(&["field", "column", "property"])?.as_str()?;
    let value = get(&["value", "values"])?.clone();
    let condition = match get(&["op", "operator", "comparison"]) {
        None => value,
        Some(op) => {
            let op = op.as_str()?;
            json!({ op: value })
        }
    };
    Some((field.to_owned(), condition))
}

/// Splits a text at its `AND`s.
fn conjuncts(text: &str) -> Vec<String> {
    let mut parts: Vec<Vec<&str>> = vec![Vec::new()];
    for word in text.split_whitespace() {
        if word.eq_ignore_ascii_case("and") {
            parts.push(Vec::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(word);
        }
    }
    parts.iter().map(|words| words.join(" ")).collect()
}

/// `Country = 'Norway'` as a field and its condition.
pub(super) fn from_text(text: &str) -> Option<(String, Json)> {
    let first = SIGNS
        .iter()
        .filter_map(|(sign, op)| Some((text.find(sign)?, *sign, *op)));
    // The first operator in the text; of two that begin there, the longer.
    let (at, sign, op) = first.min_by_key(|(at, sign, _)| (*at, usize::MAX - sign.len()))?;
    let (field, rest) = text.split_at_checked(at)?;
    let value = literal(rest.strip_prefix(sign)?.trim())?;
    Some((field.trim().to_owned(), json!({ op: value })))
}

/// A literal of a query language.
pub(super) fn literal(text: &str) -> Option<Json> {
    for quote in ['\'', '"'] {
        let inner = text
            .strip_prefix(quote)
            .and_then(|it| it.strip_suffix(quote));
        if let Some(inner) = inner {
            return Some(inner.into());
        }
    }
    let word = text.trim();
    if word.is_empty() {
        return None;
    }
    let number = serde_json::from_str::<Json>(word).ok();
    Some(
        number
            .filter(|it| !it.is_object() && !it.is_array())
            .unwrap_or_else(|| word.into()),
    )
}

/// Merges conditions into `all`; `None` if two conditions on one field cannot share an object.
fn join(all: &mut Map<String, Json>, more: Map<String, Json>) -> Option<()> {
    for (name, condition) in more {
        match (all.get_mut(&name), condition) {
            (None, condition) => {
                all.insert(name, condition);
            }
            (Some(Json::Object(known)), Json::Object(condition)) => {
                for (op, value) in condition {
                    if known.insert(op, value).is_some() {
                        return None;
                    }
                }
            }
            _ => return None,
        }
    }
    Some(())
}

fn object(
    names: &Names<'_>,
    filter: &Map<String, Json>,
    depth: usize,
) -> Option<Map<String, Json>> {
    let mut all = Map::new();
    for (name, wanted) in filter {
        join(&mut all, member(names, name, wanted, depth)?)?;
    }
    Some(all)
}

fn one(name: impl Into<String>, condition: Json) -> Map<String, Json> {
    Map::from_iter([(name.into(), condition)])
}

/// One member of a filter.
fn member(names: &Names<'_>, name: &str, wanted: &Json, depth: usize) -> Option<Map<String, Json>> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(field) = names.view(name) {
        let condition = condition::repaired(names, Some(field), wanted);
        return Some(one(name, condition));
    }
    let word = name.trim_start_matches('$').to_ascii_lowercase();
    match (word.as_str(), wanted) {
        ("any" | "or", Json::Array(parts)) => {
            let parts = parts.iter().map(|it| read(names, it, depth + 1));
            let parts: Vec<Map<String, Json>> = parts.collect::<Option<_>>()?;
            return Some(one("any", json!(parts)));
        }
        ("and" | "all", Json::Array(_)) => return read(names, wanted, depth + 1),
        _ => {}
    }
    if let Some((field, op)) = suffixed(name) {
        return member(names, field, &json!({ op: wanted }), depth + 1);
    }
    if let Some(quantified) = related(names, name, wanted, depth) {
        return Some(quantified);
    }
    // A condition on records behind a to-many relation takes `some`.
    if let Some((relation, rest)) = names.many(name)
        && let Some(behind) = names.behind(&relation)
    {
        let inner = member(&behind, rest, wanted, depth + 1)?;
        return Some(one(relation, json!({ "some": inner })));
    }
    let path = names.field(name)?;
    let condition = condition::repaired(names, names.view(&path), wanted);
    Some(one(path, condition))
}

/// `price[gte]` and `price__gte` as a field and an operator.
fn suffixed(name: &str) -> Option<(&str, &str)> {
    let bracketed = name.strip_suffix(']').and_then(|it| it.split_once('['));
    bracketed.or_else(|| {
        let (field, op) = name.rsplit_once("__")?;
        let known = wayleave_plan::filter::operators(Datatype::String);
        known.contains(&op).then_some((field, op))
    })
}

/// A condition on related records, with an explicit or implied quantifier.
fn related(
    names: &Names<'_>,
    name: &str,
    wanted: &Json,
    depth: usize,
) -> Option<Map<String, Json>> {
    let wanted = wanted.as_object()?;
    let relation = names.relation(name)?;
    let behind = names.behind(&relation)?;
    let mut conditions = Map::new();
    for (quantifier, filter) in wanted {
        let ours = match quantifier
            .trim_start_matches('$')
            .to_ascii_lowercase()
            .as_str()
        {
            "some" | "any" | "exists" => "some",
            "none" | "not" | "notexists" => "none",
            _ => {
                let inner = object(&behind, wanted, depth + 1)?;
                return Some(one(relation, json!({ "some": inner })));
            }
        };
        let inner = match filter {
            Json::Bool(true) => Map::new(),
            filter => read(&behind, filter, depth + 1)?,
        };
        conditions.insert(ours.to_owned(), inner.into());
    }
    Some(one(relation, Json::Object(conditions)))
}
