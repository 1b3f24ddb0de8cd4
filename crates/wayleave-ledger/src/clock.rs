//! The clock of entries, injected so that tests and replays control it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

/// Milliseconds since 1970-01-01 UTC, before it when negative.
pub type Millis = i64;

/// Supplies the timestamps of entries. Their order never depends on it: entries are ordered by
/// `seq`. Expiry is judged by [`State::now`](crate::State::now), which never goes backwards.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Millis;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let now = SystemTime::now();
        match now.duration_since(UNIX_EPOCH) {
            Ok(since) => Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX),
            Err(before) => {
                Millis::try_from(before.duration().as_millis()).map_or(Millis::MIN, |ms| -ms)
            }
        }
    }
}

/// A monotonic clock: repeats its latest time while the inner clock is behind it.
pub struct MonotonicClock {
    clock: Arc<dyn Clock>,
    latest: AtomicI64,
}

impl MonotonicClock {
    /// Wraps `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            latest: AtomicI64::new(Millis::MIN),
        }
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Millis {
        let now = self.clock.now();
        self.latest.fetch_max(now, Ordering::Relaxed).max(now)
    }
}

/// A clock that always returns the same time, for tests and replays.
#[derive(Debug, Clone, Copy)]
pub struct FixedClock(pub Millis);

impl Clock for FixedClock {
    fn now(&self) -> Millis {
        self.0
    }
}

/// Formats a time as RFC 3339. Years outside its range are written as in ISO 8601, with a sign and
/// as many digits as needed.
///
/// ```
/// use wayleave_ledger::rfc3339;
///
/// assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
/// assert_eq!(rfc3339(253_402_300_800_000), "+10000-01-01T00:00:00Z");
/// ```
pub fn rfc3339(at: Millis) -> String {
    if let Ok(time) = jiff::Timestamp::from_millisecond(at) {
        return time.to_string();
    }
    let (seconds, millis) = (at.div_euclid(1000), at.rem_euclid(1000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = match millis {
        0 => String::new(),
        millis => format!(".{millis:03}"),
    };
    let year = match year {
        0..=9999 => format!("{year:04}"),
        year => format!("{year:+}"),
    };
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// The date `days` days after 1970-01-01, in the proleptic Gregorian calendar.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // Eras of 400 years whose years begin in March, so that the leap day comes last.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_written_as_a_time() {
        for (at, written) in [
            (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_407_484_800_000, "+10000-03-01T00:00:00Z"),
            (Millis::MAX, "+292278994-08-17T07:12:55.807Z"),
            (Millis::MIN, "-292275055-05-16T16:47:04.192Z"),
        ] {
            assert_eq!(rfc3339(at), written);
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for days in (-4_000_000..2_932_896).step_by(997) {
            let date = jiff::civil::date(1970, 1, 1).checked_add(jiff::Span::new().days(days));
            let Ok(date) = date else { continue };
            let (year, month, day) = civil_from_days(days);
            let expected = (date.year().into(), date.month().into(), date.day().into());
            assert_eq!((year, month, day), expected);
        }
    }
}
