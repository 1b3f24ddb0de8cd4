//! Converts the server's values to cells, and bound values to the driver's.

use jiff::ToSpan as _;
use mysql_async::Value;
use wayleave_model::mapping::Datatype;

use crate::compile::{Bind, Output};
use crate::values::{Cell, from_single};

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Converts a driver's value for one column of the answer.
pub(super) fn cell(value: Value, output: Option<&Output<'_>>) -> Cell<'static> {
    match value {
        Value::NULL => Cell::Null,
        Value::Int(integer) => Cell::Integer(integer.into()),
        Value::UInt(integer) => Cell::Integer(integer.into()),
        Value::Float(real) => Cell::Real(from_single(real)),
        Value::Double(real) => Cell::Real(real),
        Value::Bytes(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Cell::Text(text.into()),
            Err(bytes) => Cell::Bytes(bytes.into_bytes().into()),
        },
        Value::Date(year, month, day, hour, minute, second, micros) => {
            let clock = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
            let Some(days) = days(year, month, day) else {
                // The zero date, without a month or a year, is not a date.
                return Cell::Malformed;
            };
            if is_date(output) {
                Cell::Date(days)
            } else {
                let clock = clock * 1_000_000 + i64::from(micros);
                Cell::Datetime(i64::from(days) * MICROS_PER_DAY + clock)
            }
        }
        Value::Time(negative, days, hours, minutes, seconds, micros) => {
            let sign = if negative { "-" } else { "" };
            let hours = days * 24 + u32::from(hours);
            let clock = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}");
            Cell::Text(match micros {
                0 => clock.into(),
                micros => format!("{clock}.{micros:06}").into(),
            })
        }
    }
}

fn is_date(output: Option<&Output<'_>>) -> bool {
    match output {
        Some(Output::Column(column) | Output::Key(column)) => column.datatype == Datatype::Date,
        Some(Output::FirstDay) => true,
        _ => false,
    }
}

fn days(year: u16, month: u8, day: u8) -> Option<i32> {
    let date = jiff::civil::Date::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
    )
    .ok()?;
    let since = date.duration_since(jiff::civil::date(1970, 1, 1));
    i32::try_from(since.as_hours() / 24).ok()
}

/// Converts a bound value for the driver. A time that no column can hold becomes the nearest one
/// that fits.
pub(super) fn bound(bind: &Bind) -> Value {
    match bind {
        Bind::Text(text) | Bind::Literal(text) => Value::Bytes(text.clone().into_bytes()),
        Bind::Bytes(bytes) => Value::Bytes(bytes.clone()),
        Bind::Integer(integer) => Value::Int(*integer),
        Bind::Unsigned(integer) => Value::UInt(*integer),
        Bind::Real(real) => Value::Double(*real),
        Bind::Boolean(boolean) => Value::Int(i64::from(*boolean)),
        Bind::Date(days) => time(i64::from(*days) * MICROS_PER_DAY),
        Bind::Datetime(micros) => time(*micros),
    }
}

#[expect(clippy::expect_used, reason = "a default would match other rows")]
fn time(micros: i64) -> Value {
    let days = micros.div_euclid(MICROS_PER_DAY);
    let clock = micros.rem_euclid(MICROS_PER_DAY);
    let date = i32::try_from(days)
        .ok()
        .and_then(|days| jiff::civil::date(1970, 1, 1).checked_add(days.days()).ok())
        .filter(|date| date.year() >= 0)
        .unwrap_or(if micros < 0 {
            jiff::civil::date(0, 1, 1)
        } else {
            jiff::civil::Date::MAX
        });
    let small = |number: i64| u8::try_from(number).expect("a part of a day or a year is small");
    let seconds = clock / 1_000_000;
    Value::Date(
        u16::try_from(date.year()).expect("the year is not negative"),
        small(date.month().into()),
        small(date.day().into()),
        small(seconds / 3_600),
        small(seconds / 60 % 60),
        small(seconds % 60),
        u32::try_from(clock % 1_000_000).expect("the clock is not negative"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_day_of_all_is_bound_as_itself() {
        let last = Bind::Date(2_932_896);
        assert_eq!(bound(&last), Value::Date(9999, 12, 31, 0, 0, 0, 0));
        let instant = Bind::Datetime(-1);
        let expected = Value::Date(1969, 12, 31, 23, 59, 59, 999_999);
        assert_eq!(bound(&instant), expected);
    }
}
