//! Exact arithmetic on integers and decimals of any length.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use num_bigint::{BigInt, Sign};
use wayleave_model::expression::QUOTIENT_DIGITS;

use super::Value;

/// A decimal number, as a number of units of its last digit after the point.
///
/// The units are an `i128` as long as they fit, which is nearly always.
#[derive(Debug, Clone)]
pub struct Exact {
    units: Units,
    /// Number of digits after the point.
    scale: u32,
}

#[derive(Debug, Clone)]
enum Units {
    Small(i128),
    Big(Box<BigInt>),
}

/// The error for a text that is not a plain decimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a plain decimal number")]
pub struct ParseExactError;

impl Exact {
    /// The number `units` / 10^`scale`.
    pub const fn new(units: i128, scale: u32) -> Self {
        Self {
            units: Units::Small(units),
            scale,
        }
    }

    /// The number that an integer or a decimal holds; `None` for other values.
    #[expect(
        clippy::expect_used,
        reason = "leaving the value out would give a wrong sum or mean"
    )]
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(integer) => Some(Self::new(*integer, 0)),
            Value::Decimal(text) => Some(text.parse().expect("a decimal in canonical form")),
            _ => None,
        }
    }

    fn from_big(units: BigInt, scale: u32) -> Self {
        let units = match i128::try_from(&units) {
            Ok(small) => Units::Small(small),
            Err(_) => Units::Big(Box::new(units)),
        };
        Self { units, scale }
    }

    fn big(&self) -> BigInt {
        match &self.units {
            Units::Small(small) => BigInt::from(*small),
            Units::Big(big) => (**big).clone(),
        }
    }

    /// The units of both at a common scale, if they fit.
    fn aligned(&self, other: &Self) -> Option<(i128, i128, u32)> {
        let (Units::Small(left), Units::Small(right)) = (&self.units, &other.units) else {
            return None;
        };
        let scale = self.scale.max(other.scale);
        let widen = |units: i128, by: u32| units.checked_mul(10_i128.checked_pow(by)?);
        Some((
            widen(*left, scale - self.scale)?,
            widen(*right, scale - other.scale)?,
            scale,
        ))
    }

    fn aligned_big(&self, other: &Self) -> (BigInt, BigInt, u32) {
        let scale = self.scale.max(other.scale);
        let widen = |it: &Self| it.big() * ten_to(scale - it.scale);
        (widen(self), widen(other), scale)
    }

    /// The sum.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        let small = self.aligned(other);
        let small = small.and_then(|(a, b, scale)| Some(Self::new(a.checked_add(b)?, scale)));
        small.unwrap_or_else(|| {
            let (a, b, scale) = self.aligned_big(other);
            Self::from_big(a + b, scale)
        })
    }

    /// The difference.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        let small = self.aligned(other);
        let small = small.and_then(|(a, b, scale)| Some(Self::new(a.checked_sub(b)?, scale)));
        small.unwrap_or_else(|| {
            let (a, b, scale) = self.aligned_big(other);
            Self::from_big(a - b, scale)
        })
    }

    /// The product.
    #[must_use]
    pub fn multiply(&self, other: &Self) -> Self {
        let scale = self.scale + other.scale;
        if let (Units::Small(a), Units::Small(b)) = (&self.units, &other.units)
            && let Some(units) = a.checked_mul(*b)
        {
            return Self::new(units, scale);
        }
        Self::from_big(self.big() * other.big(), scale)
    }

    /// The quotient, rounded half away from zero to [`QUOTIENT_DIGITS`]; `None` if the divisor is
    /// zero.
    pub fn divide(&self, other: &Self) -> Option<Self> {
        let digits = u32::from(QUOTIENT_DIGITS);
        let (a, b, _) = self.aligned_big(other);
        if b.sign() == Sign::NoSign {
            return None;
        }
        Some(Self::from_big(
            rounded_quotient(&(a * ten_to(digits)), &b),
            digits,
        ))
    }

    /// Rounds half away from zero to `digits` after the point.
    #[must_use]
    pub fn round(&self, digits: u32) -> Self {
        if self.scale <= digits {
            return self.clone();
        }
        let by = ten_to(self.scale - digits);
        Self::from_big(rounded_quotient(&self.big(), &by), digits)
    }

    /// Whether it has no fraction.
    pub fn is_whole(&self) -> bool {
        self.big() % ten_to(self.scale) == BigInt::ZERO
    }

    /// Compares by value.
    pub fn compare(&self, other: &Self) -> Ordering {
        if let Some((a, b, _)) = self.aligned(other) {
            return a.cmp(&b);
        }
        let (a, b, _) = self.aligned_big(other);
        a.cmp(&b)
    }
}

