//! Single-precision numbers are read as the decimal they were written as.

use serde_json::json;
use wayleave_model::mapping::{Datatype, SourceKind};
use wayleave_plan::value::Value;

use super::drawn::{DrawnTable, Edge};

/// Stored as written, except for some at the limits, which are the nearest single-precision
/// numbers.
const HELD: [(&str, f64); 20] = [
    ("0.1", 0.1),
    ("-0.1", -0.1),
    ("0.2", 0.2),
    ("0.3", 0.3),
    ("0.7", 0.7),
    ("0", 0.0),
    ("-0.0", 0.0),
    ("1", 1.0),
    ("4194304.5", 4_194_304.5),
    ("16777216", 16_777_216.0),
    ("16777218", 16_777_218.0),
    ("123456.79", 123_456.79),
    ("3.40282346e38", 3.402_823_5e38),
    ("-3.40282346e38", -3.402_823_5e38),
    ("1.1754944e-38", 1.175_494_4e-38),
    ("1e-40", 1e-40),
    ("1e-45", 1e-45),
    ("7.03853069185120912e-26", 7.038_531e-26),
    ("0.3333333333", 0.333_333_34),
    ("16777217", 16_777_216.0),
];

/// Operands that equal no stored value.
const BESIDE: [f64; 12] = [
    0.100_000_001_490_116_12,
    0.1 + 1e-12,
    0.1 - 1e-12,
    -0.100_000_001_490_116_12,
    0.333_333_333_3,
    16_777_217.0,
    1e39,
    -1e39,
    3.402_823_567_797_336_6e38,
    1e-60,
    -1e-60,
    5e-324,
];

fn held(values: &[(&str, f64)]) -> Vec<(String, Value)> {
    let pair = |(literal, number): &(&str, f64)| ((*literal).to_owned(), Value::Number(*number));
    values.iter().map(pair).collect()
}

async fn check(kind: SourceKind, declared: &'static str) {
    let asked = BESIDE.map(|number| json!(number));
    // The summed values have one magnitude, so that the order of addition does not show.
    let added = [
        ("0.1", 0.1),
        ("0.2", 0.2),
        ("0.7", 0.7),
        ("8.125", 8.125),
        ("0.33333334", 0.333_333_34),
        ("1234.567", 1234.567),
    ];
    let edges = vec![
        Edge::new("share", Datatype::Number, declared, held(&HELD)).asked(asked.clone()),
        Edge::new("part", Datatype::Number, declared, held(&added)).asked(asked),
    ];
    DrawnTable::new(kind, "", edges).await.check(40).await;
}

#[tokio::test]
async fn a_real_of_postgres_is_what_was_written() {
    check(SourceKind::Postgres, "real").await;
}

#[tokio::test]
async fn a_float_of_mariadb_is_what_was_written() {
    check(SourceKind::Mysql, "float").await;
}
