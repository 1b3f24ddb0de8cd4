//! The records of the suite: every datatype, with values that stores are known to disagree on.

use std::collections::BTreeMap;

use serde_json::json;
use wayleave_model::mapping::{Datatype, SourceKind};
use wayleave_plan::interpret::{RowMap, TableMap};
use wayleave_plan::value::Value;

use super::seeded_rng::SeededRng;

/// The table of the stream `samples`, whose name must be quoted.
pub const SAMPLES: &str = "the \"samples` '";
/// The table of the stream `parts`, keyed by two columns, one of them text.
pub const PARTS: &str = "parts";
/// Number of samples.
pub const SAMPLE_COUNT: usize = 160;

/// A column of a fixture's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixtureColumn {
    /// The field.
    pub field: &'static str,
    /// The column.
    pub column: &'static str,
    /// The datatype.
    pub datatype: Datatype,
    /// Whether it holds a list of values.
    pub many: bool,
    /// Whether it is NOT NULL.
    pub required: bool,
}

const fn column(
    field: &'static str,
    column: &'static str,
    datatype: Datatype,
    required: bool,
) -> FixtureColumn {
    FixtureColumn {
        field,
        column,
        datatype,
        many: false,
        required,
    }
}

/// The columns of `samples`.
pub const SAMPLE_COLUMNS: [FixtureColumn; 18] = [
    column("id", "id", Datatype::Integer, true),
    column("name", "na\"me", Datatype::String, true),
    column("word", "wo`rd ?", Datatype::String, false),
    column("link", "link", Datatype::Iri, false),
    column("token", "token", Datatype::String, true),
    column("status", "status", Datatype::String, false),
    column("small", "select", Datatype::Integer, false),
    column("big", "big", Datatype::Integer, true),
    column("amount", "amount", Datatype::Decimal, false),
    column("price", "price", Datatype::Decimal, true),
    column("ratio", "ratio", Datatype::Number, false),
    column("active", "active", Datatype::Boolean, false),
    column("day", "day", Datatype::Date, false),
    column("at", "at", Datatype::Datetime, false),
    column("stamp", "stamp", Datatype::Datetime, true),
    column("data", "data", Datatype::Json, false),
    FixtureColumn {
        field: "tags",
        column: "tags",
        datatype: Datatype::String,
        many: true,
        required: false,
    },
    FixtureColumn {
        field: "marks",
        column: "marks",
        datatype: Datatype::Decimal,
        many: true,
        required: false,
    },
];

/// The columns of `parts`.
pub const PART_COLUMNS: [FixtureColumn; 4] = [
    column("sample_id", "sample_id", Datatype::Integer, true),
    column("label", "label", Datatype::String, true),
    column("weight", "weight", Datatype::Decimal, false),
    column("made", "made", Datatype::Date, false),
];

/// The values of `status`, for stores that have enumerations.
pub const STATUSES: [&str; 3] = ["proposed", "Accepted", "rejected"];

/// The mapping, for a store of the given kind.
pub fn mapping(kind: SourceKind) -> String {
    let mut text = format!(
        "[dataset]\nname = \"conformance\"\nkind = \"{kind}\"\n\n\
         [[connections]]\nid = \"main\"\nsource = \"main\"\n"
    );
    let streams: [(&str, &str, &str, &str, &[FixtureColumn]); 2] = [
        ("samples", "Sample", SAMPLES, "\"id\"", &SAMPLE_COLUMNS),
        (
            "parts",
            "Part",
            PARTS,
            "\"sample_id\", \"label\"",
            &PART_COLUMNS,
        ),
    ];
    for (stream, type_name, table, key, columns) in streams {
        let head = [
            format!("\n[streams.{stream}]"),
            format!("type = \"{type_name}\""),
            format!("table = {}", json!(table)),
            format!("key = [{key}]\n"),
        ];
        text.push_str(&head.join("\n"));
        for it in columns {
            let field = [
                format!("\n[streams.{stream}.fields.{}]", it.field),
                format!("column = {}", json!(it.column)),
                format!("datatype = \"{}\"", it.datatype),
                format!("required = {}", it.required),
                format!("many = {}\n", it.many),
            ];
            text.push_str(&field.join("\n"));
        }
    }
    text.push_str(
        "\n[streams.samples.relations.parts]\nto = \"parts\"\non = { id = \"sample_id\" }\n\
         \n[streams.parts.relations.sample]\nto = \"samples\"\non = { sample_id = \"id\" }\n",
    );
    text
}