fn ten_to(power: u32) -> BigInt {
    BigInt::from(10).pow(power)
}

/// `a / b`, rounded half away from zero.
fn rounded_quotient(a: &BigInt, b: &BigInt) -> BigInt {
    let negative = (a.sign() == Sign::Minus) != (b.sign() == Sign::Minus);
    let (a, b) = (a.magnitude(), b.magnitude());
    let rounded = (a * 2_u8 + b) / (b * 2_u8);
    let rounded = BigInt::from(rounded);
    if negative { -rounded } else { rounded }
}

impl FromStr for Exact {
    type Err = ParseExactError;

    fn from_str(text: &str) -> Result<Self, ParseExactError> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) {
            return Err(ParseExactError);
        }
        let scale = u32::try_from(fraction.len()).map_err(|_| ParseExactError)?;
        let negative = unsigned.len() != text.len();
        let mut units = Some(0_i128);
        for byte in whole.bytes().chain(fraction.bytes()) {
            let next = units.and_then(|it| it.checked_mul(10));
            units = next.and_then(|it| it.checked_add(i128::from(byte - b'0')));
        }
        if let Some(units) = units {
            return Ok(Self::new(if negative { -units } else { units }, scale));
        }
        let big: BigInt = format!("{whole}{fraction}")
            .parse()
            .map_err(|_| ParseExactError)?;
        Ok(Self::from_big(if negative { -big } else { big }, scale))
    }
}

/// The canonical form: no exponent, no trailing zeros, no `-0`.
impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, digits) = match &self.units {
            Units::Small(units) => (*units < 0, units.unsigned_abs().to_string()),
            Units::Big(big) => (big.sign() == Sign::Minus, big.magnitude().to_string()),
        };
        let scale = usize::try_from(self.scale).unwrap_or(usize::MAX);
        let digits = format!("{digits:0>width$}", width = scale.saturating_add(1));
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let fraction = fraction.trim_end_matches('0');
        if negative {
            f.write_str("-")?;
        }
        f.write_str(whole)?;
        if fraction.is_empty() {
            Ok(())
        } else {
            write!(f, ".{fraction}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> Exact {
        text.parse().unwrap()
    }

    #[test]
    fn arithmetic_is_exact_at_any_length() {
        let wide = "123456789012345678901234567890.123456789";
        for (left, op, right, result) in [
            ("1.5", '+', "2.25", "3.75"),
            ("1.5", '-', "1.50", "0"),
            ("-0.1", '*', "0.1", "-0.01"),
            ("0.1", '-', "0.3", "-0.2"),
            ("10", '/', "3", "3.333333"),
            ("20", '/', "3", "6.666667"),
            ("-20", '/', "3", "-6.666667"),
            ("1", '/', "2000000", "0.000001"),
            ("-1", '/', "2000000", "-0.000001"),
            ("1", '/', "2000001", "0"),
            ("0", '/', "-5", "0"),
            (
                wide,
                '+',
                "0.000000001",
                "123456789012345678901234567890.12345679",
            ),
            (wide, '*', "10", "1234567890123456789012345678901.23456789"),
            (wide, '/', wide, "1"),
            (
                wide,
                '*',
                wide,
                "15241578753238836750495351562566681945008382873376009.752324188431636152",
            ),
        ] {
            let (a, b) = (exact(left), exact(right));
            let found = match op {
                '+' => a.add(&b),
                '-' => a.subtract(&b),
                '*' => a.multiply(&b),
                _ => a.divide(&b).unwrap(),
            };
            if left == wide && op == '*' && right == wide {
                // Verify by division.
                assert_eq!(
                    found.divide(&b).unwrap().to_string(),
                    "123456789012345678901234567890.123457"
                );
                continue;
            }
            assert_eq!(found.to_string(), result, "{left} {op} {right}");
        }
        assert!(exact("1").divide(&exact("0.00")).is_none());
    }

    #[test]
    fn rounding_is_half_away_from_zero() {
        for (text, digits, result) in [
            ("2.5", 0, "3"),
            ("-2.5", 0, "-3"),
            ("2.4999", 0, "2"),
            ("1.005", 2, "1.01"),
            ("-1.005", 2, "-1.01"),
            ("1.5", 4, "1.5"),
            ("0.04", 1, "0"),
            ("-0.04", 1, "0"),
        ] {
            assert_eq!(exact(text).round(digits).to_string(), result, "{text}");
        }
    }
}
