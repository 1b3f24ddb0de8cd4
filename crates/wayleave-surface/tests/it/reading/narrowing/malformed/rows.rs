//! Records of every datatype, the row filters that select them, and the malformed values that their
//! columns can hold.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;

use wayleave_store::conformance::SeededRng;

/// A value of its datatype.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    Null,
    Text(&'static str),
    /// A word and a number.
    Title(&'static str, usize),
    Integer(usize),
    Boolean(bool),
    /// A day of 2024, counted in months of 28 days.
    Date(usize),
    /// The same day, at this hour.
    Time(usize, usize),
    /// A decimal in hundredths.
    Decimal(usize),
    /// A number in eighths.
    Number(usize),
}

pub type Record = BTreeMap<&'static str, Cell>;

/// A stream: its name, its fields with their datatypes, and its number of records.
pub struct Stream {
    pub name: &'static str,
    pub fields: &'static [(&'static str, &'static str)],
    pub records: usize,
}

pub const DOCS: Stream = Stream {
    name: "docs",
    fields: &[
        ("id", "integer"),
        ("name", "string"),
        ("body", "string"),
        ("region", "string"),
        ("public", "boolean"),
        ("gone", "boolean"),
        ("embargo", "date"),
        ("at", "datetime"),
        ("updated_at", "datetime"),
        ("level", "integer"),
        ("pay", "decimal"),
        ("ratio", "number"),
        ("extra", "json"),
    ],
    records: 40,
};

pub const PARTS: Stream = Stream {
    name: "parts",
    fields: &[
        ("id", "integer"),
        ("doc", "integer"),
        ("label", "string"),
        ("level", "integer"),
        ("made", "date"),
    ],
    records: 60,
};

pub const STREAMS: [&Stream; 2] = [&DOCS, &PARTS];

pub const WORDS: [&str; 5] = ["amber", "birch", "cedar", "dune", "ember"];
pub const BODIES: [&str; 4] = ["amber birch", "cedar cedar dune", "ember", "birch of amber"];

/// The mapping, which does not depend on the records.
pub fn mapping(kind: SourceKind) -> String {
    let mut toml = format!(
        "[dataset]\nname = \"vault\"\nkind = \"{kind}\"\n\
         [[connections]]\nid = \"vault-main\"\nsource = \"main\"\n"
    );
    for (stream, more) in [
        (
            &DOCS,
            "title = \"name\"\nevent_time = \"at\"\nupdated = \"updated_at\"\n\
             deleted = \"gone\"\nsearch = [\"name\", \"body\"]\n",
        ),
        (&PARTS, "title = \"label\"\nsearch = [\"label\"]\n"),
    ] {
        let name = stream.name;
        toml += &format!("[streams.{name}]\ntype = \"{name}\"\nkey = [\"id\"]\n{more}");
        for (field, datatype) in stream.fields {
            toml += &format!("[streams.{name}.fields.{field}]\ndatatype = \"{datatype}\"\n");
        }
    }
    toml + "[streams.docs.relations.parts]\nto = \"parts\"\non = { id = \"doc\" }\n\
        [streams.parts.relations.owner]\nto = \"docs\"\non = { doc = \"id\" }\n"
}

/// A record of a stream.
pub fn record(stream: &Stream, id: usize, rng: &mut SeededRng) -> Record {
    let mut cells = Record::new();
    for (field, datatype) in stream.fields {
        let n = rng.below(1_000);
        let cell = match (*field, *datatype) {
            ("id", _) => Cell::Integer(id),
            ("name" | "label", _) => Cell::Title(WORDS[id % WORDS.len()], id),
            ("body", _) => Cell::Text(BODIES[n % BODIES.len()]),
            ("doc", _) => Cell::Integer(n % 45),
            ("gone", _) => Cell::Boolean(n.is_multiple_of(10)),
            ("updated_at", _) => Cell::Time(n % 300, n % 24),
            _ if n.is_multiple_of(11) => Cell::Null,
            ("region", _) => Cell::Text(["eu", "us"][n % 2]),
            ("extra", _) => Cell::Text("[1]"),
            (_, "boolean") => Cell::Boolean(n.is_multiple_of(2)),
            (_, "date") => Cell::Date(n % 300),
            (_, "datetime") => Cell::Time(n % 300, n % 24),
            (_, "integer") => Cell::Integer(n % 6),
            (_, "decimal") => Cell::Decimal(n % 5_000),
            _ => Cell::Number(n % 32),
        };
        cells.insert(field, cell);
    }
    cells
}

impl Cell {
    /// The value as a SQL literal.
    pub fn literal(self, kind: SourceKind) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Integer(integer) => integer.to_string(),
            Self::Boolean(it) if kind == SourceKind::Postgres => it.to_string(),
            Self::Boolean(it) => u8::from(it).to_string(),
            Self::Time(..) if kind != SourceKind::Mysql => format!("'{}+00'", self.text()),
            _ => format!("'{}'", self.text()),
        }
    }

    /// The value as a filter operand.
    fn text(self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Text(text) => text.to_owned(),
            Self::Title(word, number) => format!("{word} {number}"),
            Self::Integer(integer) => integer.to_string(),
            Self::Boolean(it) => it.to_string(),
            Self::Date(day) => format!("2024-{:02}-{:02}", day / 28 + 1, day % 28 + 1),
            Self::Time(day, hour) => format!("{} {hour:02}:00:00", Self::Date(day).text()),
            Self::Decimal(it) => format!("{}.{:02}", it / 100, it % 100),
            Self::Number(it) => format!("{:?}", f64::from(u32::try_from(it).unwrap()) / 8.0),
        }
    }

    pub fn json(self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Integer(integer) => json!(integer),
            Self::Boolean(it) => json!(it),
            Self::Number(_) => json!(self.text().parse::<f64>().unwrap()),
            Self::Time(..) => json!(self.text().replace(' ', "T") + "Z"),
            _ => json!(self.text()),
        }
    }

    /// Its rank among values of its datatype.
    fn place(self) -> usize {
        match self {
            Self::Integer(it) | Self::Date(it) | Self::Decimal(it) | Self::Number(it) => it,
            Self::Time(day, hour) => day * 24 + hour,
            Self::Boolean(it) => usize::from(it),
            Self::Null | Self::Text(_) | Self::Title(..) => 0,
        }
    }
}

