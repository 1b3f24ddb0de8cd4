//! Parses values from text, by datatype.

use wayleave_model::mapping::{Datatype, ExactNumber};

use super::{Text, Value};

/// The error for a text that is not a value of the datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a value of datatype `{datatype}`")]
pub struct NotAValue {
    /// The datatype.
    pub datatype: Datatype,
}

/// Maximum number of digits on either side of a decimal's point, which every store supports.
const MAX_DECIMAL_DIGITS: usize = 1_000;

impl Value {
    /// Parses the text form of one value: what [`Value::to_text`] writes, and any other unambiguous
    /// spelling. Never returns NULL.
    pub fn from_text(datatype: Datatype, text: &str) -> Result<Self, NotAValue> {
        let read = match datatype {
            Datatype::String | Datatype::Iri => Some(Self::Text(text.into())),
            Datatype::Integer => integer(text).map(Self::Integer),
            Datatype::Decimal => decimal_from_text(text).map(Self::Decimal),
            Datatype::Number => number(text).map(Self::Number),
            Datatype::Boolean => match text {
                "true" => Some(Self::Boolean(true)),
                "false" => Some(Self::Boolean(false)),
                _ => None,
            },
            Datatype::Date => date_from_text(text).map(Self::Date),
            Datatype::Datetime => datetime_from_text(text).map(Self::Datetime),
            Datatype::Json => serde_json::from_str(text).ok().map(Self::Json),
        };
        read.ok_or(NotAValue { datatype })
    }
}

fn integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn number(text: &str) -> Option<f64> {
    // Rust also parses `inf`, `nan` and `1.`; accept only JSON numbers.
    serde_json::from_str::<f64>(text)
        .ok()
        .filter(|number| number.is_finite())
}

/// Parses a plain decimal into canonical form: no exponent, no needless zeros, no `-0`.
pub fn decimal_from_text(text: &str) -> Option<Text> {
    if text.len() > 2 * MAX_DECIMAL_DIGITS + 2 || text.starts_with('+') {
        return None;
    }
    if let Some(shorter) = without_needless_zeros(text) {
        return Some(shorter.into());
    }
    text.parse::<ExactNumber>()
        .ok()
        .map(|exact| exact.to_string().into())
}

/// The canonical form of a decimal whose only fault is trailing zeros, which is how stores write
/// decimals.
fn without_needless_zeros(text: &str) -> Option<&str> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // A leading zero is needless, or is the whole integer part, in which case the number may be
    // zero and its sign matters. Leave both to the general path.
    if whole.starts_with('0') || !plain(whole) || !plain(fraction) {
        return None;
    }
    Some(match fraction.trim_end_matches('0') {
        "" => text.get(..text.len() - digits.len() + whole.len())?,
        kept => text.get(..text.len() - (fraction.len() - kept.len()))?,
    })
}

/// Parses `YYYY-MM-DD`, years 0001 to 9999, into days since 1970-01-01.
pub fn date_from_text(text: &str) -> Option<i32> {
    let [year, month, day] = shape::<3>(text, &[4, 2, 2], "--")?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year == 0 || day == 0 || day > last {
        return None;
    }
    // Count years from March, so that the leap day ends its year; eras are 400 years.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year;
    // Days from March 1 of the year 0 to 1970-01-01.
    i32::try_from(i64::from(days) - 719_468).ok()
}

/// Parses numbers of fixed widths between fixed separators, and nothing else.
fn shape<const N: usize>(text: &str, widths: &[usize; N], separators: &str) -> Option<[u32; N]> {
    let mut rest = text.as_bytes();
    let mut separators = separators.bytes();
    let mut numbers = [0; N];
    for (index, (number, width)) in numbers.iter_mut().zip(widths).enumerate() {
        if index > 0 {
            let (first, after) = rest.split_first()?;
            (*first == separators.next()?).then_some(())?;
            rest = after;
        }
        let (digits, after) = rest.split_at_checked(*width)?;
        for digit in digits {
            digit.is_ascii_digit().then_some(())?;
            *number = *number * 10 + u32::from(digit - b'0');
        }
        rest = after;
    }
    rest.is_empty().then_some(numbers)
}

/// Parses an RFC 3339 time with an offset, years 0001 to 9999, into microseconds since
/// 1970-01-01T00:00:00Z. A date alone is midnight UTC. More than six digits of a second are refused
/// unless they are zeros: nothing is rounded silently.
pub fn datetime_from_text(text: &str) -> Option<i64> {
    const MICROS_PER_DAY: i64 = 86_400_000_000;
    // 0001-01-01 and the day after 9999-12-31, in days since 1970-01-01.
    const FIRST: i64 = -719_162 * MICROS_PER_DAY;
    const END: i64 = 2_932_897 * MICROS_PER_DAY;
    if text.len() == 10 {
        return date_from_text(text).map(|days| i64::from(days) * MICROS_PER_DAY);
    }
    let (day, rest) = text.split_at_checked(10)?;
    let days = i64::from(date_from_text(day)?);
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, rest) = rest.split_at_checked(8)?;
    let [hour, minute, second] = shape::<3>(clock, &[2, 2, 2], "::")?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?),
        None => ("0", rest),
    };
    let seconds = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
    let local = days * MICROS_PER_DAY + seconds * 1_000_000 + micros(fraction)?;
    let utc = local - offset(zone)? * 1_000_000;
    // The offset may move a time out of the years that every store can hold.
    (FIRST..END).contains(&utc).then_some(utc)
}

fn micros(fraction: &str) -> Option<i64> {
    if fraction.is_empty()
        || fraction
            .get(6..)
            .is_some_and(|rest| rest.bytes().any(|b| b != b'0'))
    {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(6);
    Some(digits.fold(0, |micros, digit| micros * 10 + i64::from(digit - b'0')))
}

/// Seconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let [hours, minutes] = shape::<2>(zone.get(1..)?, &[2, 2], ":")?;
    (hours < 24 && minutes < 60)
        .then_some(sign * (i64::from(hours) * 3_600 + i64::from(minutes) * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_read_as_it_is_written() {
        const FIRST: i32 = -719_162;
        const LAST: i32 = 2_932_896;
        // A stride that reaches every day of every month.
        let days = (FIRST..LAST).step_by(11).chain([-1, 0, LAST]);
        for day in days {
            let text = Value::Date(day).to_text().unwrap();
            assert_eq!(date_from_text(&text), Some(day), "{text}");
        }
        for text in [
            "0000-01-01",
            "2023-02-29",
            "1900-02-29",
            "2024-04-31",
            "2024-13-01",
            "2024-00-01",
            "2024-01-00",
            "2024-1-01",
            "2024-01-011",
            "2024/01/01",
            "+024-01-01",
        ] {
            assert_eq!(date_from_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_decimal_has_one_form_however_it_is_spelled() {
        for (text, canonical) in [
            ("12.50", Some("12.5")),
            ("-12.00", Some("-12")),
            ("100", Some("100")),
            ("-0.0", Some("0")),
            ("007.10", Some("7.1")),
            ("0.10", Some("0.1")),
            ("12.", None),
            (".5", None),
            ("1.2.3", None),
            ("1e3", None),
            ("+1", None),
            ("-", None),
            ("", None),
        ] {
            assert_eq!(decimal_from_text(text).as_deref(), canonical, "{text}");
        }
    }
}
