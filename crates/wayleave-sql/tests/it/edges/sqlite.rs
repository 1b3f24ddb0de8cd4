//! Values at the limits of SQLite's types.

use serde_json::json;
use wayleave_model::mapping::Datatype::{
    Boolean, Date, Datetime, Decimal, Integer, Number, String,
};
use wayleave_model::mapping::SourceKind;

use super::drawn::{DrawnTable, Edge};
use super::values::{
    DAYS, FOLDED, WHOLE, beyond, booleans, doubles, huge, in_quotes, large, plain, read, texts,
    wholes,
};

const KIND: SourceKind = SourceKind::Sqlite;

/// Checks the columns without indexes, and with an index on each.
async fn check(edges: fn() -> Vec<Edge>) {
    DrawnTable::new(KIND, "", edges()).await.check(40).await;
    let drawn = DrawnTable::new(KIND, "", edges()).await;
    drawn.indexed().await.check(40).await;
}

#[tokio::test]
async fn sqlite_compares_texts_by_code_point_whatever_their_type() {
    check(|| {
        let loose = [
            ("'a'", "a"),
            ("12", "12"),
            ("'012'", "12"),
            ("1.5", "1.5"),
            ("''", ""),
            ("'1e3'", "1000"),
        ];
        let none = [
            ("'a'", "a"),
            ("12", "12"),
            ("'12'", "12"),
            ("'012'", "012"),
            ("1.0", "1"),
            ("''", ""),
            ("x'3132'", "\\x3132"),
        ];
        let odd = || [json!("012"), json!("1e3"), json!("12.0"), json!("1.0")];
        vec![
            Edge::new(
                "nocase",
                String,
                "TEXT COLLATE NOCASE",
                texts(KIND, &FOLDED),
            ),
            Edge::new("rtrim", String, "TEXT COLLATE RTRIM", texts(KIND, &FOLDED)),
            Edge::new("loose", String, "STRING", read(String, &loose)).asked(odd()),
            Edge::new("none", String, "", read(String, &none)).asked(odd()),
            Edge::new("number", String, "TEXT", texts(KIND, &["x", "Y", ""])).named("rowid"),
            Edge::new("quoted", String, "TEXT", texts(KIND, &["x", "Y", ""]))
                .named("a.b \"c\" [d] `e` SELECT"),
            Edge::new("inner", String, "TEXT", texts(KIND, &["m0", "v0"])).named("k0"),
        ]
    })
    .await;
}

#[tokio::test]
async fn sqlite_is_exact_at_the_ends_of_numbers() {
    check(|| {
        let spelled = [("'7'", "7"), ("7.0", "7"), ("' 8 '", "8"), ("-9", "-9")];
        let amounts = [
            ("0", "0"),
            ("-0.0", "0"),
            ("0.1", "0.1"),
            ("'2.50'", "2.5"),
            ("9223372036854775807", "9223372036854775807"),
            // A float, read as the decimal it is written as.
            ("9223372036854775808", "9223372036854776000"),
            ("1e22", "10000000000000000000000"),
            ("-1e22", "-10000000000000000000000"),
            ("1e-7", "0.0000001"),
        ];
        let large = large("");
        let quoted = format!("'{large}'");
        let written = [
            ("'0'", "0"),
            ("'-0.00'", "0"),
            ("'1.50'", "1.5"),
            ("'1.5'", "1.5"),
            ("'+7'", "7"),
            ("'007'", "7"),
            (quoted.as_str(), large.as_str()),
        ];
        let beside = [
            "9223372036854775808.5",
            "9223372036854775807.5",
            "0.10000000000000000555",
        ];
        let truths = [
            ("1", true),
            ("'f'", false),
            ("'TRUE'", true),
            ("0.0", false),
            ("0.5", true),
        ];
        vec![
            Edge::new("size", Integer, "INTEGER", plain(Integer, &WHOLE)).asked(beyond()),
            Edge::new("spelled", Integer, "INT", read(Integer, &spelled)),
            Edge::new("ratio", Number, "REAL", doubles()).unsummed(),
            Edge::new("whole", Number, "INTEGER", wholes()),
            Edge::new("amount", Decimal, "DECIMAL(10, 2)", read(Decimal, &amounts))
                .asked(huge())
                .asked(beside.map(|it| json!(it))),
            Edge::new("written", Decimal, "TEXT", read(Decimal, &written)).asked(huge()),
            Edge::new("flag", Boolean, "BOOLEAN", booleans(&truths)),
        ]
    })
    .await;
}

#[tokio::test]
async fn sqlite_is_exact_at_the_ends_of_times() {
    check(|| {
        let instants = [
            ("'0001-01-01 00:00:00'", "0001-01-01T00:00:00Z"),
            (
                "'9999-12-31 23:59:59.999999Z'",
                "9999-12-31T23:59:59.999999Z",
            ),
            ("'2024-10-27T02:30:00+02:00'", "2024-10-27T00:30:00Z"),
            ("'2024-10-27T02:30:00+01:00'", "2024-10-27T01:30:00Z"),
            ("'2024-01-01'", "2024-01-01T00:00:00Z"),
            ("'2024-01-01 00:00'", "2024-01-01T00:00:00Z"),
            ("'2024-01-01T00:00:00.000000999Z'", "2024-01-01T00:00:00Z"),
            ("'2023-12-31T23:59:59-23:59'", "2024-01-01T23:58:59Z"),
        ];
        let seconds = [
            ("0", "1970-01-01T00:00:00Z"),
            ("-62135596800", "0001-01-01T00:00:00Z"),
            ("253402300799", "9999-12-31T23:59:59Z"),
            ("1.25", "1970-01-01T00:00:01.25Z"),
            ("-0.5", "1969-12-31T23:59:59.5Z"),
        ];
        vec![
            Edge::new("day", Date, "DATE", in_quotes(Date, &DAYS)),
            Edge::new("at", Datetime, "DATETIME", read(Datetime, &instants)),
            Edge::new("since", Datetime, "", read(Datetime, &seconds)),
        ]
    })
    .await;
}