/// The records, by table and column.
pub fn rows() -> TableMap {
    let mut rng = SeededRng::new(0xC0_FFEE);
    let samples: Vec<RowMap> = (0..SAMPLE_COUNT)
        .map(|number| sample(number, &mut rng))
        .collect();
    let parts = (0..SAMPLE_COUNT)
        .step_by(3)
        .flat_map(|number| parts_of(number, &mut rng))
        .collect();
    BTreeMap::from([(SAMPLES.to_owned(), samples), (PARTS.to_owned(), parts)])
}

/// Values in the column of a field that are not of its datatype.
#[derive(Debug, Clone, Copy)]
pub struct Malformed {
    /// The field of `samples`.
    pub field: &'static str,
    /// The values, as literals of the store's language.
    pub literals: &'static [&'static str],
}

/// The records, with some malformed values. Each of these is represented by a list with its
/// literal.
pub fn malformed_rows(malformed: &[Malformed]) -> TableMap {
    let mut rng = SeededRng::new(0xBAD);
    let mut tables = rows();
    for row in tables.get_mut(SAMPLES).into_iter().flatten() {
        for it in malformed {
            let column = SAMPLE_COLUMNS
                .iter()
                .find(|column| column.field == it.field);
            if let Some(column) = column.filter(|_| rng.percent(5)) {
                let literal = Value::Text(rng.word(it.literals).into());
                row.insert(column.column.to_owned(), Value::List(vec![literal]));
            }
        }
    }
    tables
}

/// Texts that stores are known to sort, fold, pad or escape.
pub const TEXTS: [&str; 44] = [
    "",
    " ",
    "a",
    "a ",
    "a  ",
    "A",
    "aa",
    "ab",
    "Ab",
    "AB",
    "b",
    "ä",
    "a\u{308}",
    "Ä",
    "z",
    "Z",
    "é",
    "ß",
    "ss",
    "SS",
    "ı",
    "İ",
    "i",
    "ﬀ",
    "日本",
    "日本語",
    "😀",
    "😁",
    "\u{FFFD}",
    "\u{E000}",
    "\u{10FFFF}",
    "O'Reilly",
    "\"q\"",
    "100%",
    "1_0",
    "100",
    "back\\slash",
    "tab\tx",
    "line\nx",
    "null",
    "\\x41",
    "a\u{1}",
    "?1 $1",
    "'; DROP TABLE parts; --",
];

const DECIMALS: [&str; 14] = [
    "0",
    "0.1",
    "-0.1",
    "0.01",
    "1",
    "1.5",
    "-1.5",
    "10",
    "99.99",
    "-99.99",
    "100.25",
    "12345678.9",
    "-12345678.9",
    "0.000001",
];

const EXACT_DECIMALS: [&str; 8] = [
    "123456789012345678.123456789012",
    "-123456789012345678.123456789012",
    "123456789012345678.123456789011",
    "0.000000000001",
    "9007199254740993",
    "9007199254740992",
    "0.1",
    "-0.1",
];

const BIGS: [i128; 9] = [
    i64::MAX as i128,
    i64::MIN as i128,
    i64::MAX as i128 - 1,
    9_007_199_254_740_993,
    9_007_199_254_740_992,
    -9_007_199_254_740_993,
    0,
    1,
    -1,
];

/// Times around daylight saving changes in two hemispheres, and far from them.
const INSTANTS: [&str; 18] = [
    "2024-03-31T00:59:59Z",
    "2024-03-31T01:00:00Z",
    "2024-03-31T01:30:00.5Z",
    "2024-10-27T00:30:00Z",
    "2024-10-27T01:30:00Z",
    "2024-10-27T01:00:00Z",
    "2024-11-03T05:30:00Z",
    "2024-11-03T06:30:00Z",
    "2024-04-06T15:45:00.000001Z",
    "2024-12-31T23:30:00Z",
    "2025-01-01T00:00:00Z",
    "2024-02-29T12:00:00Z",
    "2000-01-01T00:00:00Z",
    "1999-12-31T23:59:59.999999Z",
    "1971-06-01T00:00:00Z",
    "2037-07-01T12:34:56Z",
    "2024-07-01T22:15:00Z",
    "2024-07-02T03:45:00Z",
];

/// Times outside the timestamp range of some stores.
const FAR_INSTANTS: [&str; 3] = [
    "1000-01-01T00:00:00Z",
    "9999-12-29T23:59:59.999999Z",
    "1969-12-31T23:59:59.5Z",
];

const DAYS: [&str; 10] = [
    "0001-01-01",
    "9999-12-31",
    "1969-12-31",
    "1970-01-01",
    "2000-02-29",
    "2024-01-01",
    "2024-02-29",
    "2024-03-31",
    "2024-12-30",
    "2024-12-31",
];

const LINKS: [&str; 4] = [
    "https://example.org/",
    "https://example.org/a",
    "https://example.org/A",
    "urn:x:1",
];

