//! Questions as analysts ask them: paths, related records, computed fields, measures, conditions on
//! groups, and walks of groups. Each is answered as the reference interpreter answers it.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::{Datatype, SourceKind};

use super::dice::Dice;
use super::fixture;
use super::run::{ConformanceError, Exclusion, Options, ServedMapping, Suite};
use crate::Store;

/// How far a walk of groups or pages goes.
const PAGES: usize = 4;

/// What an owner adds to the fixture's mapping.
const COMPUTED: &str = r#"
[streams.samples.fields.total]
datatype = "decimal"
compute = "price * coalesce(small, 1) + 0.5"

[streams.samples.fields.quotient]
datatype = "decimal"
compute = "price / amount"

[streams.samples.fields.nearly]
datatype = "decimal"
compute = "round(amount * 1.5, 1) - price"

[streams.samples.fields.counted]
datatype = "integer"
compute = "2 * small - 3"

[streams.samples.fields.whole]
datatype = "integer"
compute = "big + big"

[streams.samples.fields.titled]
datatype = "string"
compute = "name || '-' || coalesce(word, '?') || small"

[streams.samples.fields.lateness]
datatype = "string"
compute = "if(at > stamp and not active, 'late', if(at is null, 'never', status))"

[streams.samples.fields.flagged]
datatype = "boolean"
compute = "active or small > 3"

[streams.samples.fields.noted]
datatype = "date"
compute = "coalesce(day, '2024-02-29')"

[streams.samples.fields.seen]
datatype = "datetime"
compute = "if(active, at, stamp)"

[streams.samples.fields.half]
datatype = "number"
compute = "ratio / 2 + 1"

[streams.parts.fields.worth]
datatype = "decimal"
compute = "weight * sample.amount"

[streams.parts.fields.owner]
datatype = "string"
compute = "coalesce(sample.name, 'nobody') || '/' || label"

[streams.samples.measures]
takings = "sum(price * 2)"
average_total = "sum(total) / count()"
share = "100 * sum(if(status = 'Accepted', amount, 0)) / sum(amount)"
spread = "max(amount) - min(amount)"
latest = "max(seen)"
words = "count_distinct(word) + count(small)"

[streams.parts.measures]
mass = "sum(weight)"
heavy = "round(avg(weight * 3), 2)"
days = "count_distinct(sample.day)"
"#;

/// A name that a question may use, and a field of the same datatype whose values it is compared with.
#[derive(Debug, Clone, Copy)]
struct Named {
    name: &'static str,
    datatype: Datatype,
    like: &'static str,
}

const fn named(name: &'static str, datatype: Datatype, like: &'static str) -> Named {
    Named {
        name,
        datatype,
        like,
    }
}

const SAMPLES: &[Named] = &[
    named("id", Datatype::Integer, "id"),
    named("name", Datatype::String, "name"),
    named("word", Datatype::String, "word"),
    named("token", Datatype::String, "token"),
    named("status", Datatype::String, "status"),
    named("small", Datatype::Integer, "small"),
    named("amount", Datatype::Decimal, "amount"),
    named("price", Datatype::Decimal, "price"),
    named("active", Datatype::Boolean, "active"),
    named("day", Datatype::Date, "day"),
    named("at", Datatype::Datetime, "at"),
    named("stamp", Datatype::Datetime, "stamp"),
    named("total", Datatype::Decimal, "price"),
    named("quotient", Datatype::Decimal, "amount"),
    named("nearly", Datatype::Decimal, "amount"),
    named("counted", Datatype::Integer, "small"),
    named("whole", Datatype::Integer, "big"),
    named("titled", Datatype::String, "name"),
    named("lateness", Datatype::String, "status"),
    named("flagged", Datatype::Boolean, "active"),
    named("noted", Datatype::Date, "day"),
    named("seen", Datatype::Datetime, "stamp"),
    named("half", Datatype::Number, "ratio"),
];

