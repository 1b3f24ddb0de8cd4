//! Sums and means of values.

use super::{Exact, Value};

/// Significant digits kept in a sum or mean of floating-point numbers.
const SIGNIFICANT_DIGITS: usize = 12;

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
        .fold(Value::Null, |total, value| match (&total, value) {
            (Value::Null, value) => value.clone(),
            (Value::Number(a), Value::Number(b)) => Value::Number(a + b),
            (Value::Integer(a), Value::Integer(b)) => match a.checked_add(*b) {
                Some(sum) => Value::Integer(sum),
                None => decimal(&Exact::new(*a, 0).add(&Exact::new(*b, 0))),
            },
            (a, b) => match (Exact::from_value(a), Exact::from_value(b)) {
                (Some(a), Some(b)) => decimal(&a.add(&b)),
                _ => total,
            },
        })
}

fn decimal(exact: &Exact) -> Value {
    Value::Decimal(exact.to_string().into())
}

/// The mean, given the exact sum and the number of values; NULL when there are no values.
///
/// For integers and decimals, rounded half away from zero to 6 digits after the point. For numbers,
/// [`rounded`].
pub fn average(sum: &Value, count: u64) -> Value {
    match sum {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a mean of floating-point numbers is one itself"
        )]
        Value::Number(sum) if count > 0 => Value::Number(rounded(sum / count as f64)),
        sum => Exact::from_value(sum)
            .and_then(|sum| sum.divide(&Exact::new(i128::from(count), 0)))
            .map_or(Value::Null, |mean| decimal(&mean)),
    }
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
