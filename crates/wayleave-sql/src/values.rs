//! Decodes the values of drivers to the datatypes of the mapping.
//!
//! Drivers produce [`Cell`]s; their meaning is decided here, once for every store.

use std::borrow::Cow;

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, ColumnOrigin};
use wayleave_plan::value::{
    Preview, Text, Value, average, date_from_text, datetime_from_text, decimal_from_text, rounded,
};
use wayleave_store::{Detail, OnMalformed, Row, StoreError};

use crate::compile::{Output, PREVIEW, WHOLE};
use crate::decimal_key;

/// A value from a driver, borrowed from the driver's memory where possible.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    Integer(i128),
    Real(f64),
    Boolean(bool),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Datetime(i64),
    /// The text forms of a list's items.
    Texts(Vec<Option<String>>),
    /// A value that belongs to no datatype: infinity, the zero date, a list of lists.
    Malformed,
}

const MICROS_PER_SECOND: i64 = 1_000_000;
/// Bounds of the years 1 to 9999. A number beyond them counts something other than seconds.
const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;
/// 2^53: from here on one floating-point number stands for several integers.
pub(crate) const MIN_INEXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// The number that a single-precision float stands for: the shortest decimal that is nearest to
/// that float, so that `0.1` is 0.1 and not 0.10000000149011612. Distinct floats stand for distinct
/// numbers, in the same order.
pub(crate) fn from_single(single: f32) -> f64 {
    #[expect(
        clippy::expect_used,
        reason = "the standard library writes floats that it reads"
    )]
    format!("{single:e}")
        .parse()
        .expect("a written float is a float")
}

/// Decodes one row of an answer. A cell that does not fit its output is an error that names the
/// column, or a marker.
pub(crate) fn row<'a>(
    outputs: &[Output<'_>],
    mut cells: impl Iterator<Item = Cell<'a>>,
    on_malformed: OnMalformed,
) -> Result<Row, StoreError> {
    let mut row = Vec::with_capacity(outputs.len());
    let mut next = || cells.next().ok_or_else(unexpected_answer);
    for output in outputs {
        let cell = next()?;
        row.push(match output {
            Output::Witness(_) => continue,
            Output::Column(column) => decode_column(column, cell, on_malformed)?,
            Output::Preview(column) => decode_preview(column, cell, on_malformed)?,
            Output::Key(column) => fitting(key_value(column, cell), column, on_malformed)?,
            Output::FirstDay => first_day(&cell)?,
            Output::FirstInstant => first_instant(&cell)?,
            Output::Count => Value::Integer(integer(&cell).ok_or_else(unexpected_answer)?),
            Output::Sum(column) => match sum(column, cell) {
                Some(Value::Number(number)) => Value::Number(rounded(number)),
                Some(sum) => sum,
                None => return Err(malformed(column, column.datatype)),
            },
            Output::Mean(column) => {
                let sum = sum(column, cell).ok_or_else(|| malformed(column, column.datatype))?;
                let count = integer(&next()?).and_then(|it| u64::try_from(it).ok());
                average(&sum, count.ok_or_else(unexpected_answer)?)
            }
        });
    }
    Ok(row)
}

/// The error for an answer that lacks a selected value.
pub(crate) fn unexpected_answer() -> StoreError {
    StoreError::Failed {
        doing: "reading",
        code: None,
        detail: Detail::from_static("the answer lacks a selected value"),
    }
}

/// The value of one column.
pub(crate) fn decode_column(
    column: &Column,
    cell: Cell<'_>,
    on_malformed: OnMalformed,
) -> Result<Value, StoreError> {
    fitting(column_value(column, cell), column, on_malformed)
}

/// The value of a column, or the marker of a malformed one.
fn fitting(
    value: Option<Value>,
    column: &Column,
    on_malformed: OnMalformed,
) -> Result<Value, StoreError> {
    match (value, on_malformed) {
        (Some(value), _) => Ok(value),
        (None, OnMalformed::Mark) => Ok(Value::Malformed),
        (None, OnMalformed::Fail) => Err(malformed(column, column.datatype)),
    }
}

/// Decodes a column whose long texts are returned as previews.
pub(crate) fn decode_preview(
    column: &Column,
    cell: Cell<'_>,
    on_malformed: OnMalformed,
) -> Result<Value, StoreError> {
    let Cell::Text(text) = &cell else {
        return decode_column(column, cell, on_malformed);
    };
    if let Some(whole) = text.strip_prefix(WHOLE) {
        return decode_column(column, Cell::Text(whole.into()), on_malformed);
    }
    let Some(preview) = text.strip_prefix(PREVIEW) else {
        return decode_column(column, cell, on_malformed);
    };
    let told = preview.split_once(':');
    let told = told.and_then(|(many, start)| Some((many.parse().ok()?, start)));
    let (characters, start) = told.ok_or_else(|| malformed(column, column.datatype))?;
    Ok(Value::Preview(Box::new(Preview {
        start: start.into(),
        characters,
    })))
}