const PARTS: &[Named] = &[
    named("sample_id", Datatype::Integer, "id"),
    named("label", Datatype::String, "name"),
    named("weight", Datatype::Decimal, "price"),
    named("made", Datatype::Date, "day"),
    named("worth", Datatype::Decimal, "amount"),
    named("owner", Datatype::String, "name"),
    named("sample.name", Datatype::String, "name"),
    named("sample.word", Datatype::String, "word"),
    named("sample.status", Datatype::String, "status"),
    named("sample.small", Datatype::Integer, "small"),
    named("sample.price", Datatype::Decimal, "price"),
    named("sample.active", Datatype::Boolean, "active"),
    named("sample.day", Datatype::Date, "day"),
    named("sample.at", Datatype::Datetime, "at"),
    named("sample.total", Datatype::Decimal, "price"),
    named("sample.titled", Datatype::String, "name"),
    named("sample.flagged", Datatype::Boolean, "active"),
];

/// What was asked and answered alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuestionsReport {
    /// Questions asked.
    pub questions: usize,
    /// Questions that policy refused before any store was asked.
    pub refused: usize,
    /// Pages of records compared.
    pub pages: usize,
    /// Pages of groups compared.
    pub groups: usize,
    /// Groups that a walk went on after.
    pub walked: usize,
    /// Questions that differed as an exclusion allows.
    pub excluded: usize,
}

/// Asks a store that holds [`fixture::rows`] what analysts ask.
pub async fn run_questions(
    store: &dyn Store,
    options: Options,
    exclusions: &[Exclusion],
) -> Result<QuestionsReport, ConformanceError> {
    let kind: SourceKind = store.capabilities().kind;
    let served = ServedMapping::new(&(fixture::mapping(kind) + COMPUTED))?;
    let tables = fixture::rows();
    let suite = Suite::new(store, served, &tables);
    let mut analyst = Analyst {
        dice: Dice::new(options.seed),
        suite: &suite,
        report: QuestionsReport::default(),
    };
    let mut needed = vec![false; exclusions.len()];
    for _ in 0..options.requests {
        let samples = analyst.dice.percent(55);
        let aggregates = analyst.dice.percent(50);
        let question = analyst.question(samples, aggregates);
        analyst.report.questions += 1;
        let tool = if aggregates {
            "aggregate"
        } else {
            "query_records"
        };
        let asked = json!({tool: question});
        let outcome = if aggregates {
            analyst.aggregate(question, &asked).await
        } else {
            analyst.query(question, &asked).await
        };
        if let Err(error) = outcome {
            let excluded = exclusions.iter().position(|it| (it.applies)(&asked));
            match excluded.and_then(|index| needed.get_mut(index)) {
                Some(needed) => *needed = true,
                None => return Err(error),
            }
            analyst.report.excluded += 1;
        }
    }
    let unneeded = exclusions.iter().zip(needed).find(|(_, needed)| !needed);
    if let Some((exclusion, _)) = unneeded {
        let reason = exclusion.reason;
        return Err(ConformanceError::Unneeded { reason });
    }
    let report = analyst.report;
    if report.refused * 10 > report.questions {
        let reason = format!("policy refused too much: {report:?}");
        return Err(ConformanceError::Broken { reason });
    }
    Ok(report)
}

struct Analyst<'s, 'a> {
    dice: Dice,
    suite: &'s Suite<'a>,
    report: QuestionsReport,
}

impl Analyst<'_, '_> {
    async fn query(
        &mut self,
        mut question: Map<String, Json>,
        asked: &Json,
    ) -> Result<(), ConformanceError> {
        for _ in 0..PAGES {
            let Some(plan) = self.suite.served().query(&question) else {
                self.report.refused += 1;
                return Ok(());
            };
            let rows = self.suite.same("rows", plan.rows(), asked).await?;
            self.report.pages += 1;
            if let Some(count) = plan.count() {
                self.suite.same("counts", count, asked).await?;
            }
            let page = plan.page(&rows);
            let shown = page.records().len();
            match page.next_cursor(shown, self.suite.served().seal()) {
                Some(cursor) => question.insert("cursor".to_owned(), Json::String(cursor)),
                None => return Ok(()),
            };
        }
        Ok(())
    }

