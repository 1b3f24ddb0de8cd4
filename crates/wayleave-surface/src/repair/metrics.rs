//! Repairs metrics written in the syntax of other query languages.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::{AggregateOp, Datatype};
use wayleave_plan::refusal::argument_meant;
use wayleave_plan::view::MeasureView;

use super::names::Names;
use super::{filter, split_outside_brackets};

/// Operations and their synonyms.
const OPS: &[(&str, &[&str])] = &[
    ("count", &["cnt", "number"]),
    (
        "count_distinct",
        &[
            "countdistinct",
            "distinct",
            "distinct_count",
            "unique",
            "nunique",
        ],
    ),
    ("sum", &["total"]),
    ("avg", &["average", "mean"]),
    ("min", &["minimum", "lowest"]),
    ("max", &["maximum", "highest"]),
];

/// The intended metrics.
pub(super) fn repaired(names: &Names<'_>, given: Option<&Json>) -> Vec<Json> {
    match given {
        None => vec!["count".into()],
        Some(Json::String(text)) => {
            let parts = split_outside_brackets(text);
            parts.iter().map(|it| from_text(names, it)).collect()
        }
        Some(Json::Array(items)) => items.iter().map(|it| one(names, it)).collect(),
        Some(other) => vec![one(names, other)],
    }
}

fn one(names: &Names<'_>, given: &Json) -> Json {
    match given {
        Json::String(text) => from_text(names, text),
        Json::Object(given) => from_object(names, given).unwrap_or_else(|| json!(given)),
        other => other.clone(),
    }
}

fn op(word: &str) -> Option<&'static str> {
    let word = word.trim().to_ascii_lowercase();
    let found = OPS
        .iter()
        .find(|(ours, others)| *ours == word || others.contains(&word.as_str()));
    found.map(|(ours, _)| *ours)
}

/// The intended metric of a text, or the text itself if none is found.
fn from_text(names: &Names<'_>, text: &str) -> Json {
    let measures = names.stream().measures();
    if text == "count" || measures.iter().any(|it| it.name() == text) {
        return text.into();
    }
    let (text, name) = aliased(text);
    let found = called(names, text)
        .or_else(|| measure(measures, text).map(|name| ParsedMetric::Measure(name.to_owned())))
        .or_else(|| parted(names, text))
        .or_else(|| summed(names, text));
    match found {
        Some(parsed) => parsed.written(name),
        None => text.into(),
    }
}

/// A metric parsed from text.
enum ParsedMetric {
    Measure(String),
    Aggregate { op: String, field: Option<String> },
}

impl ParsedMetric {
    fn written(self, name: Option<&str>) -> Json {
        match (self, name) {
            (Self::Measure(measure), None) => measure.into(),
            (Self::Measure(measure), Some(name)) => json!({ "measure": measure, "as": name }),
            (Self::Aggregate { op, field: None }, None) => op.into(),
            (
                Self::Aggregate {
                    op,
                    field: Some(field),
                },
                None,
            ) => format!("{op}:{field}").into(),
            (Self::Aggregate { op, field }, Some(name)) => {
                let mut metric = Map::from_iter([("op".to_owned(), op.into())]);
                metric.extend(field.map(|it| ("field".to_owned(), it.into())));
                metric.insert("as".to_owned(), name.into());
                Json::Object(metric)
            }
        }
    }
}

/// Splits off the ` as name` of a text.
fn aliased(text: &str) -> (&str, Option<&str>) {
    let at = text.to_ascii_lowercase().rfind(" as ");
    match at.and_then(|at| text.split_at_checked(at)) {
        Some((metric, rest)) => (metric.trim(), rest.get(4..).map(str::trim)),
        None => (text.trim(), None),
    }
}

/// `SUM(x)`, `COUNT(*)`, `COUNT(DISTINCT x)`.
fn called(names: &Names<'_>, text: &str) -> Option<ParsedMetric> {
    let (word, rest) = text.split_once('(')?;
    let argument = rest.strip_suffix(')')?.trim();
    aggregate(names, op(word)?, argument)
}

