//! Expiry times, as people write them.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use wayleave_ledger::{Clock as _, Millis, State, SystemClock};

/// A time, or a duration from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Expiry {
    At(Millis),
    After(Millis),
}

impl Expiry {
    /// The time it means as of `now`.
    pub(in crate::commands) fn moment(self, now: Millis) -> Millis {
        match self {
            Self::At(at) => at,
            Self::After(while_) => now.saturating_add(while_),
        }
    }
}

/// Parses `90m`, `12h`, `30d`, `6w`, a date, or a time in RFC 3339; refuses one that has passed.
pub(in crate::commands) fn parse(text: &str) -> Result<Expiry, String> {
    let expiry = read(text)
        .ok_or("write it as `90m`, `12h`, `30d`, `6w`, `2026-12-31` or `2026-12-31T18:00:00Z`")?;
    let now = SystemClock.now();
    if expiry.moment(now) <= now {
        return Err("it has passed already".to_owned());
    }
    Ok(expiry)
}

fn read(text: &str) -> Option<Expiry> {
    if let Some((at, unit)) = text.char_indices().last()
        && let Some(hours_or_less) = minutes(unit)
        && let Ok(many) = text.get(..at)?.parse::<u32>()
    {
        let minutes = i64::from(many).checked_mul(hours_or_less)?;
        let while_ = SignedDuration::from_mins(minutes).as_millis();
        return Millis::try_from(while_).ok().map(Expiry::After);
    }
    let at = text.parse::<Timestamp>().ok().or_else(|| {
        let midnight = text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?;
        Some(midnight.timestamp())
    })?;
    Some(Expiry::At(at.as_millisecond()))
}

const fn minutes(unit: char) -> Option<i64> {
    match unit {
        'm' => Some(1),
        'h' => Some(60),
        'd' => Some(60 * 24),
        'w' => Some(60 * 24 * 7),
        _ => None,
    }
}

/// The current time, as the ledger judges it.
pub(in crate::commands) fn now(state: &State) -> Millis {
    state.now(SystemClock.now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_dates_and_times_are_understood() {
        let day = 24 * 3_600_000;
        assert_eq!(read("30d"), Some(Expiry::After(30 * day)));
        assert_eq!(read("90m"), Some(Expiry::After(90 * 60_000)));
        assert_eq!(read("1w"), Some(Expiry::After(7 * day)));
        assert_eq!(read("1970-01-02"), Some(Expiry::At(day)));
        assert_eq!(read("1970-01-01T01:00:00+01:00"), Some(Expiry::At(0)));
        for wrong in ["", "d", "30", "30 d", "-1d", "1.5h", "1y", "soon", "é"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_has_passed_is_refused() {
        assert!(parse("1970-01-02").is_err() && parse("0d").is_err());
        assert!(parse("1h").is_ok());
    }
}
