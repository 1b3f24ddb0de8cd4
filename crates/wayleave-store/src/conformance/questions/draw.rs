//! Generates random questions.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::Datatype;

use super::super::fixture;
use super::QuestionSuite;
use super::names::{PARTS, QuestionField, SAMPLES};

impl QuestionSuite<'_, '_> {
    /// Generates a question about the records of one stream, or about groups of them.
    pub(super) fn question(&mut self, samples: bool, aggregates: bool) -> Map<String, Json> {
        let (stream, names) = if samples {
            ("samples", SAMPLES)
        } else {
            ("parts", PARTS)
        };
        let mut question = Map::from_iter([("stream".to_owned(), json!(stream))]);
        if self.rng.percent(70) {
            let filter = self.filter(samples, names, 2);
            question.insert("filter".to_owned(), Json::Object(filter));
        }
        let limit = 1 + self.rng.below(30);
        question.insert("limit".to_owned(), json!(limit));
        if aggregates {
            self.grouped(samples, names, &mut question);
        } else {
            self.listed(names, &mut question);
        }
        question
    }

    fn listed(&mut self, names: &[QuestionField], question: &mut Map<String, Json>) {
        let count = 1 + self.rng.below(5);
        let fields: Vec<&str> = self
            .rng
            .some(names, count)
            .iter()
            .map(|it| it.name)
            .collect();
        question.insert("fields".to_owned(), json!(fields));
        if self.rng.percent(60) {
            let sorted = self.rng.some(names, 2);
            let sort: Vec<String> = sorted.iter().map(|it| self.directed(it.name)).collect();
            question.insert("sort".to_owned(), json!(sort));
        }
        if self.rng.percent(30) {
            question.insert("count".to_owned(), json!("exact"));
        }
    }

    fn grouped(
        &mut self,
        samples: bool,
        names: &[QuestionField],
        question: &mut Map<String, Json>,
    ) {
        let mut labels: Vec<(String, Option<Datatype>)> = Vec::new();
        let mut metrics = Vec::new();
        let measures: &[(&str, Datatype)] = if samples {
            &[
                ("takings", Datatype::Decimal),
                ("average_total", Datatype::Decimal),
                ("share", Datatype::Decimal),
                ("spread", Datatype::Decimal),
                ("latest", Datatype::Datetime),
                ("words", Datatype::Integer),
            ]
        } else {
            &[
                ("mass", Datatype::Decimal),
                ("heavy", Datatype::Decimal),
                ("days", Datatype::Integer),
            ]
        };
        let count = self.rng.below(3);
        for (measure, datatype) in self.rng.some(measures, count) {
            metrics.push(json!(measure));
            labels.push((measure.to_owned(), Some(datatype)));
        }
        let count = 1 + self.rng.below(2);
        for (place, one) in self.rng.some(names, count).into_iter().enumerate() {
            let exact = matches!(one.datatype, Datatype::Integer | Datatype::Decimal);
            let ops: &[&str] = match one.datatype {
                Datatype::Number => &["min", "max", "count"],
                Datatype::Boolean => &["count", "count_distinct"],
                _ if exact => &["sum", "avg", "min", "max", "count", "count_distinct"],
                _ => &["min", "max", "count", "count_distinct"],
            };
            let op = self.rng.word(ops);
            let datatype = match op {
                "count" | "count_distinct" => Datatype::Integer,
                "avg" => Datatype::Decimal,
                _ => one.datatype,
            };
            let label = if self.rng.percent(40) {
                let label = format!("m{place}");
                let filter = self.filter(samples, names, 0);
                metrics.push(json!({"op": op, "field": one.name, "filter": filter, "as": label}));
                label
            } else {
                metrics.push(json!(format!("{op}:{}", one.name)));
                format!("{op}_{}", one.name)
            };
            labels.push((label, Some(datatype)));
        }
        if self.rng.percent(50) {
            metrics.push(json!("count"));
            labels.push(("count".to_owned(), Some(Datatype::Integer)));
        }
        question.insert("metrics".to_owned(), json!(metrics));
        self.keys(samples, names, &mut labels, question);
        if self.rng.percent(35) {
            let exact = labels.iter().find(|(_, datatype)| {
                matches!(datatype, Some(Datatype::Integer | Datatype::Decimal))
            });
            if let Some((label, _)) = exact.cloned() {
                let op = self.rng.word(&["gt", "gte", "lt", "lte", "ne"]);
                let operand = self.rng.word(&["0", "1", "3", "12", "100", "-1"]);
                question.insert("having".to_owned(), json!({label: {op: operand}}));
            }
        }
        if self.rng.percent(50) {
            let names: Vec<String> = labels.into_iter().map(|(name, _)| name).collect();
            let sorted = self.rng.some(&names, 2);
            let sort: Vec<String> = sorted.iter().map(|it| self.directed(it)).collect();
            question.insert("sort".to_owned(), json!(sort));
        }
        if self.rng.percent(20) {
            question.insert("totals".to_owned(), json!(true));
        }
    }

