//! Exact numbers: bounds and listed values keep every digit as written.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A decimal number of any size in canonical form: no exponent, no leading or trailing zeros, no
/// `-0`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExactNumber {
    negative: bool,
    /// Digits before the point; `0` when there are none.
    whole: String,
    /// Digits after the point; empty for a whole number.
    fraction: String,
}

/// A text is not a plain decimal number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a plain decimal number")]
pub struct ParseExactNumberError;

impl ExactNumber {
    /// Whether it has no fraction.
    pub fn is_whole(&self) -> bool {
        self.fraction.is_empty()
    }

    /// The value as a machine integer, if it is one.
    pub fn to_i64(&self) -> Option<i64> {
        if self.is_whole() {
            self.to_string().parse().ok()
        } else {
            None
        }
    }

    /// The value as an integer of 128 bits, if it is one.
    pub fn to_i128(&self) -> Option<i128> {
        if self.is_whole() {
            self.to_string().parse().ok()
        } else {
            None
        }
    }

    /// The nearest floating-point number.
    #[expect(clippy::expect_used, reason = "a decimal is also the text of a float")]
    pub fn to_f64(&self) -> f64 {
        self.to_string().parse().expect("digits and a point")
    }

    /// The exact value a finite float prints as; `None` for infinities and NaN.
    pub fn from_f64(value: f64) -> Option<Self> {
        // `Display` of a float is its shortest round-trip spelling and has no exponent.
        if value.is_finite() {
            value.to_string().parse().ok()
        } else {
            None
        }
    }

    fn magnitude_cmp(&self, other: &Self) -> Ordering {
        self.whole
            .len()
            .cmp(&other.whole.len())
            .then_with(|| self.whole.cmp(&other.whole))
            // Without trailing zeros, comparing fractions as text compares their values.
            .then_with(|| self.fraction.cmp(&other.fraction))
    }
}

impl From<i64> for ExactNumber {
    fn from(value: i64) -> Self {
        let digits = value.unsigned_abs().to_string();
        Self {
            negative: value < 0,
            whole: digits,
            fraction: String::new(),
        }
    }
}

impl FromStr for ExactNumber {
    type Err = ParseExactNumberError;

    fn from_str(text: &str) -> Result<Self, ParseExactNumberError> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = match unsigned.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(ParseExactNumberError),
            None => (unsigned, ""),
        };
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) {
            return Err(ParseExactNumberError);
        }
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        let zero = whole.is_empty() && fraction.is_empty();
        Ok(Self {
            negative: negative && !zero,
            whole: if whole.is_empty() { "0" } else { whole }.to_owned(),
            fraction: fraction.to_owned(),
        })
    }
}

impl fmt::Display for ExactNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        write!(f, "{sign}{}", self.whole)?;
        if self.fraction.is_empty() {
            Ok(())
        } else {
            write!(f, ".{}", self.fraction)
        }
    }
}

impl Ord for ExactNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.magnitude_cmp(other),
            (true, true) => other.magnitude_cmp(self),
        }
    }
}

impl PartialOrd for ExactNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Serialize for ExactNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> ExactNumber {
        text.parse().unwrap()
    }

    #[test]
    fn spellings_of_one_number_are_one_value() {
        for (text, canonical) in [
            ("007", "7"),
            ("-0", "0"),
            ("+1.500", "1.5"),
            ("0.0", "0"),
            ("-00.10", "-0.1"),
        ] {
            assert_eq!(exact(text).to_string(), canonical);
        }
    }

    #[test]
    fn what_is_not_a_plain_decimal_is_refused() {
        for text in [
            "", "-", "1.", ".5", "1e3", "1_000", "0x10", "٣", "1 ", "--1", "inf",
        ] {
            assert_eq!(
                text.parse::<ExactNumber>(),
                Err(ParseExactNumberError),
                "{text:?}"
            );
        }
    }

    #[test]
    fn numbers_compare_by_value_beyond_the_reach_of_floats() {
        let ordered = [
            "-9007199254740993",
            "-9007199254740992",
            "-0.5",
            "-0.25",
            "0",
            "0.05",
            "0.5",
            "9",
            "10",
            "9007199254740992",
            "9007199254740993",
        ];
        for pair in ordered.windows(2) {
            assert!(exact(pair[0]) < exact(pair[1]), "{pair:?}");
        }
    }
}
