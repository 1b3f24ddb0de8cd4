//! Requests as callers make them, with operands equal to, next to and between the records' values.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::{AggregateOp, Datatype};
use wayleave_plan::interpret::TableMap;
use wayleave_plan::value::Value;

use super::fixture::{FixtureColumn, PART_COLUMNS, PARTS, SAMPLE_COLUMNS, SAMPLES};
use super::seeded_rng::SeededRng;

/// One request, by its tool.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Query(Map<String, Json>),
    Aggregate(Map<String, Json>),
}

/// Generates requests over the fixture's records.
pub(super) struct RequestGenerator<'a> {
    rng: SeededRng,
    tables: &'a TableMap,
}

const ZONES: [&str; 7] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/St_Johns",
    "Pacific/Apia",
];

/// Times near and beyond the limits of timestamp columns.
const FAR: [&str; 4] = [
    "0001-01-01T00:00:00Z",
    "1000-01-01T00:00:00Z",
    "2039-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
];

const GRANULARITIES: [&str; 7] = ["minute", "hour", "day", "week", "month", "quarter", "year"];

impl<'a> RequestGenerator<'a> {
    pub(super) fn new(seed: u64, tables: &'a TableMap) -> Self {
        Self {
            rng: SeededRng::new(seed),
            tables,
        }
    }

    pub(super) fn request(&mut self) -> Request {
        let samples = self.rng.percent(80);
        let (stream, columns): (_, &'static [FixtureColumn]) = if samples {
            ("samples", &SAMPLE_COLUMNS)
        } else {
            ("parts", &PART_COLUMNS)
        };
        if self.rng.percent(65) {
            Request::Query(self.query(stream, columns))
        } else {
            Request::Aggregate(self.aggregate(stream, columns))
        }
    }

    /// The row filter of a grant on `samples`.
    pub(super) fn row_filter(&mut self) -> Json {
        Json::Object(self.filter(&SAMPLE_COLUMNS, 2))
    }

    /// Three filters that together match every record exactly once: one, its opposite, and NULL.
    pub(super) fn partition(&mut self) -> [Json; 3] {
        let scalars: Vec<FixtureColumn> = SAMPLE_COLUMNS.into_iter().filter(scalar).collect();
        let column = *self.rng.one_of(&scalars);
        let opposites = [("eq", "ne"), ("in", "not_in"), ("gt", "lte"), ("lt", "gte")];
        let (is, is_not) = *self.rng.one_of(&opposites);
        let (is, is_not) = if column.datatype == Datatype::Boolean {
            ("eq", "ne")
        } else {
            (is, is_not)
        };
        let operand = match is {
            "in" => json!([self.operand(&column), self.operand(&column)]),
            _ => self.operand(&column),
        };
        [
            json!({column.field: {is: operand.clone()}}),
            json!({column.field: {is_not: operand}}),
            json!({column.field: {"is_null": true}}),
        ]
    }

    fn query(&mut self, stream: &str, columns: &[FixtureColumn]) -> Map<String, Json> {
        let mut request = Map::from_iter([("stream".to_owned(), json!(stream))]);
        if self.rng.percent(75) {
            let filter = self.filter(columns, 2);
            request.insert("filter".to_owned(), Json::Object(filter));
        }
        if self.rng.percent(75) {
            let sortable: Vec<&FixtureColumn> = columns.iter().filter(|it| scalar(it)).collect();
            let sort: Vec<String> = self
                .rng
                .some(&sortable, 3)
                .into_iter()
                .map(|it| self.directed(it.field))
                .collect();
            request.insert("sort".to_owned(), json!(sort));
        }
        if self.rng.percent(40) {
            let fields: Vec<&str> = columns.iter().map(|it| it.field).collect();
            let count = 1 + self.rng.below(5);
            let fields = self.rng.some(&fields, count);
            request.insert("fields".to_owned(), json!(fields));
        }
        if self.rng.percent(15) {
            let relation = if stream == "samples" {
                "parts"
            } else {
                "sample"
            };
            request.insert("expand".to_owned(), json!([relation]));
            request.remove("fields");
        }
        let limit = 1 + self.rng.below(40);
        request.insert("limit".to_owned(), json!(limit));
        if self.rng.percent(30) {
            request.insert("count".to_owned(), json!("exact"));
        }
        request
    }

