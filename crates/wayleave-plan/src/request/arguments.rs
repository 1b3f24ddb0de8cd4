//! Parses the arguments of a call by name and shape, and refuses the first that does not fit.

use std::collections::HashSet;

use serde_json::{Map, Value as Json};
use wayleave_model::mapping::{AggregateOp, ExactNumber};
use wayleave_model::names::NameKind;

use super::{
    DEFAULT_ROWS, MAX_METRICS, MAX_ROWS, MAX_SORT_KEYS, Metric, MetricKind, SortKey, TimeGroup,
};
use crate::plan::Granularity;
use crate::refusal::{Call, Code, Kind, Refusal, quoted};

/// The operations of a measure, with their names on the wire.
pub(super) const METRIC_OPS: &[(&str, AggregateOp)] = &[
    ("count", AggregateOp::Count),
    ("count_distinct", AggregateOp::CountDistinct),
    ("sum", AggregateOp::Sum),
    ("avg", AggregateOp::Avg),
    ("min", AggregateOp::Min),
    ("max", AggregateOp::Max),
];

/// The granularities, with their names on the wire.
pub(super) fn granularities() -> Vec<(&'static str, Granularity)> {
    let all = Granularity::ALL.iter();
    all.map(|it| (it.as_str(), *it)).collect()
}

/// A JSON object of which every member is a known argument.
pub(super) struct Arguments<'a> {
    /// The prefix of names in `param`, such as `metrics.`.
    path: String,
    given: &'a Map<String, Json>,
}

fn invalid(message: impl Into<String>, param: impl Into<String>) -> Refusal {
    Refusal::new(Code::InvalidRequest, message).param(param)
}

impl<'a> Arguments<'a> {
    pub(super) fn new(
        tool: &str,
        given: &'a Map<String, Json>,
        known: &[&str],
    ) -> Result<Self, Refusal> {
        let complaint = format_args!("`{tool}` takes no argument");
        Self::known(given, known, String::new(), complaint)
    }

