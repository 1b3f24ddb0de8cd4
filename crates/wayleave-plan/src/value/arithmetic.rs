//! Exact sums and means of values.
//!
//! Decimals are texts of any length, so arithmetic on them is schoolbook: digit by digit.

use std::cmp::Ordering;

use super::Value;

/// Digits kept after the point of a mean.
const MEAN_DIGITS: usize = 6;
/// Significant digits kept in a sum or mean of floating-point numbers.
const SIGNIFICANT_DIGITS: usize = 12;

/// A decimal as its sign, its digits (most significant first) and the number of digits after the
/// point.
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    scale: usize,
}

impl Decimal {
    fn read(text: &str) -> Self {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = whole
            .bytes()
            .chain(fraction.bytes())
            .filter(u8::is_ascii_digit)
            .map(|byte| byte - b'0')
            .collect();
        Self {
            negative,
            digits,
            scale: fraction.len(),
        }
    }

    /// Pads the number to at least `scale` digits after the point and `length` digits in all.
    fn widen(&mut self, scale: usize, length: usize) {
        while self.scale < scale {
            self.digits.push(0);
            self.scale += 1;
        }
        let missing = length.saturating_sub(self.digits.len());
        self.digits.splice(0..0, std::iter::repeat_n(0, missing));
    }

    fn write(&self) -> String {
        let point = self.digits.len().saturating_sub(self.scale);
        let text = |digits: &[u8]| -> String {
            digits
                .iter()
                .map(|digit| char::from(b'0' + digit))
                .collect()
        };
        let (whole, fraction) = self.digits.split_at(point);
        let whole = text(whole);
        let whole = whole.trim_start_matches('0');
        // A value below one may have fewer digits than its scale.
        let padding = "0".repeat(self.scale.saturating_sub(fraction.len()));
        let fraction = format!("{padding}{}", text(fraction));
        let fraction = fraction.trim_end_matches('0');
        let sign = if self.negative && !(whole.is_empty() && fraction.is_empty()) {
            "-"
        } else {
            ""
        };
        let whole = if whole.is_empty() { "0" } else { whole };
        if fraction.is_empty() {
            format!("{sign}{whole}")
        } else {
            format!("{sign}{whole}.{fraction}")
        }
    }
}

/// The exact sum of two decimals; operands and result are in canonical form.
fn add(a: &str, b: &str) -> String {
    let (mut a, mut b) = (Decimal::read(a), Decimal::read(b));
    let scale = a.scale.max(b.scale);
    a.widen(scale, 0);
    b.widen(scale, 0);
    let length = a.digits.len().max(b.digits.len()) + 1;
    a.widen(scale, length);
    b.widen(scale, length);
    if a.negative != b.negative && a.digits.cmp(&b.digits) == Ordering::Less {
        std::mem::swap(&mut a, &mut b);
    }
    let sign: i8 = if a.negative == b.negative { 1 } else { -1 };
    let mut carry = 0_i8;
    for (left, right) in a.digits.iter_mut().zip(&b.digits).rev() {
        let total = left.cast_signed() + sign * right.cast_signed() + carry;
        carry = total.div_euclid(10);
        *left = total.rem_euclid(10).cast_unsigned();
    }
    a.write()
}

/// An exact running sum of integers and decimals: in a machine integer while it fits, digit by
/// digit once it does not.
#[derive(Debug, Clone, Default)]
pub struct ExactSum {
    /// The sum in units of the last digit after the point.
    units: i128,
    /// Number of digits after the point.
    scale: u32,
    /// The part that did not fit, in canonical form.
    wide: Option<String>,
    any: bool,
}

impl ExactSum {
    /// Adds an integer.
    pub fn add_integer(&mut self, integer: i128) {
        self.any = true;
        if self.add_units(integer, 0).is_none() {
            self.widen(&integer.to_string());
        }
    }

    /// Adds a decimal in canonical form.
    pub fn add_decimal(&mut self, decimal: &str) {
        self.any = true;
        let added = units(decimal).and_then(|(units, scale)| self.add_units(units, scale));
        if added.is_none() {
            self.widen(decimal);
        }
    }

    /// The sum in canonical form; `None` when nothing was added.
    pub fn text(&self) -> Option<String> {
        let fitting = || {
            let digits = self.units.unsigned_abs().to_string();
            let mut decimal = Decimal::read(&digits);
            decimal.negative = self.units < 0;
            let scale = self.scale as usize;
            decimal.widen(0, scale);
            decimal.scale = scale;
            decimal.write()
        };
        self.any.then(|| match &self.wide {
            Some(wide) => add(wide, &fitting()),
            None => fitting(),
        })
    }

    fn add_units(&mut self, units: i128, scale: u32) -> Option<()> {
        let common = scale.max(self.scale);
        let own = self
            .units
            .checked_mul(10_i128.checked_pow(common - self.scale)?)?;
        let other = units.checked_mul(10_i128.checked_pow(common - scale)?)?;
        self.units = own.checked_add(other)?;
        self.scale = common;
        Some(())
    }