    async fn aggregate(
        &mut self,
        mut question: Map<String, Json>,
        asked: &Json,
    ) -> Result<(), ConformanceError> {
        for _ in 0..PAGES {
            let Some(plan) = self.suite.served().aggregate(&question) else {
                self.report.refused += 1;
                return Ok(());
            };
            let rows = self.suite.same("groups", plan.groups(), asked).await?;
            self.report.groups += 1;
            if let Some(totals) = plan.totals() {
                self.suite.same("totals", totals, asked).await?;
            }
            let (shown, more) = plan.answer(&rows);
            let cursor = shown
                .last()
                .filter(|_| more)
                .and_then(|last| plan.cursor(last, self.suite.served().seal()));
            match cursor {
                Some(cursor) => question.insert("cursor".to_owned(), Json::String(cursor)),
                None => return Ok(()),
            };
            self.report.walked += 1;
        }
        Ok(())
    }

    fn question(&mut self, samples: bool, aggregates: bool) -> Map<String, Json> {
        let (stream, names) = if samples {
            ("samples", SAMPLES)
        } else {
            ("parts", PARTS)
        };
        let mut question = Map::from_iter([("stream".to_owned(), json!(stream))]);
        if self.dice.percent(70) {
            let filter = self.filter(samples, names, 2);
            question.insert("filter".to_owned(), Json::Object(filter));
        }
        let limit = 1 + self.dice.below(30);
        question.insert("limit".to_owned(), json!(limit));
        if aggregates {
            self.grouped(samples, names, &mut question);
        } else {
            self.listed(names, &mut question);
        }
        question
    }

    fn listed(&mut self, names: &[Named], question: &mut Map<String, Json>) {
        let count = 1 + self.dice.below(5);
        let fields: Vec<&str> = self
            .dice
            .some(names, count)
            .iter()
            .map(|it| it.name)
            .collect();
        question.insert("fields".to_owned(), json!(fields));
        if self.dice.percent(60) {
            let sorted = self.dice.some(names, 2);
            let sort: Vec<String> = sorted.iter().map(|it| self.directed(it.name)).collect();
            question.insert("sort".to_owned(), json!(sort));
        }
        if self.dice.percent(30) {
            question.insert("count".to_owned(), json!("exact"));
        }
    }

