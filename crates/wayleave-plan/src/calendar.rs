//! Calendar periods: where the minute, day or quarter of a time begins in a time zone.
//!
//! Every store must answer by this definition; adapters whose store lacks such a function call it.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};

use crate::plan::Granularity;
use crate::value::Value;

/// The calendar of one time zone.
#[derive(Debug, Clone)]
pub struct Calendar {
    zone: TimeZone,
}

/// The error for a name that is not in the IANA time zone database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an IANA time zone")]
pub struct UnknownZone;

impl Calendar {
    /// The calendar of the zone with that IANA name. The database is compiled in, so every machine
    /// has the same one.
    pub fn new(time_zone: &str) -> Result<Self, UnknownZone> {
        TimeZone::get(time_zone)
            .map(|zone| Self { zone })
            .map_err(|_| UnknownZone)
    }

    /// The zone's name as the database spells it.
    pub fn name(&self) -> Option<&str> {
        self.zone.iana_name()
    }

    /// The start of the period that a date or datetime falls in, as defined by
    /// [`GroupKey::Period`](crate::plan::GroupKey::Period); NULL for any other value.
    pub fn period(&self, value: &Value, granularity: Granularity) -> Value {
        match value {
            Value::Date(days) => date_of(*days)
                .and_then(|date| first_day(date, granularity))
                .map_or(Value::Null, Value::Date),
            Value::Datetime(micros) => self.of_instant(*micros, granularity).unwrap_or(Value::Null),
            _ => Value::Null,
        }
    }

    fn of_instant(&self, micros: i64, granularity: Granularity) -> Option<Value> {
        let instant = Timestamp::from_microsecond(micros).ok()?;
        let local = self.zone.to_datetime(instant);
        let second =
            i64::from(local.second()) * 1_000_000 + i64::from(local.subsec_nanosecond()) / 1_000;
        match granularity {
            Granularity::Minute => Some(Value::Datetime(micros - second)),
            Granularity::Hour => {
                let minute = i64::from(local.minute()) * 60_000_000;
                Some(Value::Datetime(micros - minute - second))
            }
            longer => first_day(local.date(), longer).map(Value::Date),
        }
    }
}

pub(crate) fn date_of(days: i32) -> Option<Date> {
    let days = Span::new().try_days(days).ok()?;
    Date::constant(1970, 1, 1).checked_add(days).ok()
}

/// Days since 1970-01-01 of the first day of a date's period.
fn first_day(date: Date, granularity: Granularity) -> Option<i32> {
    let first = match granularity {
        Granularity::Minute | Granularity::Hour => return None,
        Granularity::Day => date,
        Granularity::Week => date
            .checked_sub(i32::from(date.weekday().to_monday_zero_offset()).days())
            .ok()?,
        Granularity::Month => date.first_of_month(),
        Granularity::Quarter => {
            let month = (date.month() - 1) / 3 * 3 + 1;
            Date::new(date.year(), month, 1).ok()?
        }
        Granularity::Year => date.first_of_year(),
    };
    let days = first.duration_since(Date::constant(1970, 1, 1)).as_hours() / 24;
    i32::try_from(days).ok()
}