    fn known(
        given: &'a Map<String, Json>,
        known: &[&str],
        path: String,
        complaint: impl std::fmt::Display,
    ) -> Result<Self, Refusal> {
        match given.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(invalid(
                format!("{complaint} {}", quoted(name)),
                format!("{path}{name}"),
            )
            .allowed(known.iter().copied())
            .near_as(Kind::Argument, name)),
            None => Ok(Self { path, given }),
        }
    }

    fn get(&self, name: &str) -> Option<&'a Json> {
        // Only known names are left, so few that a linear scan is faster than hashing.
        let (_, value) = self.given.iter().find(|(given, _)| *given == name)?;
        Some(value).filter(|value| !value.is_null())
    }

    fn param(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }

    pub(super) fn wrong(&self, name: &str, needs: &str) -> Refusal {
        let param = self.param(name);
        invalid(format!("`{param}` must be {needs}"), param)
    }

    /// A non-empty text.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong(name, "a text that is not empty; or leave it out")),
        }
    }

    /// A text that may be empty, and is if it is absent.
    pub(super) fn any_text(&self, name: &str) -> Result<String, Refusal> {
        match self.get(name) {
            None => Ok(String::new()),
            Some(Json::String(text)) => Ok(text.clone()),
            Some(_) => Err(self.wrong(name, "a text")),
        }
    }

    pub(super) fn required(&self, name: &'static str) -> Result<String, Refusal> {
        let refusal = match self.get(name) {
            Some(Json::String(text)) if !text.is_empty() => return Ok(text.clone()),
            Some(_) => self.wrong(name, "a text that is not empty"),
            None => {
                let param = self.param(name);
                invalid(format!("`{param}` is missing"), param)
            }
        };
        let refusal = refusal.retry_with(name);
        Err(match name {
            "stream" => refusal.next(Call::new("schema", [])),
            "dataset" | "name" => refusal.next(Call::new("list_datasets", [])),
            _ => refusal,
        })
    }

    /// A text of at most `most` characters, counted as `maxLength` does.
    pub(super) fn short(&self, name: &'static str, most: usize) -> Result<String, Refusal> {
        let text = self.required(name)?;
        if text.chars().nth(most).is_some() {
            let needs = format!("a text of at most {most} characters");
            return Err(self.wrong(name, &needs).retry_with(name));
        }
        Ok(text)
    }

    /// One of a set of keywords.
    pub(super) fn word<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, Refusal> {
        let Some(given) = self.get(name) else {
            return Ok(None);
        };
        let spelt = match given {
            Json::String(text) => text.clone(),
            Json::Bool(flag) => flag.to_string(),
            _ => String::new(),
        };
        let known = |given: &str| words.iter().find(|(word, _)| *word == given);
        match given.as_str().and_then(known) {
            Some((_, value)) => Ok(Some(*value)),
            None => Err(self
                .wrong(name, "one of the allowed words")
                .allowed(words.iter().map(|(word, _)| *word))
                .near_as(Kind::Operator, &spelt)),
        }
    }

    pub(super) fn limit(&self) -> Result<u32, Refusal> {
        self.limit_or(DEFAULT_ROWS)
    }

    pub(super) fn limit_or(&self, default: u32) -> Result<u32, Refusal> {
        match self.get("limit") {
            None => Ok(default),
            Some(given) => whole_number(given)
                .and_then(|limit| u32::try_from(limit).ok())
                .filter(|limit| (1..=MAX_ROWS).contains(limit))
                .ok_or_else(|| {
                    self.wrong("limit", &format!("a whole number from 1 to {MAX_ROWS}"))
                        .retry_with("limit")
                }),
        }
    }

    /// An integer within bounds.
    pub(super) fn whole(
        &self,
        name: &'static str,
        least: usize,
        most: usize,
    ) -> Result<Option<usize>, Refusal> {
        let Some(given) = self.get(name) else {
            return Ok(None);
        };
        let number = whole_number(given).and_then(|it| usize::try_from(it).ok());
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self
                .wrong(name, &format!("a whole number from {least} to {most}"))
                .retry_with(name)),
        }
    }

    /// A non-empty list of distinct names.
    pub(super) fn names(&self, name: &str, most: usize) -> Result<Option<Vec<String>>, Refusal> {
        let Some(given) = self.get(name) else {
            return Ok(None);
        };
        let names = given
            .as_array()
            .and_then(|items| {
                let names = items.iter().map(|item| item.as_str().map(str::to_owned));
                names.collect::<Option<Vec<_>>>()
            })
            .filter(|names| !names.is_empty())
            .ok_or_else(|| self.wrong(name, &needs_names(given)))?;
        if names.len() > most {
            return Err(self.wrong(name, &format!("a list of at most {most} names")));
        }
        let mut earlier = HashSet::with_capacity(names.len());
        if let Some(twice) = names.iter().find(|it| !earlier.insert(it.as_str())) {
            let message = format!("`{name}` names {} twice", quoted(twice));
            return Err(invalid(message, self.param(name)));
        }
        Ok(Some(names))
    }

    /// A list of `field` and `-field`, or a single one.
    pub(super) fn sort(&self) -> Result<Vec<SortKey>, Refusal> {
        let keys: Vec<SortKey> = match self.get("sort") {
            None => return Ok(Vec::new()),
            Some(Json::String(one)) => vec![SortKey::parse(one)?],
            Some(Json::Array(items)) => items
                .iter()
                .map(|item| match item {
                    Json::String(one) => SortKey::parse(one),
                    _ => Err(self.bad_sort()),
                })
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(self.bad_sort()),
        };
        if keys.is_empty() || keys.len() > MAX_SORT_KEYS {
            return Err(self.bad_sort());
        }
        for (index, key) in keys.iter().enumerate() {
            if keys
                .iter()
                .take(index)
                .any(|earlier| earlier.name == key.name)
            {
                let message = format!("`sort` names {} twice", quoted(&key.name));
                return Err(Refusal::new(Code::InvalidSort, message).param("sort"));
            }
        }
        Ok(keys)
    }

    fn bad_sort(&self) -> Refusal {
        let message = format!(
            "`sort` must be a list of 1 to {MAX_SORT_KEYS} texts: `field`, or `-field` for largest first"
        );
        Refusal::new(Code::InvalidSort, message).param(self.param("sort"))
    }

    pub(super) fn filter(&self) -> Result<Option<Map<String, Json>>, Refusal> {
        match self.get("filter") {
            None => Ok(None),
            Some(Json::Object(filter)) => Ok(Some(filter.clone())),
            Some(_) => Err(Refusal::new(
                Code::InvalidFilter,
                "`filter` must be an object of fields, such as {\"status\": \"open\"} or {\"amount\": {\"gte\": 1}}",
            )
            .param("filter")),
        }
    }

    pub(super) fn metrics(&self) -> Result<Vec<Metric>, Refusal> {
        let needs =
            format!("a list of 1 to {MAX_METRICS} metrics, such as [\"count\", \"sum:amount\"]");
        let items = match self.get("metrics") {
            None => {
                let message = format!("`metrics` is missing: {needs}");
                return Err(invalid(message, "metrics").retry_with("metrics"));
            }
            Some(Json::Array(items)) if (1..=MAX_METRICS).contains(&items.len()) => items,
            Some(_) => return Err(self.wrong("metrics", &needs)),
        };
        let mut metrics: Vec<Metric> = Vec::with_capacity(items.len());
        for item in items {
            let metric = match item {
                Json::String(short) => match object_from_text(short) {
                    Some(given) => metric_from_object(&given)?,
                    None => metric_from_text(short)?,
                },
                Json::Object(given) => metric_from_object(given)?,
                _ => return Err(self.wrong("metrics", &needs)),
            };
            if metrics.iter().any(|it| it.label() == metric.label()) {
                let message = format!(
                    "`metrics` has `{}` twice; give one of them a name with `as`",
                    metric.label()
                );
                return Err(invalid(message, "metrics"));
            }
            metrics.push(metric);
        }
        Ok(metrics)
    }

    /// A JSON object.
    pub(super) fn object(
        &self,
        name: &str,
        of: &str,
    ) -> Result<Option<Map<String, Json>>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::Object(object)) => Ok(Some(object.clone())),
            Some(_) => Err(self.wrong(name, &format!("an object of {of}"))),
        }
    }

    /// A boolean; false if absent.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.get(name) {
            None => Ok(false),
            Some(Json::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    pub(super) fn time_group(&self) -> Result<Option<TimeGroup>, Refusal> {
        let given = match self.get("group_by_time") {
            None => return Ok(None),
            Some(Json::Object(given)) => Arguments::known(
                given,
                &["field", "granularity", "time_zone"],
                "group_by_time.".to_owned(),
                "`group_by_time` has no",
            )?,
            Some(_) => {
                return Err(
                    self.wrong(
                        "group_by_time",
                        "an object {field, granularity, time_zone}, such as {\"field\": \"created_at\", \"granularity\": \"month\"}",
                    )
                );
            }
        };
        let words = granularities();
        Ok(Some(TimeGroup {
            field: given.required("field")?,
            granularity: given.word("granularity", &words)?.ok_or_else(|| {
                given
                    .wrong("granularity", "one of the allowed words")
                    .allowed(words.iter().map(|(word, _)| *word))
            })?,
            time_zone: given.text("time_zone")?,
        }))
    }
}