/// The error for a value that is not of its column's mapped datatype.
pub(crate) fn malformed(column: &Column, datatype: Datatype) -> StoreError {
    StoreError::MalformedValue {
        column: column.label().to_owned(),
        datatype,
    }
}

fn first_day(cell: &Cell<'_>) -> Result<Value, StoreError> {
    match cell {
        Cell::Null => Some(Value::Null),
        Cell::Date(days) => Some(Value::Date(*days)),
        Cell::Integer(days) => i32::try_from(*days).ok().map(Value::Date),
        _ => None,
    }
    .ok_or_else(|| malformed_period(Datatype::Date))
}

fn first_instant(cell: &Cell<'_>) -> Result<Value, StoreError> {
    match cell {
        Cell::Null => Some(Value::Null),
        Cell::Datetime(micros) => Some(Value::Datetime(*micros)),
        Cell::Integer(micros) => i64::try_from(*micros).ok().map(Value::Datetime),
        _ => None,
    }
    .ok_or_else(|| malformed_period(Datatype::Datetime))
}

fn malformed_period(datatype: Datatype) -> StoreError {
    StoreError::MalformedValue {
        column: "(period)".to_owned(),
        datatype,
    }
}

fn column_value(column: &Column, cell: Cell<'_>) -> Option<Value> {
    match (column.many, cell) {
        (_, Cell::Null) => Some(Value::Null),
        (true, cell) => list(column.datatype, cell),
        (false, cell) => scalar(column.datatype, cell),
    }
}

/// Decodes the key form of a column: datetimes may be microseconds, decimals bytes.
fn key_value(column: &Column, cell: Cell<'_>) -> Option<Value> {
    match (column.datatype, cell) {
        (_, Cell::Null) => Some(Value::Null),
        (Datatype::Datetime, Cell::Integer(micros)) => {
            i64::try_from(micros).ok().map(Value::Datetime)
        }
        (Datatype::Decimal, Cell::Bytes(key)) => {
            decimal_key::decode(&key).map(|it| Value::Decimal(it.into()))
        }
        (Datatype::Integer, Cell::Bytes(key)) => {
            let text = decimal_key::decode(&key)?;
            sum(column, Cell::Text(text.into()))
        }
        // A computed value may exceed every integer type, as a sum may.
        (Datatype::Integer, cell @ Cell::Text(_))
            if !matches!(column.origin, ColumnOrigin::Stored { .. }) =>
        {
            sum(column, cell)
        }
        (datatype, cell) => scalar(datatype, cell),
    }
}

fn sum(column: &Column, cell: Cell<'_>) -> Option<Value> {
    match (column.datatype, cell) {
        (_, Cell::Null) => Some(Value::Null),
        // A sum of integers may exceed every integer type of a store.
        (Datatype::Integer, Cell::Text(text)) => match text.parse() {
            Ok(integer) => Some(Value::Integer(integer)),
            Err(_) => decimal_from_text(&text).map(Value::Decimal),
        },
        (datatype, cell) => scalar(datatype, cell),
    }
}

/// Decodes one value of a datatype; `None` if the cell holds no such value.
pub(crate) fn scalar(datatype: Datatype, cell: Cell<'_>) -> Option<Value> {
    match datatype {
        Datatype::String | Datatype::Iri => text(cell).map(Value::Text),
        Datatype::Integer => integer(&cell).map(Value::Integer),
        Datatype::Decimal => decimal(cell).map(Value::Decimal),
        Datatype::Number => number(&cell).map(Value::Number),
        Datatype::Boolean => boolean(&cell).map(Value::Boolean),
        Datatype::Date => match cell {
            Cell::Date(days) => Some(Value::Date(days)),
            Cell::Text(text) => date_from_text(&text).map(Value::Date),
            _ => None,
        },
        Datatype::Datetime => datetime(&cell).map(Value::Datetime),
        Datatype::Json => match cell {
            Cell::Text(text) => serde_json::from_str(&text).ok().map(Value::Json),
            // SQLite may hold the text of a number as the number.
            Cell::Integer(integer) => {
                let integer = i64::try_from(integer).ok()?;
                Some(Value::Json(Box::new(integer.into())))
            }
            Cell::Real(real) => Some(Value::Json(Box::new(real.into()))),
            _ => None,
        },
    }
}