    fn grouped(&mut self, samples: bool, names: &[Named], question: &mut Map<String, Json>) {
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
        let count = self.dice.below(3);
        for (measure, datatype) in self.dice.some(measures, count) {
            metrics.push(json!(measure));
            labels.push((measure.to_owned(), Some(datatype)));
        }
        let count = 1 + self.dice.below(2);
        for (place, one) in self.dice.some(names, count).into_iter().enumerate() {
            let exact = matches!(one.datatype, Datatype::Integer | Datatype::Decimal);
            let ops: &[&str] = match one.datatype {
                Datatype::Number => &["min", "max", "count"],
                Datatype::Boolean => &["count", "count_distinct"],
                _ if exact => &["sum", "avg", "min", "max", "count", "count_distinct"],
                _ => &["min", "max", "count", "count_distinct"],
            };
            let op = self.dice.word(ops);
            let datatype = match op {
                "count" | "count_distinct" => Datatype::Integer,
                "avg" => Datatype::Decimal,
                _ => one.datatype,
            };
            let label = if self.dice.percent(40) {
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
        if self.dice.percent(50) {
            metrics.push(json!("count"));
            labels.push(("count".to_owned(), Some(Datatype::Integer)));
        }
        question.insert("metrics".to_owned(), json!(metrics));
        self.keys(samples, names, &mut labels, question);
        if self.dice.percent(35) {
            let exact = labels.iter().find(|(_, datatype)| {
                matches!(datatype, Some(Datatype::Integer | Datatype::Decimal))
            });
            if let Some((label, _)) = exact.cloned() {
                let op = self.dice.word(&["gt", "gte", "lt", "lte", "ne"]);
                let operand = self.dice.word(&["0", "1", "3", "12", "100", "-1"]);
                question.insert("having".to_owned(), json!({label: {op: operand}}));
            }
        }
        if self.dice.percent(50) {
            let names: Vec<String> = labels.into_iter().map(|(name, _)| name).collect();
            let sorted = self.dice.some(&names, 2);
            let sort: Vec<String> = sorted.iter().map(|it| self.directed(it)).collect();
            question.insert("sort".to_owned(), json!(sort));
        }
        if self.dice.percent(20) {
            question.insert("totals".to_owned(), json!(true));
        }
    }

    fn keys(
        &mut self,
        samples: bool,
        names: &[Named],
        labels: &mut Vec<(String, Option<Datatype>)>,
        question: &mut Map<String, Json>,
    ) {
        let groupable: Vec<Named> = names
            .iter()
            .copied()
            .filter(|it| it.datatype != Datatype::Number)
            .collect();
        let count = self.dice.below(3);
        let mut group_by: Vec<&str> = Vec::new();
        for key in self.dice.some(&groupable, count) {
            group_by.push(key.name);
            labels.push((key.name.to_owned(), None));
        }
        if !samples && self.dice.percent(15) {
            group_by.push("sample");
        }
        let time = groupable
            .iter()
            .filter(|it| matches!(it.datatype, Datatype::Date | Datatype::Datetime))
            .filter(|it| !group_by.contains(&it.name));
        let times: Vec<Named> = time.copied().collect();
        if self.dice.percent(30)
            && let Some(time) = self.dice.pick(&times).copied()
        {
            let unit = self.dice.word(&["day", "week", "month", "quarter", "year"]);
            let zone = self
                .dice
                .word(&["UTC", "Europe/Berlin", "America/St_Johns"]);
            let period = json!({"field": time.name, "granularity": unit, "time_zone": zone});
            question.insert("group_by_time".to_owned(), period);
            labels.push((time.name.to_owned(), None));
        }
        if !group_by.is_empty() {
            question.insert("group_by".to_owned(), json!(group_by));
        }
    }

    fn directed(&mut self, name: &str) -> String {
        if self.dice.percent(50) {
            format!("-{name}")
        } else {
            name.to_owned()
        }
    }

    fn filter(&mut self, samples: bool, names: &[Named], depth: usize) -> Map<String, Json> {
        let mut filter = Map::new();
        let count = 1 + self.dice.below(2);
        for one in self.dice.some(names, count) {
            let condition = self.condition(one, names);
            filter.insert(one.name.to_owned(), condition);
        }
        if depth > 0 && self.dice.percent(35) {
            let (relation, theirs) = if samples {
                ("parts", PARTS)
            } else {
                ("sample", SAMPLES)
            };
            let inner = if self.dice.percent(10) {
                Map::new()
            } else {
                self.filter(!samples, theirs, depth - 1)
            };
            let quantifier = self.dice.word(&["some", "none"]);
            filter.insert(relation.to_owned(), json!({quantifier: inner}));
        }
        if depth > 0 && self.dice.percent(15) {
            let any: Vec<Json> = (0..2)
                .map(|_| Json::Object(self.filter(samples, names, depth - 1)))
                .collect();
            filter.insert("any".to_owned(), Json::Array(any));
        }
        filter
    }

    fn condition(&mut self, one: Named, names: &[Named]) -> Json {
        if self.dice.percent(20) && one.datatype != Datatype::Number {
            let same: Vec<Named> = names
                .iter()
                .copied()
                .filter(|it| comparable(it.datatype, one.datatype))
                .collect();
            let other = self.dice.one_of(&same).name;
            let ops: &[&str] = match one.datatype {
                Datatype::Boolean => &["eq", "ne"],
                _ => &["eq", "ne", "gt", "gte", "lt", "lte"],
            };
            return json!({self.dice.word(ops): {"field": other}});
        }
        let operand = self.operand(one);
        match one.datatype {
            Datatype::String => {
                let op = self.dice.word(&[
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
            _ if self.dice.percent(15) => json!({"is_null": self.dice.percent(50)}),
            _ => json!({self.dice.word(&["eq", "ne", "gt", "gte", "lt", "lte"]): operand}),
        }
    }

    fn operand(&mut self, one: Named) -> Json {
        let rows = self.suite.rows(fixture::SAMPLES);
        let column = fixture::SAMPLE_COLUMNS
            .iter()
            .find(|it| it.field == one.like);
        let held = self.dice.pick(rows);
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