    fn keys(
        &mut self,
        samples: bool,
        names: &[QuestionField],
        labels: &mut Vec<(String, Option<Datatype>)>,
        question: &mut Map<String, Json>,
    ) {
        let groupable: Vec<QuestionField> = names
            .iter()
            .copied()
            .filter(|it| it.datatype != Datatype::Number)
            .collect();
        let count = self.rng.below(3);
        let mut group_by: Vec<&str> = Vec::new();
        for key in self.rng.some(&groupable, count) {
            group_by.push(key.name);
            labels.push((key.name.to_owned(), None));
        }
        if !samples && self.rng.percent(15) {
            group_by.push("sample");
        }
        let time = groupable
            .iter()
            .filter(|it| matches!(it.datatype, Datatype::Date | Datatype::Datetime))
            .filter(|it| !group_by.contains(&it.name));
        let times: Vec<QuestionField> = time.copied().collect();
        if self.rng.percent(30)
            && let Some(time) = self.rng.pick(&times).copied()
        {
            let unit = self.rng.word(&["day", "week", "month", "quarter", "year"]);
            let zone = self.rng.word(&["UTC", "Europe/Berlin", "America/St_Johns"]);
            let period = json!({"field": time.name, "granularity": unit, "time_zone": zone});
            question.insert("group_by_time".to_owned(), period);
            labels.push((time.name.to_owned(), None));
        }
        if !group_by.is_empty() {
            question.insert("group_by".to_owned(), json!(group_by));
        }
    }

    fn directed(&mut self, name: &str) -> String {
        if self.rng.percent(50) {
            format!("-{name}")
        } else {
            name.to_owned()
        }
    }

    fn filter(
        &mut self,
        samples: bool,
        names: &[QuestionField],
        depth: usize,
    ) -> Map<String, Json> {
        let mut filter = Map::new();
        let count = 1 + self.rng.below(2);
        for one in self.rng.some(names, count) {
            let condition = self.condition(one, names);
            filter.insert(one.name.to_owned(), condition);
        }
        if depth > 0 && self.rng.percent(35) {
            let (relation, theirs) = if samples {
                ("parts", PARTS)
            } else {
                ("sample", SAMPLES)
            };
            let inner = if self.rng.percent(10) {
                Map::new()
            } else {
                self.filter(!samples, theirs, depth - 1)
            };
            let quantifier = self.rng.word(&["some", "none"]);
            filter.insert(relation.to_owned(), json!({quantifier: inner}));
        }
        if depth > 0 && self.rng.percent(15) {
            let any: Vec<Json> = (0..2)
                .map(|_| Json::Object(self.filter(samples, names, depth - 1)))
                .collect();
            filter.insert("any".to_owned(), Json::Array(any));
        }
        filter
    }

    fn condition(&mut self, one: QuestionField, names: &[QuestionField]) -> Json {
        if self.rng.percent(20) && one.datatype != Datatype::Number {
            let same: Vec<QuestionField> = names
                .iter()
                .copied()
                .filter(|it| comparable(it.datatype, one.datatype))
                .collect();
            let other = self.rng.one_of(&same).name;
            let ops: &[&str] = match one.datatype {
                Datatype::Boolean => &["eq", "ne"],
                _ => &["eq", "ne", "gt", "gte", "lt", "lte"],
            };
            return json!({self.rng.word(ops): {"field": other}});
        }
        let operand = self.operand(one);
        match one.datatype {
            Datatype::String => {
                let op = self.rng.word(&[
                    "eq",
                    "ne",
                    "gt",
                    "lt",
                    "contains",
                    "starts_with",
                    "icontains",
                    "ieq",
                ]);
                let text = operand.as_str().unwrap_or("a");
                let first: String = text.chars().take(2).collect();
                match op {
                    "ieq" => json!({op: swapped(text)}),
                    "icontains" => json!({op: swapped(&first)}),
                    "contains" | "starts_with" => json!({op: first}),
                    _ => json!({op: text}),
                }
            }
            Datatype::Boolean => json!({"eq": operand}),
            _ if self.rng.percent(15) => json!({"is_null": self.rng.percent(50)}),
            _ => json!({self.rng.word(&["eq", "ne", "gt", "gte", "lt", "lte"]): operand}),
        }
    }

    fn operand(&mut self, one: QuestionField) -> Json {
        let rows = self.suite.rows(fixture::SAMPLES);
        let column = fixture::SAMPLE_COLUMNS
            .iter()
            .find(|it| it.field == one.like);
        let held = self.rng.pick(rows);
        let held = column.and_then(|column| held?.get(column.column));
        let json = held.map_or(Json::Null, wayleave_plan::value::Value::to_json);
        match (json, one.datatype) {
            (Json::Null, Datatype::String) => json!("a"),
            (Json::Null, Datatype::Boolean) => json!(true),
            (Json::Null, Datatype::Date) => json!("2024-01-01"),
            (Json::Null, Datatype::Datetime) => json!("2024-01-01T00:00:00Z"),
            (Json::Null, _) => json!("1"),
            (json, _) => json,
        }
    }
}

/// Whether a question may compare fields of the two datatypes.
fn comparable(one: Datatype, other: Datatype) -> bool {
    let exact = |it| matches!(it, Datatype::Integer | Datatype::Decimal);
    one == other || (exact(one) && exact(other))
}

/// A text with its letters in the other case.
fn swapped(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_ascii_uppercase() {
                c.to_ascii_lowercase()
            } else {
                c.to_ascii_uppercase()
            }
        })
        .collect()
}