/// A value as text: numbers as they are written, bytes as `\x` and hexadecimal digits.
pub(crate) fn text(cell: Cell<'_>) -> Option<Text> {
    match cell {
        Cell::Text(text) => Some(text.into()),
        Cell::Integer(integer) => Some(integer.to_string().into()),
        Cell::Real(real) => Some(real.to_string().into()),
        Cell::Bytes(bytes) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            Some(std::iter::once("\\x".to_owned()).chain(digits).collect())
        }
        _ => None,
    }
}

fn integer(cell: &Cell<'_>) -> Option<i128> {
    match cell {
        Cell::Integer(integer) => Some(*integer),
        Cell::Text(text) => text.parse().ok(),
        Cell::Boolean(boolean) => Some(i128::from(*boolean)),
        // 2^53 itself is taken as that integer, although it may have been stored for 2^53 + 1.
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
        Cell::Real(real) if real.fract() == 0.0 && real.abs() <= MIN_INEXACT_INTEGER => {
            Some(*real as i128)
        }
        _ => None,
    }
}

/// A decimal in canonical form. A float stands for the decimal it is written as.
pub(crate) fn decimal(cell: Cell<'_>) -> Option<Text> {
    match cell {
        Cell::Text(text) => decimal_from_text(text.strip_prefix('+').unwrap_or(&text)),
        Cell::Integer(integer) => Some(integer.to_string().into()),
        // A float is written without exponent and without needless zeros, but for the sign of 0.
        Cell::Real(0.0) => Some("0".into()),
        Cell::Real(real) => real.is_finite().then(|| real.to_string().into()),
        _ => None,
    }
}

fn number(cell: &Cell<'_>) -> Option<f64> {
    let number = match cell {
        Cell::Real(real) => *real,
        #[expect(clippy::cast_precision_loss, reason = "a number is the nearest float")]
        Cell::Integer(integer) => *integer as f64,
        Cell::Text(text) => text.parse().ok()?,
        _ => return None,
    };
    // Not every store keeps the sign of zero.
    number
        .is_finite()
        .then_some(if number == 0.0 { 0.0 } else { number })
}

