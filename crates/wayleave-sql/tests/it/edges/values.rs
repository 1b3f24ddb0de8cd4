//! Values at the limits of their types that every store is tested with.

use serde_json::{Value as Json, json};
use wayleave_model::mapping::{Datatype, SourceKind};
use wayleave_plan::value::Value;

use crate::stores::text_literal;

/// Values given as a SQL literal and the text of its value.
pub(crate) fn read(datatype: Datatype, values: &[(&str, &str)]) -> Vec<(String, Value)> {
    values
        .iter()
        .map(|(literal, text)| {
            let value = Value::from_text(datatype, text).unwrap();
            ((*literal).to_owned(), value)
        })
        .collect()
}

/// Values whose SQL literal is their text.
pub(crate) fn plain(datatype: Datatype, values: &[&str]) -> Vec<(String, Value)> {
    let pairs: Vec<(&str, &str)> = values.iter().map(|it| (*it, *it)).collect();
    read(datatype, &pairs)
}

/// Values whose SQL literal is their text in quotes.
pub(crate) fn in_quotes(datatype: Datatype, values: &[&str]) -> Vec<(String, Value)> {
    let mut read = plain(datatype, values);
    for (literal, _) in &mut read {
        *literal = format!("'{literal}'");
    }
    read
}

pub(crate) fn texts(kind: SourceKind, texts: &[&str]) -> Vec<(String, Value)> {
    let pair = |text: &&str| (text_literal(kind, text), Value::Text((*text).into()));
    texts.iter().map(pair).collect()
}

/// Texts that collations fold, pad or ignore.
pub(crate) const FOLDED: [&str; 16] = [
    "", " ", "  ", "a", "A", "a ", "a  ", "a\t", "á", "Á", "ab", "aB", "a-b", "ss", "ß", "\u{ad}a",
];

pub(crate) const WHOLE: [&str; 7] = [
    "0",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "9007199254740993",
    "9007199254740992",
    "-9007199254740993",
];

/// Integers beyond the range of every store.
pub(crate) fn beyond() -> Vec<Json> {
    let texts = [
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "-1",
        "170141183460469231731687303715884105727",
    ];
    texts.iter().map(|it| json!(it)).collect()
}

pub(crate) fn doubles() -> Vec<(String, Value)> {
    let numbers = [
        "0.1",
        "0.30000000000000004",
        "1e300",
        "5e-324",
        "2.2250738585072014e-308",
        "0",
        "-0.0",
        "9007199254740993",
        "-1e300",
        "1.7976931348623157e308",
        "123456789.12345679",
    ];
    let pair = |it: &str| (it.to_owned(), Value::Number(it.parse().unwrap()));
    numbers.iter().map(|it| pair(it)).collect()
}

pub(crate) fn huge() -> Vec<Json> {
    let nines = "9".repeat(900);
    [
        format!("{nines}.{nines}"),
        format!("-{nines}"),
        format!("0.{}1", "0".repeat(900)),
    ]
    .into_iter()
    .map(Json::from)
    .collect()
}

/// A large decimal, small enough that a sum of several still fits.
pub(crate) fn large(sign: &str) -> String {
    format!("{sign}{}.1", "1234567890".repeat(9))
}

/// Days at the limits of the calendar and within it.
pub(crate) const DAYS: [&str; 4] = ["0001-01-01", "9999-12-31", "2000-02-29", "1582-10-10"];

/// Integers with equal values, and others.
pub(crate) fn wholes() -> Vec<(String, Value)> {
    [
        ("9007199254740993", 9_007_199_254_740_992.0),
        ("9007199254740992", 9_007_199_254_740_992.0),
        ("9007199254740994", 9_007_199_254_740_994.0),
        ("-3", -3.0),
    ]
    .map(|(literal, number)| (literal.to_owned(), Value::Number(number)))
    .to_vec()
}

/// True and false in the forms that a store writes.
pub(crate) fn booleans(values: &[(&str, bool)]) -> Vec<(String, Value)> {
    let pair = |(literal, value): &(&str, bool)| ((*literal).to_owned(), Value::Boolean(*value));
    values.iter().map(pair).collect()
}
