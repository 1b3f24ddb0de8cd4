//! Repairs the arguments that only `aggregate` takes.

use serde_json::{Map, Value as Json, json};
use wayleave_plan::aggregate::AggregatePlan;
use wayleave_plan::refusal::argument_meant;
use wayleave_plan::request::AggregateRequest;

use super::names::Names;
use super::{Arguments, filter, metrics, sort, split_outside_brackets};
use crate::call_context::CallContext;

/// Granularities and their synonyms.
const GRANULARITIES: &[(&str, &[&str])] = &[
    ("minute", &["minutes", "minutely", "min"]),
    ("hour", &["hours", "hourly"]),
    ("day", &["days", "daily", "date"]),
    ("week", &["weeks", "weekly"]),
    ("month", &["months", "monthly"]),
    ("quarter", &["quarters", "quarterly"]),
    ("year", &["years", "yearly", "annual", "annually"]),
];

/// Repairs the arguments of an aggregate.
pub(super) fn repair(
    names: &Names<'_>,
    call: &CallContext<'_>,
    arguments: &mut Arguments,
) -> Option<()> {
    let metrics = metrics::repaired(names, arguments.get("metrics"));
    arguments.insert("metrics".to_owned(), json!(metrics));
    let mut time = match arguments.remove("group_by_time") {
        Some(given) => Some(period(names, &given)?),
        None => None,
    };
    if let Some(given) = arguments.remove("group_by") {
        let keys = keys(names, &given, &mut time)?;
        if !keys.is_empty() {
            arguments.insert("group_by".to_owned(), json!(keys));
        }
    }
    if let Some(time) = time {
        arguments.insert("group_by_time".to_owned(), time);
    }
    let sorted = arguments.remove("sort");
    let having = arguments.remove("having");
    let cursor = arguments.remove("cursor");
    let header = header(call, arguments).unwrap_or_default();
    if let Some(given) = sorted {
        let keys = sort::keys(&given).into_iter();
        let keys = keys.map(|key| {
            let name = column(names, &header, &key.name);
            key.named(name)
        });
        arguments.insert("sort".to_owned(), keys.collect());
    }
    if let Some(given) = having {
        let having = conditions(names, &header, &given).unwrap_or(given);
        arguments.insert("having".to_owned(), having);
    }
    arguments.extend(cursor.map(|it| ("cursor".to_owned(), it)));
    Some(())
}

/// The column names of the answer.
fn header(call: &CallContext<'_>, arguments: &Arguments) -> Option<Vec<String>> {
    let request = AggregateRequest::parse(arguments).ok()?;
    let plan = AggregatePlan::new(&call.view, &request, call.seal).ok()?;
    Some(plan.header().to_vec())
}

/// The column of the answer that a name refers to.
fn column(names: &Names<'_>, header: &[String], name: &str) -> Option<String> {
    let known = |wanted: &str| header.iter().find(|it| *it == wanted).cloned();
    if let Some(found) = known(name) {
        return Some(found);
    }
    let plain = |text: &str| text.replace(['_', ' ', ':'], "").to_lowercase();
    if let Some(found) = header.iter().find(|it| plain(it) == plain(name)) {
        return Some(found.clone());
    }
    // A metric, or the field of one.
    for metric in metrics::repaired(names, Some(&name.into())) {
        let label = metric.as_str().map(|it| it.replacen(':', "_", 1));
        if let Some(found) = label.and_then(|it| known(&it)) {
            return Some(found);
        }
    }
    if let Some(found) = names.field(name).and_then(|it| known(&it)) {
        return Some(found);
    }
    // A relation stands for its title, which comes after its key.
    let prefix = format!("{}.", names.relation(name).unwrap_or_default());
    let behind = header.iter().rev().find(|it| it.starts_with(&prefix));
    let near = || wayleave_model::nearest::nearest(name, header.iter().map(String::as_str));
    behind.cloned().or_else(|| near().map(str::to_owned))
}

/// The intended condition on groups.
fn conditions(names: &Names<'_>, header: &[String], given: &Json) -> Option<Json> {
    let given = match given {
        Json::String(text) => {
            let (name, condition) = filter::from_text(text)?;
            Map::from_iter([(name, condition)])
        }
        Json::Object(given) => given.clone(),
        _ => return None,
    };
    let mut having = Map::new();
    for (name, wanted) in given {
        if name == "any" {
            having.insert(name, wanted);
            continue;
        }
        let name = column(names, header, &name)?;
        having.insert(name, filter::of_measure(&wanted));
    }
    Some(Json::Object(having))
}

/// The intended keys; a period is moved to `time`.
fn keys(names: &Names<'_>, given: &Json, time: &mut Option<Json>) -> Option<Vec<String>> {
    let items = match given {
        Json::String(text) => {
            let parts = split_outside_brackets(text);
            parts.into_iter().map(Json::from).collect()
        }
        Json::Array(items) => items.clone(),
        other => vec![other.clone()],
    };
    let mut keys: Vec<String> = Vec::new();
    for item in items {
        if time.is_none()
            && let Some(found) = period_key(names, &item)
        {
            *time = Some(found);
            continue;
        }
        let field = item.get("field").unwrap_or(&item);
        let name = field.as_str()?;
        let is_relation = names.stream().relation(name).is_some();
        let path = (!is_relation).then(|| names.field(name)).flatten();
        let key = path.unwrap_or_else(|| name.to_owned());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Some(keys)
}

fn granularity(word: &str) -> Option<&'static str> {
    let word = word.trim().trim_matches(['\'', '"']).to_ascii_lowercase();
    let found = GRANULARITIES
        .iter()
        .find(|(ours, others)| *ours == word || others.contains(&word.as_str()));
    found.map(|(ours, _)| *ours)
}

/// `year(x)`, `date_trunc('month', x)`, `x:month`, `{"field": "x", "granularity": "month"}`.
fn period_key(names: &Names<'_>, item: &Json) -> Option<Json> {
    let Json::String(text) = item else {
        return item.get("granularity").and_then(|_| period(names, item));
    };
    let (word, field) = if let Some((function, rest)) = text.split_once('(') {
        let inner = rest.strip_suffix(')')?;
        inner.split_once(',').unwrap_or((function, inner))
    } else {
        let (field, word) = text.split_once(':')?;
        (word, field)
    };
    let field = names.field(field.trim())?;
    Some(json!({ "field": field, "granularity": granularity(word)? }))
}

/// The intended period.
fn period(names: &Names<'_>, given: &Json) -> Option<Json> {
    let given = match given {
        Json::String(text) => {
            let found = period_key(names, given);
            return found.or_else(|| {
                let field = names.field(text)?;
                Some(json!({ "field": field, "granularity": "month" }))
            });
        }
        Json::Object(given) => given,
        _ => return None,
    };
    let known = ["field", "granularity", "time_zone"];
    let mut time = Map::new();
    for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        let ours = match name.as_str() {
            other if known.contains(&other) => other.to_owned(),
            other => argument_meant(other, &known)?,
        };
        time.insert(ours, value.clone());
    }
    let field = time.get("field")?.as_str()?;
    let word = time.get("granularity")?.as_str()?;
    let (field, word) = (names.field(field)?, granularity(word)?);
    time.insert("field".to_owned(), field.into());
    time.insert("granularity".to_owned(), word.into());
    Some(Json::Object(time))
}