fn boolean(cell: &Cell<'_>) -> Option<bool> {
    match cell {
        Cell::Boolean(boolean) => Some(*boolean),
        Cell::Integer(integer) => Some(*integer != 0),
        Cell::Real(real) => Some(*real != 0.0),
        Cell::Text(text) => match text.as_ref() {
            "true" | "t" | "TRUE" | "True" | "T" => Some(true),
            "false" | "f" | "FALSE" | "False" | "F" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Decodes microseconds since 1970: from a text in the forms that stores and programs write, in UTC
/// if it names no zone; from a number, as seconds since 1970.
pub(crate) fn datetime(cell: &Cell<'_>) -> Option<i64> {
    match cell {
        Cell::Datetime(micros) => Some(*micros),
        Cell::Integer(seconds) => {
            let seconds = i64::try_from(*seconds).ok()?;
            let within = (FIRST_SECOND..=LAST_SECOND).contains(&seconds);
            within.then(|| seconds * MICROS_PER_SECOND)
        }
        Cell::Real(seconds) => {
            #[expect(clippy::cast_precision_loss, reason = "both are exact as floats")]
            let within = (FIRST_SECOND as f64..=LAST_SECOND as f64).contains(seconds);
            #[expect(clippy::cast_possible_truncation, reason = "it is within reach")]
            within.then_some((seconds * 1e6).round() as i64)
        }
        // Most texts parse as they are.
        Cell::Text(text) => {
            datetime_from_text(text).or_else(|| datetime_from_text(&as_rfc3339(text)?))
        }
        _ => None,
    }
}

/// Completes `2024-05-06 07:08`, `2024-05-06T07:08:09.123456789`, `2024-05-06 07:08:09+02` and the
/// like to RFC 3339; cuts digits below a microsecond.
fn as_rfc3339(text: &str) -> Option<String> {
    let text = text.trim_end();
    if text.len() <= 10 {
        return Some(text.to_owned());
    }
    let (day, rest) = text.split_at_checked(10)?;
    let clock = rest.strip_prefix(['T', 't', ' '])?;
    let end = clock.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.'));
    let (clock, zone) = clock.split_at(end.unwrap_or(clock.len()));
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let clock = if clock.len() == 5 {
        format!("{clock}:00")
    } else {
        clock.to_owned()
    };
    let fraction = fraction.get(..6).unwrap_or(fraction);
    let zone = zone.trim_start();
    let zone = match (zone.len(), zone.split_at_checked(3)) {
        (0, _) | (_, None) if matches!(zone, "" | "Z" | "z") => "Z".to_owned(),
        _ if zone == "UTC" => "Z".to_owned(),
        (3, _) => format!("{zone}:00"),
        (5, Some((hours, minutes))) => format!("{hours}:{minutes}"),
        _ => zone.to_owned(),
    };
    Some(format!("{day}T{clock}.{fraction}{zone}"))
}

fn list(datatype: Datatype, cell: Cell<'_>) -> Option<Value> {
    let item = |text: Option<String>| match text {
        None => Some(Value::Null),
        Some(text) => scalar(datatype, Cell::Text(text.into())),
    };
    match cell {
        Cell::Texts(items) => items.into_iter().map(item).collect::<Option<_>>(),
        // The raw text of each item, so that no digit of a number is lost.
        Cell::Text(text) => serde_json::from_str::<Vec<&serde_json::value::RawValue>>(&text)
            .ok()?
            .into_iter()
            .map(|raw| json_item(datatype, raw.get()))
            .collect(),
        _ => None,
    }
    .map(Value::List)
}

fn json_item(datatype: Datatype, raw: &str) -> Option<Value> {
    if raw == "null" {
        return Some(Value::Null);
    }
    if datatype == Datatype::Json {
        return serde_json::from_str(raw).ok().map(Value::Json);
    }
    let text = if raw.starts_with('"') {
        Cow::Owned(serde_json::from_str(raw).ok()?)
    } else {
        Cow::Borrowed(raw)
    };
    scalar(datatype, Cell::Text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_however_programs_write_them() {
        let expected = datetime_from_text("2024-05-06T07:08:09Z");
        for text in [
            "2024-05-06 07:08:09",
            "2024-05-06T07:08:09",
            "2024-05-06T07:08:09Z",
            "2024-05-06 07:08:09+00",
            "2024-05-06 09:08:09+02:00",
            "2024-05-06 09:08:09 +0200",
            "2024-05-06 07:08:09.000000000",
            "2024-05-06 07:08:09 UTC",
        ] {
            assert_eq!(datetime(&Cell::Text(text.into())), expected, "{text}");
        }
        for seconds in [i128::from(i64::MAX), i128::from(i64::MIN), i128::MAX] {
            assert_eq!(datetime(&Cell::Integer(seconds)), None, "{seconds}");
        }
        let minutes = datetime_from_text("2024-05-06T07:08:00Z");
        assert_eq!(datetime(&Cell::Text("2024-05-06 07:08".into())), minutes);
        let day = datetime_from_text("2024-05-06T00:00:00Z");
        assert_eq!(datetime(&Cell::Text("2024-05-06".into())), day);
        let cut = datetime_from_text("2024-05-06T07:08:09.123456Z");
        let nanos = Cell::Text("2024-05-06T07:08:09.123456789Z".into());
        assert_eq!(datetime(&nanos), cut);
        assert_eq!(datetime(&Cell::Integer(1_714_979_289)), expected);
        assert_eq!(datetime(&Cell::Real(1_714_979_289.0)), expected);
        let milliseconds = 1_714_979_289_000;
        assert_eq!(datetime(&Cell::Integer(milliseconds)), None);
        assert_eq!(datetime(&Cell::Real(1_714_979_289_000.0)), None);
        assert_eq!(datetime(&Cell::Real(f64::NAN)), None);
        for text in ["", "yesterday", "06/05/2024", "2024-13-01 00:00:00"] {
            assert_eq!(datetime(&Cell::Text(text.into())), None, "{text}");
        }
    }

    #[test]
    fn lists_keep_every_digit() {
        let column = Column {
            origin: wayleave_plan::plan::ColumnOrigin::Stored {
                table: 0,
                name: "c".into(),
            },
            datatype: Datatype::Decimal,
            many: true,
        };
        let cell = Cell::Text("[1.10, \"2.000000000000000000001\", null]".into());
        let expected = Value::List(vec![
            Value::Decimal("1.1".into()),
            Value::Decimal("2.000000000000000000001".into()),
            Value::Null,
        ]);
        assert_eq!(column_value(&column, cell), Some(expected));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let column = Column {
            origin: wayleave_plan::plan::ColumnOrigin::Stored {
                table: 0,
                name: "age".into(),
            },
            datatype: Datatype::Integer,
            many: false,
        };
        let outputs = [Output::Column(&column)];
        let read = |on_malformed| {
            let cells = [Cell::Text("old".into())].into_iter();
            row(&outputs, cells, on_malformed)
        };
        assert_eq!(read(OnMalformed::Mark).unwrap(), [Value::Malformed]);
        let error = read(OnMalformed::Fail).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a value of column `age` is not of datatype `integer`"
        );
    }
}
