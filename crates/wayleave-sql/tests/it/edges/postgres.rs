//! Values at the limits of PostgreSQL's types.

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

const KIND: SourceKind = SourceKind::Postgres;

const BEFORE: &str = "CREATE EXTENSION citext;
    CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE DOMAIN short AS varchar(20) COLLATE folded;
    CREATE DOMAIN score AS int2;
    CREATE TYPE mood AS ENUM ('so', 'Good', 'bad', '');";

/// A name of the maximum length.
const LONG: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

#[tokio::test]
async fn postgres_compares_texts_by_code_point_whatever_their_type() {
    let padded = [("'a'", "a"), ("'A'", "A"), ("''", ""), ("'ab'", "ab")];
    let moods = ["so", "Good", "bad", ""];
    let edges = vec![
        Edge::new(
            "folded",
            String,
            "text COLLATE folded",
            texts(KIND, &FOLDED),
        ),
        Edge::new("domain", String, "short", texts(KIND, &FOLDED)),
        Edge::new("ci", String, "citext", texts(KIND, &FOLDED)).asked([json!("AB")]),
        Edge::new("padded", String, "char(4)", read(String, &padded))
            .asked([json!("a   "), json!(" ")]),
        Edge::new("mood", String, "mood", in_quotes(String, &moods)).asked([json!("good")]),
        Edge::new("quoted", String, "varchar(9)", texts(KIND, &["x", "Y", ""]))
            .named("a.b \"c\" SELECT"),
        Edge::new("inner", String, "text", texts(KIND, &["m0", "v0"])).named("k0"),
    ];
    DrawnTable::new(KIND, BEFORE, edges).await.check(40).await;
}

#[tokio::test]
async fn postgres_is_exact_at_the_ends_of_numbers_and_times() {
    let (large, small) = (large(""), large("-"));
    let tiny = format!("0.{}1", "0".repeat(60));
    let amounts = ["0", "-0.0", "1.50", "1.5", &tiny, &large, &small];
    let instants = [
        ("'0001-01-01 00:00:00Z'", "0001-01-01T00:00:00Z"),
        (
            "'9999-12-31 23:59:59.999999Z'",
            "9999-12-31T23:59:59.999999Z",
        ),
        ("'2016-12-31 23:59:60Z'", "2017-01-01T00:00:00Z"),
        (
            "'2024-10-27 02:30:00 Europe/Berlin'",
            "2024-10-27T01:30:00Z",
        ),
    ];
    let scores = ["-32768", "32767", "0"];
    let edges = vec![
        Edge::new("score", Integer, "score", plain(Integer, &scores)).asked(beyond()),
        Edge::new("size", Integer, "bigint", plain(Integer, &WHOLE)).asked(beyond()),
        Edge::new("ratio", Number, "float8", doubles()).unsummed(),
        Edge::new("whole", Number, "bigint", wholes()),
        Edge::new("amount", Decimal, "numeric", plain(Decimal, &amounts)).asked(huge()),
        Edge::new("day", Date, "date", in_quotes(Date, &DAYS)),
        Edge::new("at", Datetime, "timestamptz", read(Datetime, &instants)),
        Edge::new(
            "flag",
            Boolean,
            "bool",
            booleans(&[("true", true), ("false", false)]),
        )
        .named(LONG),
    ];
    DrawnTable::new(KIND, BEFORE, edges).await.check(40).await;
}