    fn widen(&mut self, decimal: &str) {
        let wide = self.wide.as_deref().unwrap_or("0");
        self.wide = Some(add(wide, decimal));
    }
}

/// Parses a decimal into units of its last digit and the number of digits after the point, if it
/// fits.
fn units(decimal: &str) -> Option<(i128, u32)> {
    let (negative, unsigned) = match decimal.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, decimal),
    };
    let (mut units, mut scale, mut after_point) = (0_i128, 0, false);
    for byte in unsigned.bytes() {
        if byte == b'.' {
            after_point = true;
            continue;
        }
        units = units
            .checked_mul(10)?
            .checked_add(i128::from(byte.checked_sub(b'0')?))?;
        scale += u32::from(after_point);
    }
    Some((if negative { -units } else { units }, scale))
}

/// The sum of values of one numeric datatype. NULLs are skipped; NULL when there are no values.
///
/// Integers and decimals are exact. Numbers are added in the given order and [`rounded`].
pub fn sum<'a>(values: impl IntoIterator<Item = &'a Value>) -> Value {
    match total(values) {
        Value::Number(number) => Value::Number(rounded(number)),
        other => other,
    }
}

/// The mean of values of one numeric datatype, none of them NULL; NULL when there are no values.
pub fn mean(values: &[Value]) -> Value {
    // Round only the mean, not the sum as well.
    average(&total(values), values.len() as u64)
}

fn total<'a>(values: impl IntoIterator<Item = &'a Value>) -> Value {
    values
        .into_iter()
        .fold(Value::Null, |total, value| match (total, value) {
            (Value::Null, value) => value.clone(),
            (Value::Integer(a), Value::Integer(b)) => a.checked_add(*b).map_or_else(
                || Value::Decimal(add(&a.to_string(), &b.to_string()).into()),
                Value::Integer,
            ),
            (Value::Decimal(a), Value::Decimal(b)) => Value::Decimal(add(&a, b).into()),
            (Value::Decimal(a), Value::Integer(b)) => {
                Value::Decimal(add(&a, &b.to_string()).into())
            }
            (Value::Integer(a), Value::Decimal(b)) => Value::Decimal(add(&a.to_string(), b).into()),
            (Value::Number(a), Value::Number(b)) => Value::Number(a + b),
            (total, _) => total,
        })
}

/// The mean, given the exact sum and the number of values; NULL when there are no values.
///
/// For integers and decimals, rounded half away from zero to 6 digits after the point. For numbers,
/// [`rounded`].
pub fn average(sum: &Value, count: u64) -> Value {
    if count == 0 {
        return Value::Null;
    }
    match sum {
        Value::Integer(sum) => Value::Decimal(divide(&sum.to_string(), count).into()),
        Value::Decimal(sum) => Value::Decimal(divide(sum, count).into()),
        #[allow(
            clippy::cast_precision_loss,
            reason = "a mean of floating-point numbers is one itself"
        )]
        Value::Number(sum) => Value::Number(rounded(sum / count as f64)),
        _ => Value::Null,
    }
}

#[expect(
    clippy::expect_used,
    reason = "a default digit would give a wrong mean"
)]
fn divide(sum: &str, count: u64) -> String {
    let mut sum = Decimal::read(sum);
    sum.widen(MEAN_DIGITS, 0);
    let kept = sum.digits.len() - (sum.scale - MEAN_DIGITS);
    let count = u128::from(count);
    let mut rest = 0_u128;
    let mut quotient = Vec::with_capacity(kept + 1);
    quotient.push(0);
    for digit in sum.digits.iter().take(kept) {
        rest = rest * 10 + u128::from(*digit);
        let digit = u8::try_from(rest / count);
        quotient.push(digit.expect("what is left is less than ten times the count"));
        rest %= count;
    }
    // The remainder of a unit is (`rest` + the digits not kept) / `count`. Those digits are less
    // than one, so they decide only when twice `rest` is one short of `count`.
    let half_follows = sum.digits.get(kept).is_some_and(|digit| *digit >= 5);
    if rest * 2 >= count || (rest * 2 + 1 == count && half_follows) {
        for digit in quotient.iter_mut().rev() {
            *digit = (*digit + 1) % 10;
            if *digit != 0 {
                break;
            }
        }
    }
    Decimal {
        negative: sum.negative,
        digits: quotient,
        scale: MEAN_DIGITS,
    }
    .write()
}

/// Rounds a floating-point number to 12 significant digits; `-0` becomes `0`.
#[expect(
    clippy::expect_used,
    reason = "an unrounded number would differ between stores"
)]
pub fn rounded(number: f64) -> f64 {
    if number == 0.0 {
        return 0.0;
    }
    let rounded = format!("{number:.*e}", SIGNIFICANT_DIGITS - 1).parse();
    rounded.expect("a formatted float parses")
}
