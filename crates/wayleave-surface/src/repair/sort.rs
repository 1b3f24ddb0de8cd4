//! Parses sort keys written in the syntax of other query languages.

use serde_json::{Map, Value as Json};

use super::split_outside_brackets;

/// A sort key.
pub(super) struct SortKey {
    /// The name as given.
    pub(super) name: String,
    pub(super) descending: bool,
}

impl SortKey {
    /// The key in our syntax, under another name if given.
    pub(super) fn named(self, name: Option<String>) -> String {
        let sign = if self.descending { "-" } else { "" };
        format!("{sign}{}", name.unwrap_or(self.name))
    }
}

/// Sort keys in any form: `"x desc, y"`, `{"field": "x", "order": "desc"}`, `{"x": -1}`.
pub(super) fn keys(given: &Json) -> Vec<SortKey> {
    match given {
        Json::String(text) => {
            let parts = split_outside_brackets(text);
            parts.iter().map(|it| from_text(it)).collect()
        }
        Json::Array(items) => items.iter().flat_map(keys).collect(),
        Json::Object(members) => from_object(members),
        _ => Vec::new(),
    }
}

fn from_text(text: &str) -> SortKey {
    let (descending, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut name = rest.trim().to_owned();
    let mut descending = descending;
    for ending in ["nulls last", "nulls first"] {
        if name.to_ascii_lowercase().ends_with(ending) {
            name.truncate(name.len() - ending.len());
            name.truncate(name.trim_end().len());
        }
    }
    let after = name.rsplit([' ', ':']).next().map(str::to_ascii_lowercase);
    if let Some(word) = after.filter(|it| it.len() < name.len())
        && let Some(is_descending) = direction(&word)
    {
        name.truncate(name.len() - word.len());
        name.truncate(name.trim_end_matches([' ', ':']).len());
        descending = is_descending;
    }
    SortKey { name, descending }
}

fn direction(word: &str) -> Option<bool> {
    match word {
        "desc" | "descending" | "-1" => Some(true),
        "asc" | "ascending" | "1" => Some(false),
        _ => None,
    }
}

fn from_object(members: &Map<String, Json>) -> Vec<SortKey> {
    let word = |value: &Json| match value {
        Json::String(text) => direction(&text.to_ascii_lowercase()),
        Json::Number(number) => direction(&number.to_string()),
        Json::Bool(flag) => Some(*flag),
        _ => None,
    };
    let named = ["field", "column", "by", "name"];
    let name = named.iter().find_map(|it| members.get(*it)?.as_str());
    if let Some(name) = name {
        let ordered = ["order", "direction", "dir", "desc", "descending"];
        let order = ordered.iter().find_map(|it| members.get(*it));
        return vec![SortKey {
            name: name.to_owned(),
            descending: order.and_then(word).unwrap_or(false),
        }];
    }
    let keys = members.iter().map(|(name, value)| SortKey {
        name: name.clone(),
        descending: word(value).unwrap_or(false),
    });
    keys.collect()
}
