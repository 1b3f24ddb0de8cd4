//! A ward: patients and their visits, as twins that differ in what masks hide.

use std::collections::BTreeMap;
use std::sync::Arc;

use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::{
    FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope,
};
use wayleave_store::conformance::SeededRng;

/// Contained in every hidden value that can contain it.
pub const CANARY: &str = "canary";
pub const PATIENTS: usize = 36;
const VISITS: usize = 50;
/// Number of mail addresses; several patients share one.
const MAILS: usize = 12;

/// One of the twins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Twin {
    One,
    Two,
}

/// The masked fields, by stream.
pub const MASKED: [(&str, &str); 12] = [
    ("patients", "name"),
    ("patients", "email"),
    ("patients", "phone"),
    ("patients", "born"),
    ("patients", "income"),
    ("patients", "score"),
    ("patients", "card"),
    ("patients", "admitted"),
    ("patients", "notes"),
    ("patients", "kin"),
    ("visits", "email"),
    ("visits", "cost"),
];

/// Masks of each field: the typical one, and others that hide the same differences.
const MASKS: [&[&str]; 12] = [
    &["redact"],
    &["token", "last4", "redact", "token:project"],
    &["last4", "redact"],
    &["year", "redact"],
    &["bucket:1000", "redact", "bucket:100000"],
    &["bucket:10", "redact"],
    &["last4", "redact"],
    &["year", "redact"],
    &["redact"],
    &["redact"],
    &["token", "last4", "redact", "token:project"],
    &["bucket:50", "redact"],
];

