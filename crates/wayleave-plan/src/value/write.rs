//! Writes values as canonical JSON and as text.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value as Json};

use super::Value;

/// Largest integer that every JSON parser represents exactly.
const MAX_EXACT_JSON_INTEGER: u128 = (1 << 53) - 1;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// How JSON represents a value that needs no escaping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonForm {
    /// Unquoted.
    Bare,
    /// In quotation marks.
    Quoted,
}

impl Value {
    /// The canonical JSON of the value.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null | Self::Malformed => Json::Null,
            Self::Text(text) | Self::Decimal(text) => Json::String(text.to_string()),
            Self::Integer(integer) => integer_json(*integer),
            // A sum of 0 may be -0.0 in one store and 0.0 in another.
            Self::Number(number) if *number == 0.0 => Json::from(0.0),
            Self::Number(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
            Self::Boolean(boolean) => Json::Bool(*boolean),
            Self::Date(days) => Json::String(date_text(*days)),
            Self::Datetime(micros) => Json::String(datetime_text(*micros)),
            Self::Json(json) => sorted(json),
            Self::List(values) => Json::Array(values.iter().map(Self::to_json).collect()),
            Self::Preview(preview) => Json::String(preview.start.to_string()),
        }
    }

    /// Appends a number, a boolean or a time as shown, and returns how JSON writes it. For a value
    /// that may need escaping, appends nothing and returns `None`.
    pub fn push_simple(&self, out: &mut String) -> Option<JsonForm> {
        match self {
            Self::Integer(integer) => {
                out.push_str(itoa::Buffer::new().format(*integer));
                Some(if is_exact(*integer) {
                    JsonForm::Bare
                } else {
                    JsonForm::Quoted
                })
            }
            Self::Boolean(boolean) => {
                out.push_str(if *boolean { "true" } else { "false" });
                Some(JsonForm::Bare)
            }
            Self::Date(days) => {
                push_date(out, i64::from(*days));
                Some(JsonForm::Quoted)
            }
            Self::Datetime(micros) => {
                push_datetime(out, *micros);
                Some(JsonForm::Quoted)
            }
            _ => None,
        }
    }

    /// The value as plain text, as a key inside an id or a cell of a table shows it. `None` for
    /// NULL.
    pub fn to_text(&self) -> Option<String> {
        match self.to_json() {
            Json::Null => None,
            Json::String(text) => Some(text),
            other => Some(other.to_string()),
        }
    }
}

/// Formats the day that is `days` after 1970-01-01.
pub fn date_text(days: i32) -> String {
    written(|text| push_date(text, i64::from(days)))
}

/// Formats the instant that is `micros` microseconds after 1970-01-01T00:00:00Z.
pub fn datetime_text(micros: i64) -> String {
    written(|text| push_datetime(text, micros))
}

fn integer_json(integer: i128) -> Json {
    match i64::try_from(integer) {
        Ok(small) if is_exact(integer) => Json::from(small),
        _ => Json::String(integer.to_string()),
    }
}

fn is_exact(integer: i128) -> bool {
    integer.unsigned_abs() <= MAX_EXACT_JSON_INTEGER
}

/// The same JSON with the keys of every object sorted.
fn sorted(json: &Json) -> Json {
    match json {
        Json::Array(items) => Json::Array(items.iter().map(sorted).collect()),
        Json::Object(members) => sorted_object(members),
        other => other.clone(),
    }
}

/// The same object with the keys of every object sorted.
pub(crate) fn sorted_object(members: &Map<String, Json>) -> Json {
    let mut pairs: Vec<_> = members.iter().collect();
    pairs.sort_by(|a, b| a.0.cmp(b.0));
    let pairs = pairs.into_iter();
    Json::Object(
        pairs
            .map(|(key, value)| (key.clone(), sorted(value)))
            .collect(),
    )
}

/// The year, month and day of the given number of days after 1970-01-01, in the proleptic Gregorian
/// calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Count years from March, so that the leap day ends its year; eras are 400 years.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn written(push: impl FnOnce(&mut String)) -> String {
    let mut text = String::with_capacity("0000-00-00T00:00:00.000000Z".len());
    push(&mut text);
    text
}

fn push_date(text: &mut String, days: i64) {
    let (year, month, day) = civil(days);
    // Years before 0 and after 9999 have no RFC 3339 form; ISO 8601 writes them with a sign.
    if (0..=9999).contains(&year) {
        push_two(text, year / 100);
        push_two(text, year % 100);
        for number in [month, day] {
            text.push('-');
            push_two(text, number);
        }
    } else {
        // Writing to a string cannot fail.
        let _ = write!(text, "{year:+07}-{month:02}-{day:02}");
    }
}

/// Appends a two-digit number.
#[expect(clippy::expect_used, reason = "a missing field would change the time")]
fn push_two(text: &mut String, number: i64) {
    const DIGITS: &str = "00010203040506070809101112131415161718192021222324\
        25262728293031323334353637383940414243444546474849\
        50515253545556575859606162636465666768697071727374\
        75767778798081828384858687888990919293949596979899";
    let at = usize::try_from(number * 2).ok();
    let digits = at.and_then(|at| DIGITS.get(at..at + 2));
    text.push_str(digits.expect("a number from 0 to 99"));
}

fn push_datetime(text: &mut String, micros: i64) {
    let seconds = micros.div_euclid(MICROS_PER_SECOND);
    let fraction = micros.rem_euclid(MICROS_PER_SECOND);
    let days = seconds.div_euclid(86_400);
    let second_of_day = seconds.rem_euclid(86_400);
    push_date(text, days);
    let (hour, minute, second) = (
        second_of_day / 3_600,
        second_of_day / 60 % 60,
        second_of_day % 60,
    );
    for (mark, number) in [('T', hour), (':', minute), (':', second)] {
        text.push(mark);
        push_two(text, number);
    }
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
    text.push('Z');
}