/// Parses an object that was sent as JSON text, by clients that support only texts there.
fn object_from_text(text: &str) -> Option<Map<String, Json>> {
    let object = text.starts_with('{').then(|| serde_json::from_str(text));
    object?.ok()
}

/// Parses `count`, `sum:amount`, or the name of a measure.
fn metric_from_text(text: &str) -> Result<Metric, Refusal> {
    let op = |word: &str| {
        let found = METRIC_OPS.iter().find(|(known, _)| *known == word);
        found.map(|(_, op)| *op)
    };
    let Some((word, field)) = text.split_once(':') else {
        return match op(text) {
            Some(AggregateOp::Count) => Ok(Metric::new(AggregateOp::Count, None)),
            Some(op) => Err(needs_field(op)),
            None => Ok(Metric {
                kind: MetricKind::Measure(text.to_owned()),
                filter: None,
                name: None,
            }),
        };
    };
    let op = op(word).ok_or_else(|| {
        let message = format!(
            "{} is not a metric: unknown operation {}",
            quoted(text),
            quoted(word)
        );
        invalid(message, "metrics")
            .allowed(METRIC_OPS.iter().map(|(word, _)| *word))
            .near_as(Kind::Operator, word)
    })?;
    if field.is_empty() {
        return Err(needs_field(op));
    }
    Ok(Metric::new(op, Some(field.to_owned())))
}

fn needs_field(op: AggregateOp) -> Refusal {
    let message =
        format!("`{op}` needs a `field`, such as \"{op}:amount\"; `count` alone does not");
    invalid(message, "metrics.field")
}

fn metric_from_object(given: &Map<String, Json>) -> Result<Metric, Refusal> {
    let given = Arguments::known(
        given,
        &["op", "field", "measure", "filter", "as"],
        "metrics.".to_owned(),
        "a metric has no",
    )?;
    let kind = if let Some(measure) = given.text("measure")? {
        for other in ["op", "field"] {
            if given.get(other).is_some() {
                let message = format!("a metric has a `measure` or `{other}`, not both");
                return Err(invalid(message, "metrics.measure"));
            }
        }
        MetricKind::Measure(measure)
    } else {
        let op = given
            .word("op", METRIC_OPS)?
            .ok_or_else(|| given.wrong("op", "one of the allowed words"))?;
        let field = given.text("field")?;
        if field.is_none() && op != AggregateOp::Count {
            return Err(needs_field(op));
        }
        MetricKind::Aggregate { op, field }
    };
    let name = given.text("as")?;
    if name
        .as_deref()
        .is_some_and(|name| !NameKind::Field.matches(name))
    {
        let needs = format!("a name that matches `{}`", NameKind::Field.pattern());
        return Err(given.wrong("as", &needs));
    }
    Ok(Metric {
        kind,
        filter: given.filter()?,
        name,
    })
}

/// The requirement for a list of names, for messages. Shows a single name as the list to send.
fn needs_names(given: &Json) -> String {
    let one = given.as_str().filter(|name| is_name(name));
    match one {
        Some(name) => format!("a list of names: [\"{name}\"]"),
        None => "a list of names that is not empty; or leave it out".to_owned(),
    }
}

/// Whether a text is short and plain enough to be repeated in a suggested call.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=64).contains(&text.len()) && text.chars().all(plain)
}

/// A non-negative integer, also written as `10.0` by clients without an integer type.
fn whole_number(given: &Json) -> Option<u64> {
    let exact = || {
        ExactNumber::from_f64(given.as_f64()?)?
            .to_string()
            .parse()
            .ok()
    };
    given.as_u64().or_else(exact)
}