/// The mask of each field.
pub struct FieldMasks([&'static str; 12]);

impl FieldMasks {
    pub fn typical() -> Self {
        Self(MASKS.map(|it| it[0]))
    }

    pub fn drawn(rng: &mut SeededRng) -> Self {
        Self(MASKS.map(|it| *rng.one_of(it)))
    }

    pub fn package(&self, subject: &str) -> Package {
        self.packaged(subject, "the-grant")
    }

    pub fn packaged(&self, subject: &str, grant: &str) -> Package {
        let stream = |name: &str| {
            let masks = MASKED
                .iter()
                .zip(self.0)
                .filter(|((stream, _), _)| *stream == name);
            let masks =
                masks.map(|((_, field), mask)| ((*field).to_owned(), mask.parse().unwrap()));
            let granted = StreamGrant {
                fields: FieldScope::All,
                relations: RelationScope::All,
                rows: None,
                masks: masks.collect::<BTreeMap<_, _>>(),
            };
            (name.to_owned(), granted)
        };
        let grant = Grant {
            id: grant.to_owned(),
            dataset: "ward".to_owned(),
            streams: StreamScope::Only(["patients", "visits"].map(stream).into_iter().collect()),
            capabilities: std::collections::BTreeSet::new(),
        };
        Package {
            subject: subject.to_owned(),
            epoch: 1,
            grants: Grants::Only(Arc::new(
                [("ward-main".to_owned(), grant)].into_iter().collect(),
            )),
        }
    }
}

pub fn mapping(kind: SourceKind) -> String {
    format!(
        r#"
[dataset]
name = "ward"
kind = "{kind}"
iri = "https://example.org/ward#"
[[connections]]
id = "ward-main"
source = "ward"

[streams.patients]
type = "Patient"
key = ["id"]
title = "name"
event_time = "admitted"
updated = "changed"
search = ["name", "notes", "remark", "alias"]
unique = [["email"]]
[streams.patients.fields]
id = {{ datatype = "integer", required = true }}
name = {{ datatype = "string" }}
email = {{ datatype = "string", pattern = "@" }}
phone = {{ datatype = "string" }}
born = {{ datatype = "date" }}
income = {{ datatype = "decimal", min_value = 0 }}
score = {{ datatype = "number" }}
card = {{ datatype = "integer" }}
admitted = {{ datatype = "datetime" }}
notes = {{ datatype = "string" }}
kin = {{ datatype = "json" }}
city = {{ datatype = "string", one_of = ["Oslo", "Rome", "Bonn", "Cork"] }}
level = {{ datatype = "integer" }}
remark = {{ datatype = "string" }}
changed = {{ datatype = "datetime" }}
alias = {{ datatype = "string", compute = "name || ' of ' || city" }}
place = {{ datatype = "string", compute = "city || '!'" }}
richer = {{ datatype = "decimal", compute = "income * 2" }}
[streams.patients.measures]
wealth = "sum(income)"
cities = "count_distinct(city)"
[streams.patients.relations]
visits = {{ to = "visits", on = {{ id = "patient" }} }}

[streams.visits]
type = "Visit"
key = ["id"]
event_time = "at"
search = ["report"]
[streams.visits.fields]
id = {{ datatype = "integer", required = true }}
patient = {{ datatype = "integer" }}
email = {{ datatype = "string" }}
cost = {{ datatype = "decimal" }}
at = {{ datatype = "datetime" }}
kind = {{ datatype = "string" }}
report = {{ datatype = "string" }}
seen = {{ datatype = "string", compute = "who.name" }}
spent = {{ datatype = "decimal", compute = "cost + 1" }}
[streams.visits.measures]
takings = "sum(cost)"
[streams.visits.relations]
who = {{ to = "patients", on = {{ patient = "id" }} }}
by_mail = {{ to = "patients", on = {{ email = "email" }} }}
"#
    )
}

const CITIES: [&str; 4] = ["Oslo", "Rome", "Bonn", "Cork"];
const WORDS: [&str; 5] = ["amber", "birch", "cedar", "dune", "ember"];

/// The tables and rows of a twin.
pub fn sql(kind: SourceKind, seed: u64, twin: Twin) -> String {
    let (moment, float, text) = match kind {
        SourceKind::Postgres => ("timestamptz", "double precision", "text"),
        SourceKind::Mysql => ("datetime", "double", "varchar(200)"),
        _ => ("datetime", "real", "text"),
    };
    let json = match kind {
        SourceKind::Postgres => "jsonb",
        _ => "json",
    };
    let mut sql = format!(
        "CREATE TABLE patients (id integer primary key, name {text}, email {text}, phone {text},
           born date, income decimal(12, 2), score {float}, card bigint, admitted {moment},
           notes {text}, kin {json}, city {text}, level integer, remark {text}, changed {moment});
         CREATE TABLE visits (id integer primary key, patient integer, email {text},
           cost decimal(12, 2), at {moment}, kind {text}, report {text});\n"
    );
    let mut rng = SeededRng::new(seed);
    for id in 1..=PATIENTS {
        let row = patient(&mut rng, kind, id, twin);
        sql += &format!("INSERT INTO patients VALUES ({});\n", row.join(", "));
    }
    for id in 1..=VISITS {
        let row = visit(&mut rng, kind, id, twin);
        sql += &format!("INSERT INTO visits VALUES ({});\n", row.join(", "));
    }
    sql
}

/// Draws a number that differs between the twins.
fn hidden(rng: &mut SeededRng, below: usize, twin: Twin) -> usize {
    let both = [rng.below(below), rng.below(below)];
    both[usize::from(twin == Twin::Two)]
}

/// The value or NULL, the same in both twins.
fn or_null(rng: &mut SeededRng, value: String) -> String {
    if rng.below(9) == 0 {
        return "NULL".to_owned();
    }
    value
}

/// A mail address. Each number has another address in the second twin, in the opposite order.
fn mail(number: usize, twin: Twin) -> String {
    match twin {
        Twin::One => format!("'{CANARY}-{number:02}@mail.example.org'"),
        Twin::Two => format!("'{CANARY}-{:02}@post.example.org'", 98 - number * 3),
    }
}

fn moment(kind: SourceKind, year: usize, month: usize, day: usize) -> String {
    match kind {
        SourceKind::Mysql => format!("'{year}-{month:02}-{day:02} 10:00:00'"),
        _ => format!("'{year}-{month:02}-{day:02}T10:00:00Z'"),
    }
}

/// A text to be redacted; in each twin it may be null, empty or any words.
fn redacted(rng: &mut SeededRng, twin: Twin, what: &str) -> String {
    let (kind, at) = (hidden(rng, 4, twin), hidden(rng, WORDS.len(), twin));
    match kind {
        0 => "NULL".to_owned(),
        1 => "''".to_owned(),
        n => format!("'{CANARY} {what} {} {n}'", WORDS[at]),
    }
}

fn patient(rng: &mut SeededRng, kind: SourceKind, id: usize, twin: Twin) -> Vec<String> {
    let shared = rng.below(MAILS);
    let (last4, year) = (rng.below(10_000), 1950 + rng.below(50));
    let (thousand, ten) = (rng.below(9), rng.below(7));
    let seen_year = 2020 + rng.below(5);
    let (oddity, name) = (hidden(rng, 8, twin), redacted(rng, twin, "name"));
    let name = match (kind, oddity) {
        // Even a malformed value is not reported, because it is not read.
        (SourceKind::Sqlite, 0) => "x'ff00'".to_owned(),
        _ => name,
    };
    let email = mail(shared, twin);
    let phone = format!("'+{:06}{last4:04}'", 100_000 + hidden(rng, 800_000, twin));
    let born = format!(
        "'{year}-{:02}-{:02}'",
        1 + hidden(rng, 12, twin),
        1 + hidden(rng, 28, twin)
    );
    let income = format!(
        "{thousand}{:03}.{:02}",
        hidden(rng, 1000, twin),
        hidden(rng, 100, twin)
    );
    let score = format!("{ten}{}.5", hidden(rng, 10, twin));
    let card = format!("{}{last4:04}", 400_000 + hidden(rng, 100_000, twin));
    let (month, day) = (1 + hidden(rng, 12, twin), 1 + hidden(rng, 28, twin));
    let admitted = moment(kind, seen_year, month, day);
    let notes = redacted(rng, twin, "notes");
    let kin = format!("'{{\"{CANARY}\": {}}}'", hidden(rng, 99, twin));
    let city = format!("'{}'", CITIES[rng.below(4)]);
    let remark = format!("'remark {} {}'", WORDS[rng.below(5)], rng.below(9));
    let changed = moment(kind, 2026, 1 + rng.below(3), 1 + rng.below(28));
    vec![
        id.to_string(),
        name,
        or_null(rng, email),
        or_null(rng, phone),
        or_null(rng, born),
        or_null(rng, income),
        or_null(rng, score),
        or_null(rng, card),
        or_null(rng, admitted),
        notes,
        kin,
        city,
        rng.below(6).to_string(),
        or_null(rng, remark),
        changed,
    ]
}

fn visit(rng: &mut SeededRng, kind: SourceKind, id: usize, twin: Twin) -> Vec<String> {
    let patient = (1 + rng.below(PATIENTS + 4)).to_string();
    let email = mail(rng.below(MAILS), twin);
    let cost = format!("{}", rng.below(9) * 50 + hidden(rng, 50, twin));
    let at = moment(kind, 2026, 1 + rng.below(6), 1 + rng.below(28));
    let report = format!("'report {} {}'", WORDS[rng.below(5)], rng.below(9));
    vec![
        id.to_string(),
        or_null(rng, patient),
        or_null(rng, email),
        or_null(rng, cost),
        at,
        format!("'{}'", ["first", "control"][rng.below(2)]),
        report,
    ]
}