    fn aggregate(&mut self, stream: &str, columns: &[FixtureColumn]) -> Map<String, Json> {
        let mut request = Map::from_iter([("stream".to_owned(), json!(stream))]);
        let mut metrics = Vec::new();
        let mut labels = Vec::new();
        if self.rng.percent(60) {
            metrics.push(json!({"op": "count"}));
            labels.push("count".to_owned());
        }
        for column in self.rng.some(columns, 4) {
            let offered = offered(&column);
            let ops: Vec<AggregateOp> = offered
                .iter()
                .copied()
                .filter(|op| !matches!(op, AggregateOp::GroupBy | AggregateOp::GroupByTime))
                .collect();
            if let Some(op) = self.rng.pick(&ops) {
                metrics.push(json!({"op": op.as_str(), "field": column.field}));
                labels.push(format!("{op}_{}", column.field));
            }
        }
        if metrics.is_empty() {
            metrics.push(json!({"op": "count"}));
            labels.push("count".to_owned());
        }
        request.insert("metrics".to_owned(), json!(metrics));
        let groupable: Vec<&str> = columns
            .iter()
            .filter(|it| offered(it).contains(&AggregateOp::GroupBy))
            .map(|it| it.field)
            .collect();
        let count = self.rng.below(3);
        let group_by = self.rng.some(&groupable, count);
        labels.extend(group_by.iter().map(|it| (*it).to_owned()));
        if !group_by.is_empty() {
            request.insert("group_by".to_owned(), json!(group_by));
        }
        let times: Vec<FixtureColumn> = columns
            .iter()
            .filter(|it| offered(it).contains(&AggregateOp::GroupByTime))
            .filter(|it| !group_by.contains(&it.field))
            .copied()
            .collect();
        if self.rng.percent(45)
            && let Some(time) = self.rng.pick(&times).copied()
        {
            let units = if time.datatype == Datatype::Date {
                GRANULARITIES.get(2..).unwrap_or_default()
            } else {
                &GRANULARITIES
            };
            let period = json!({
                "field": time.field,
                "granularity": self.rng.word(units),
                "time_zone": self.rng.word(&ZONES),
            });
            request.insert("group_by_time".to_owned(), period);
            labels.push(time.field.to_owned());
        }
        if self.rng.percent(50) {
            let filter = self.filter(columns, 1);
            request.insert("filter".to_owned(), Json::Object(filter));
        }
        if self.rng.percent(50) {
            let sort: Vec<String> = self
                .rng
                .some(&labels, 2)
                .into_iter()
                .map(|it| self.directed(&it))
                .collect();
            request.insert("sort".to_owned(), json!(sort));
        }
        let limit = 1 + self.rng.below(60);
        request.insert("limit".to_owned(), json!(limit));
        request
    }

    fn directed(&mut self, name: &str) -> String {
        if self.rng.percent(50) {
            format!("-{name}")
        } else {
            name.to_owned()
        }
    }

    fn filter(&mut self, columns: &[FixtureColumn], depth: usize) -> Map<String, Json> {
        let mut filter = Map::new();
        let filterable: Vec<&FixtureColumn> = columns.iter().filter(|it| scalar(it)).collect();
        let count = 1 + self.rng.below(2);
        for column in self.rng.some(&filterable, count) {
            let condition = self.condition(column);
            filter.insert(column.field.to_owned(), condition);
        }
        if depth > 0 && self.rng.percent(25) {
            let count = 1 + self.rng.below(3);
            let any: Vec<Json> = (0..count)
                .map(|_| Json::Object(self.filter(columns, depth - 1)))
                .collect();
            filter.insert("any".to_owned(), Json::Array(any));
        }
        filter
    }