#[expect(clippy::expect_used, reason = "the literals of this file are read")]
fn read(datatype: Datatype, text: &str) -> Value {
    Value::from_text(datatype, text).expect("a literal of its datatype")
}

fn one(rng: &mut SeededRng, datatype: Datatype, from: &[&'static str]) -> Value {
    read(datatype, rng.word(from))
}

/// A value, or NULL one time in five.
fn or_null(rng: &mut SeededRng, value: Value) -> Value {
    if rng.percent(20) { Value::Null } else { value }
}

fn token(rng: &mut SeededRng) -> String {
    let (a, b) = (rng.next_u64(), rng.next_u64());
    let digits = format!("{a:016x}{b:016x}");
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)]
        .map(|(from, to)| part(from, to))
        .join("-")
}

fn sample(number: usize, rng: &mut SeededRng) -> RowMap {
    let text = |rng: &mut SeededRng| one(rng, Datatype::String, &TEXTS);
    let instant = |rng: &mut SeededRng, far: usize| {
        let from: &[&'static str] = if rng.percent(far) {
            &FAR_INSTANTS
        } else {
            &INSTANTS
        };
        one(rng, Datatype::Datetime, from)
    };
    let id = i128::try_from(number).unwrap_or(0) - 20;
    let big = *rng.one_of(&BIGS);
    // Eighths add up exactly in any order. Include a zero with a sign.
    let eighths = i32::try_from(rng.below(200)).unwrap_or(0) - 100;
    let ratio = if eighths == 0 {
        -0.0
    } else {
        f64::from(eighths) / 8.0
    };
    let values = [
        Value::Integer(id),
        text(rng),
        {
            let it = text(rng);
            or_null(rng, it)
        },
        {
            let it = one(rng, Datatype::Iri, &LINKS);
            or_null(rng, it)
        },
        Value::Text(token(rng).into()),
        {
            let it = one(rng, Datatype::String, &STATUSES);
            or_null(rng, it)
        },
        {
            let it = Value::Integer(i128::try_from(rng.below(7)).unwrap_or(0) - 3);
            or_null(rng, it)
        },
        Value::Integer(big),
        {
            let it = one(rng, Datatype::Decimal, &DECIMALS);
            or_null(rng, it)
        },
        one(rng, Datatype::Decimal, &EXACT_DECIMALS),
        or_null(rng, Value::Number(ratio)),
        {
            let it = Value::Boolean(rng.percent(50));
            or_null(rng, it)
        },
        {
            let it = one(rng, Datatype::Date, &DAYS);
            or_null(rng, it)
        },
        {
            let it = instant(rng, 10);
            or_null(rng, it)
        },
        instant(rng, 0),
        {
            let it = json_value(rng);
            or_null(rng, it)
        },
        {
            let it = tags(rng);
            or_null(rng, it)
        },
        {
            let it = marks(rng);
            or_null(rng, it)
        },
    ];
    SAMPLE_COLUMNS
        .iter()
        .map(|it| it.column.to_owned())
        .zip(values)
        .collect()
}

fn json_value(rng: &mut SeededRng) -> Value {
    let choices = [
        json!({"b": 1, "a": [true, null, "x"], "ä": {"z": 1, "y": "\"'\\"}}),
        json!([]),
        json!("text"),
        json!(12),
        json!(null),
        json!(false),
    ];
    Value::Json(Box::new(rng.one_of(&choices).clone()))
}

fn tags(rng: &mut SeededRng) -> Value {
    let count = rng.below(4);
    let mut tags: Vec<Value> = (0..count)
        .map(|_| one(rng, Datatype::String, &TEXTS))
        .collect();
    if rng.percent(20) {
        tags.push(Value::Null);
    }
    Value::List(tags)
}

fn marks(rng: &mut SeededRng) -> Value {
    let count = rng.below(3);
    Value::List(
        (0..count)
            .map(|_| one(rng, Datatype::Decimal, &EXACT_DECIMALS))
            .collect(),
    )
}

/// Gives some samples more parts than an expansion shows.
fn parts_of(number: usize, rng: &mut SeededRng) -> Vec<RowMap> {
    let id = Value::Integer(i128::try_from(number).unwrap_or(0) - 20);
    let labels = rng.some(&TEXTS, 1 + number % 14);
    labels
        .into_iter()
        .map(|label| {
            let weight = one(rng, Datatype::Decimal, &DECIMALS);
            let made = one(rng, Datatype::Date, &DAYS);
            let values = [
                id.clone(),
                Value::Text(label.into()),
                or_null(rng, weight),
                or_null(rng, made),
            ];
            PART_COLUMNS
                .iter()
                .map(|it| it.column.to_owned())
                .zip(values)
                .collect()
        })
        .collect()
}