/// A grant's row filter: a field, an operator and an operand.
#[derive(Debug, Clone, Copy)]
pub struct RowFilter {
    pub field: &'static str,
    operator: &'static str,
    value: Cell,
}

impl RowFilter {
    /// The filter for the pair of twins of this number; the numbers cycle through the datatypes.
    pub fn drawn(stream: &Stream, number: usize, rng: &mut SeededRng) -> Self {
        let parts = [
            ("level", [Cell::Integer(2), Cell::Integer(4)]),
            ("made", [Cell::Date(100), Cell::Date(200)]),
        ];
        let docs = [
            ("embargo", [Cell::Date(100), Cell::Date(200)]),
            ("at", [Cell::Time(100, 0), Cell::Time(200, 12)]),
            ("public", [Cell::Boolean(true), Cell::Boolean(false)]),
            ("level", [Cell::Integer(2), Cell::Integer(4)]),
            ("pay", [Cell::Decimal(1_500), Cell::Decimal(3_000)]),
            ("ratio", [Cell::Number(8), Cell::Number(20)]),
            ("updated_at", [Cell::Time(100, 0), Cell::Time(200, 12)]),
            ("region", [Cell::Text("eu"), Cell::Text("us")]),
        ];
        let (field, values) = if stream.name == PARTS.name {
            parts[number % parts.len()]
        } else {
            docs[number % docs.len()]
        };
        let operator = match field {
            "region" => "eq",
            "public" => *rng.one_of(&["eq", "ne"]),
            _ => *rng.one_of(&["lt", "lte", "gt", "gte", "ne", "not_in"]),
        };
        Self {
            field,
            operator,
            value: *rng.one_of(&values),
        }
    }

    pub fn json(self) -> Json {
        let value = match self.operator {
            "not_in" => json!([self.value.json()]),
            _ => self.value.json(),
        };
        json!({ self.field: { self.operator: value } })
    }

    pub fn shows(self, record: &Record) -> bool {
        let cell = record[self.field];
        if cell == Cell::Null {
            return false;
        }
        let (held, limit) = (cell.place(), self.value.place());
        match self.operator {
            "eq" => cell == self.value,
            "lt" => held < limit,
            "lte" => held <= limit,
            "gt" => held > limit,
            "gte" => held >= limit,
            _ => cell != self.value,
        }
    }
}

/// Malformed values that a column for this datatype can hold in such a store, as SQL literals.
pub fn malformed(kind: SourceKind, datatype: &str) -> &'static [&'static str] {
    match (kind, datatype) {
        (SourceKind::Sqlite, "boolean") => {
            &["'no'", "'No'", "'off'", "'nein'", "''", "' '", "x'00'"]
        }
        (SourceKind::Sqlite, "date") => &[
            "'12/31/2031'",
            "'garbage'",
            "''",
            "'2024-13-01'",
            "'2024-05-05 nonsense'",
            "20250101",
            "1e300",
            "x'00'",
        ],
        (SourceKind::Sqlite, "datetime") => &[
            "'garbage'",
            "'12/31/2031'",
            "'2024-05-05 nonsense'",
            "'2024-05-05T99:99:99Z'",
            "'2024-02-30 00:00:00'",
            "''",
            "1e300",
            "1714979289000",
            "x'00'",
        ],
        (SourceKind::Sqlite, "integer") => &["'unknown'", "'n/a'", "'1?'", "''", "1.5", "x'31'"],
        (SourceKind::Sqlite, "decimal") => &["'unknown'", "'n/a'", "'1?'", "''", "x'31'"],
        (SourceKind::Sqlite, "number") => &["'unknown'", "'1?'", "''", "9e999", "x'31'"],
        (SourceKind::Sqlite, "json") => &["'{'", "'nope'", "x'00'"],
        (SourceKind::Postgres, "date" | "datetime") => &["'infinity'", "'-infinity'"],
        (SourceKind::Postgres, "decimal") => &["'NaN'"],
        (SourceKind::Postgres, "number") => &["'NaN'", "'Infinity'", "'-Infinity'"],
        (SourceKind::Mysql, "date") => &["'0000-00-00'", "'2024-00-00'", "'2024-05-00'"],
        (SourceKind::Mysql, "datetime") => &[
            "'0000-00-00 00:00:00'",
            "'2024-00-00 00:00:00'",
            "'2024-05-00 07:00:00'",
        ],
        _ => &[],
    }
}

/// The type of a column that can hold such values.
pub fn column_type(kind: SourceKind, datatype: &str) -> &'static str {
    match (datatype, kind) {
        ("integer", _) => "INTEGER",
        ("boolean", _) => "BOOLEAN",
        ("date", _) => "DATE",
        ("decimal", _) => "DECIMAL(10, 2)",
        ("datetime", SourceKind::Sqlite) => "DATETIME",
        ("datetime", SourceKind::Postgres) => "timestamptz",
        ("datetime", _) => "DATETIME(6)",
        ("number", SourceKind::Sqlite) => "REAL",
        ("number", _) => "DOUBLE PRECISION",
        ("json", SourceKind::Postgres) => "jsonb",
        ("json", SourceKind::Mysql) => "JSON",
        _ => "TEXT",
    }
}
