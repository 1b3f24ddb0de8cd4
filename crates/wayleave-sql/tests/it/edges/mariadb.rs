//! Values at the limits of MariaDB's types.

use serde_json::json;
use wayleave_model::mapping::Datatype::{
    Boolean, Date, Datetime, Decimal, Integer, Number, String,
};
use wayleave_model::mapping::SourceKind;

use super::drawn::{DrawnTable, Edge};
use super::values::{
    DAYS, FOLDED, WHOLE, beyond, booleans, doubles, huge, in_quotes, plain, read, texts,
};

const KIND: SourceKind = SourceKind::Mysql;

const BEFORE: &str = "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'; SET time_zone = '+00:00';";

/// A name of the maximum length.
const LONG: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789x";

/// Characters that a column cannot hold match none of its values, and cause no error.
#[tokio::test]
async fn mariadb_is_asked_for_texts_that_a_character_set_does_not_have() {
    let plain = ["", "a", "A", "a "];
    let western = ["", "a", "A", "a ", "é", "É", "ß"];
    let wide = ["", "a", "日本"];
    let strange = || [json!("日本"), json!("😀"), json!("é"), json!("?")];
    let column = |field, declared, held: &[&str]| {
        Edge::new(field, String, declared, texts(KIND, held)).asked(strange())
    };
    let edges = vec![
        column("western", "varchar(20) CHARACTER SET latin1", &western),
        column(
            "german",
            "varchar(20) CHARACTER SET latin1 COLLATE latin1_german2_ci",
            &western,
        ),
        column(
            "cyrillic",
            "varchar(20) CHARACTER SET cp1251",
            &["", "д", "Д", "ж"],
        ),
        column(
            "ascii",
            "varchar(20) CHARACTER SET ascii COLLATE ascii_general_nopad_ci",
            &plain,
        ),
        column(
            "ascii_bin",
            "varchar(20) CHARACTER SET ascii COLLATE ascii_nopad_bin",
            &plain,
        ),
        column("basic", "varchar(20) CHARACTER SET utf8mb3", &wide),
        column(
            "basic_bin",
            "varchar(20) CHARACTER SET utf8mb3 COLLATE utf8mb3_nopad_bin",
            &wide,
        ),
        column("two", "varchar(20) CHARACTER SET ucs2", &wide),
        column("four", "varchar(20) CHARACTER SET utf32", &wide),
        column(
            "mood",
            "enum('so', 'Good', 'é') CHARACTER SET latin1",
            &["so", "Good", "é"],
        ),
    ];
    let drawn = DrawnTable::new(KIND, BEFORE, edges).await;
    drawn.indexed().await.check(40).await;
}

#[tokio::test]
async fn mariadb_compares_texts_by_code_point_whatever_their_type() {
    let general = "varchar(20) COLLATE utf8mb4_general_ci";
    let nopad = "varchar(20) COLLATE utf8mb4_unicode_nopad_ci";
    let padded = [("'a'", "a"), ("'A'", "A"), ("''", ""), ("'ab  '", "ab")];
    let times = [
        ("'838:59:59'", "838:59:59.000000"),
        ("'-838:59:59'", "-838:59:59.000000"),
        ("'00:00:00.000001'", "00:00:00.000001"),
    ];
    let bags = ["", "x", "x,Y", "Y,z"];
    let edges = vec![
        Edge::new("general", String, general, texts(KIND, &FOLDED)),
        Edge::new("nopad", String, nopad, texts(KIND, &FOLDED)),
        Edge::new("padded", String, "char(4)", read(String, &padded))
            .asked([json!("a   "), json!(" ")]),
        Edge::new(
            "bag",
            String,
            "set('x', 'Y', 'z')",
            in_quotes(String, &bags),
        )
        .asked([json!("X")]),
        Edge::new("clock", String, "time(6)", read(String, &times)),
        Edge::new("quoted", String, "varchar(9)", texts(KIND, &["x", "Y", ""]))
            .named("a.b `c` SELECT"),
        Edge::new("inner", String, "text", texts(KIND, &["m0", "v0"])).named("k0"),
    ];
    DrawnTable::new(KIND, BEFORE, edges).await.check(40).await;
}

#[tokio::test]
async fn mariadb_is_exact_at_the_ends_of_numbers_and_times() {
    let years = [("1901", "1901"), ("2155", "2155"), ("'0000'", "0")];
    let big = [
        "0",
        "7",
        "18446744073709551615",
        "9223372036854775808",
        "9223372036854775807",
    ];
    let most = format!("{}.{}", "9".repeat(35), "9".repeat(30));
    let least = format!("-{most}");
    let tiny = format!("0.{}1", "0".repeat(29));
    let amounts = ["0", "1.5", &most, &least, &tiny];
    let instants = [
        ("'0001-01-01 00:00:00'", "0001-01-01T00:00:00Z"),
        (
            "'9999-12-31 23:59:59.999999'",
            "9999-12-31T23:59:59.999999Z",
        ),
        ("'2016-12-31 23:59:59'", "2016-12-31T23:59:59Z"),
    ];
    let beside = ["59.4", "59.5", "58.9"].map(|it| json!(format!("2016-12-31T23:59:{it}Z")));
    let edges = vec![
        Edge::new("year", Integer, "year", read(Integer, &years)).asked(beyond()),
        Edge::new("bits", Integer, "bit(64)", plain(Integer, &big)).asked(beyond()),
        Edge::new("big", Integer, "bigint unsigned", plain(Integer, &big)).asked(beyond()),
        Edge::new("size", Integer, "bigint", plain(Integer, &WHOLE)).asked(beyond()),
        Edge::new("exact", Decimal, "bigint unsigned", plain(Decimal, &big)).asked(huge()),
        Edge::new("ratio", Number, "double", doubles()).unsummed(),
        Edge::new(
            "amount",
            Decimal,
            "decimal(65, 30)",
            plain(Decimal, &amounts),
        )
        .asked(huge()),
        Edge::new("day", Date, "date", in_quotes(Date, &DAYS)),
        Edge::new("at", Datetime, "datetime(6)", read(Datetime, &instants)),
        Edge::new(
            "second",
            Datetime,
            "datetime",
            read(Datetime, &instants[2..]),
        )
        .asked(beside),
        Edge::new(
            "flag",
            Boolean,
            "tinyint(1)",
            booleans(&[("1", true), ("0", false), ("-5", true)]),
        )
        .named(LONG),
    ];
    DrawnTable::new(KIND, BEFORE, edges).await.check(40).await;
}