fn aggregate(names: &Names<'_>, op: &str, argument: &str) -> Option<ParsedMetric> {
    if op == "count" && matches!(argument, "" | "*" | "1") {
        return Some(ParsedMetric::Aggregate {
            op: op.to_owned(),
            field: None,
        });
    }
    let lower = argument.to_ascii_lowercase();
    if op == "count" && lower.starts_with("distinct") {
        let field = argument.get("distinct".len()..)?.trim();
        return aggregate(names, "count_distinct", field.trim_matches(['(', ')']));
    }
    Some(ParsedMetric::Aggregate {
        op: op.to_owned(),
        field: Some(names.field(argument)?),
    })
}

/// The measure with this name, ignoring case and separators.
fn measure<'a>(measures: &'a [MeasureView], text: &str) -> Option<&'a str> {
    let plain = |text: &str| text.replace(['_', ' ', '-'], "").to_lowercase();
    let mut alike = measures.iter().filter(|it| plain(it.name()) == plain(text));
    alike.next().map(MeasureView::name)
}

/// `sum:x`, `total x`, `x:sum`, `sum_x`.
fn parted(names: &Names<'_>, text: &str) -> Option<ParsedMetric> {
    if op(text) == Some("count") {
        return aggregate(names, "count", "");
    }
    for separator in [':', ' ', '_', '.'] {
        let Some((before, after)) = text.split_once(separator) else {
            continue;
        };
        let first = op(before).and_then(|op| aggregate(names, op, after));
        let last = || {
            let (before, after) = text.rsplit_once(separator)?;
            aggregate(names, op(after)?, before)
        };
        if let Some(found) = first.or_else(last) {
            return Some(found);
        }
    }
    None
}

/// A bare field stands for its sum, if it is a number that can be summed.
fn summed(names: &Names<'_>, text: &str) -> Option<ParsedMetric> {
    let path = names.field(text)?;
    let field = names.view(&path)?;
    let is_amount = matches!(
        field.datatype(),
        Datatype::Integer | Datatype::Decimal | Datatype::Number
    );
    let can = field.can_aggregate(AggregateOp::Sum);
    (is_amount && can).then(|| ParsedMetric::Aggregate {
        op: "sum".to_owned(),
        field: Some(path),
    })
}

fn from_object(names: &Names<'_>, given: &Map<String, Json>) -> Option<Json> {
    // `{"sum": "x"}`
    if let (1, Some((word, argument))) = (given.len(), given.iter().next())
        && !["op", "measure"].contains(&word.as_str())
        && let (Some(op), Some(argument)) = (op(word), argument.as_str())
    {
        return Some(aggregate(names, op, argument)?.written(None));
    }
    let known = ["op", "field", "measure", "filter", "as"];
    let mut metric = Map::new();
    for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        let ours = match name.as_str() {
            "alias" | "name" | "label" => "as".to_owned(),
            other if known.contains(&other) => other.to_owned(),
            other => argument_meant(other, &known)?,
        };
        metric.insert(ours, value.clone());
    }
    let text = |metric: &Map<String, Json>, name: &str| {
        metric.get(name).and_then(Json::as_str).map(str::to_owned)
    };
    let field = text(&metric, "field");
    if let Some(word) = text(&metric, "op") {
        let parsed = match field {
            Some(field) => aggregate(names, op(&word)?, &field)?,
            None => called(names, &word).or_else(|| aggregate(names, op(&word)?, ""))?,
        };
        let Json::Object(parsed) = parsed.written(Some("as")) else {
            return None;
        };
        metric.remove("field");
        metric.extend(parsed.into_iter().filter(|(name, _)| name != "as"));
    } else if let Some(name) = text(&metric, "measure") {
        let measure = measure(names.stream().measures(), &name)?;
        metric.insert("measure".to_owned(), measure.into());
    }
    if let Some(given) = metric.remove("filter") {
        metric.insert("filter".to_owned(), filter::repaired(names, &given)?.into());
    }
    Some(Json::Object(metric))
}