    fn condition(&mut self, column: &FixtureColumn) -> Json {
        let ops: &[&str] = match column.datatype {
            Datatype::String | Datatype::Iri => &[
                "eq",
                "ne",
                "in",
                "not_in",
                "gt",
                "gte",
                "lt",
                "lte",
                "contains",
                "contains",
                "starts_with",
                "starts_with",
                "is_null",
            ],
            Datatype::Boolean => &["eq", "ne", "in", "not_in", "is_null"],
            _ => &[
                "eq", "ne", "in", "not_in", "gt", "gte", "lt", "lte", "is_null",
            ],
        };
        let op = *self.rng.one_of(ops);
        match op {
            "is_null" => json!({"is_null": self.rng.percent(50)}),
            "in" | "not_in" => {
                let count = 1 + self.rng.below(5);
                let values: Vec<Json> = (0..count).map(|_| self.operand(column)).collect();
                json!({op: values})
            }
            "contains" | "starts_with" => json!({op: self.fragment(column, op == "starts_with")}),
            "eq" if self.rng.percent(50) => self.operand(column),
            _ => json!({op: self.operand(column)}),
        }
    }

    /// A value of some record.
    fn held(&mut self, column: &FixtureColumn) -> Value {
        let table = if SAMPLE_COLUMNS.contains(column) {
            SAMPLES
        } else {
            PARTS
        };
        let rows = self
            .tables
            .get(table)
            .map(Vec::as_slice)
            .unwrap_or_default();
        for _ in 0..20 {
            let held = self.rng.pick(rows).and_then(|row| row.get(column.column));
            if let Some(value) = held
                && *value != Value::Null
            {
                return value.clone();
            }
        }
        Value::Null
    }

    /// An operand equal to a stored value, or next to it.
    fn operand(&mut self, column: &FixtureColumn) -> Json {
        let held = self.held(column);
        if self.rng.percent(60) {
            return held.to_json();
        }
        match held {
            Value::Text(text) if column.datatype == Datatype::Iri => json!(format!("{text}x")),
            Value::Text(text) => match self.rng.below(5) {
                0 => json!(text.as_str().to_uppercase()),
                1 => json!(format!("{text} ")),
                2 => json!(format!("{text}\u{0}")),
                3 => json!(text.trim_end()),
                _ => json!(format!("{text}a")),
            },
            Value::Integer(integer) => match self.rng.below(4) {
                0 => json!((integer + 1).to_string()),
                1 => json!((integer - 1).to_string()),
                2 => json!("170141183460469231731687303715884105727"),
                _ => json!("-18446744073709551616"),
            },
            Value::Decimal(text) => {
                let point = if text.contains('.') { "" } else { "." };
                match self.rng.below(3) {
                    0 => json!(format!(
                        "{text}{point}0000000000000000000000000000000000000001"
                    )),
                    1 => json!(
                        "123456789012345678901234567890123456789012345678901234567890123456789.5"
                    ),
                    _ => json!(format!("{text}{point}5")),
                }
            }
            Value::Number(number) => json!(number + 0.0625),
            Value::Date(days) => {
                Value::Date(days.saturating_add(if days > 0 { -1 } else { 1 })).to_json()
            }
            Value::Datetime(micros) => match self.rng.below(4) {
                0 => json!(self.rng.word(&FAR)),
                1 => Value::Datetime(micros.saturating_add(1)).to_json(),
                _ => Value::Datetime(micros.saturating_sub(1)).to_json(),
            },
            other => other.to_json(),
        }
    }

    /// A piece of a stored text.
    fn fragment(&mut self, column: &FixtureColumn, first: bool) -> String {
        let Value::Text(text) = self.held(column) else {
            return "%".to_owned();
        };
        let characters: Vec<char> = text.chars().collect();
        let from = if first {
            0
        } else {
            self.rng.below(characters.len())
        };
        let length = 1 + self.rng.below(characters.len());
        let piece: String = characters.into_iter().skip(from).take(length).collect();
        match self.rng.below(8) {
            0 => "%".to_owned(),
            1 => "_".to_owned(),
            2 => format!("{piece}\u{0}"),
            // The filter language may refuse an empty text; the refusal is then skipped.
            _ => piece,
        }
    }
}

fn scalar(column: &FixtureColumn) -> bool {
    !column.many && column.datatype != Datatype::Json
}

fn offered(column: &FixtureColumn) -> &'static [AggregateOp] {
    if column.many {
        &[]
    } else {
        column.datatype.aggregates()
    }
}
