//! Parses an argument as a value of its field, and checks every constraint.

use serde_json::Value as Json;
use wayleave_model::constraint::{FieldError, FieldErrorCode, TextPattern, is_iri};
use wayleave_model::mapping::{Datatype, ExactNumber, Scalar};

use crate::value::{Text, Value, date_from_text, datetime_from_text, decimal_from_text};
use crate::view::FieldView;

/// 2^53: from here on one floating-point number stands for several integers.
const MIN_INEXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Parses an argument. Adds an error for every constraint that it breaks.
pub(super) fn read(field: &FieldView, given: &Json, errors: &mut Vec<FieldError>) -> Option<Value> {
    if !field.is_many() {
        return one(field, given, errors);
    }
    let Json::Array(items) = given else {
        errors.push(not_of_datatype(field, given));
        return None;
    };
    let before = errors.len();
    let values: Vec<Value> = items
        .iter()
        .filter_map(|it| one(field, it, errors))
        .collect();
    (errors.len() == before).then_some(Value::List(values))
}

fn one(field: &FieldView, given: &Json, errors: &mut Vec<FieldError>) -> Option<Value> {
    let Some(value) = typed(field.datatype(), given) else {
        errors.push(not_of_datatype(field, given));
        return None;
    };
    let before = errors.len();
    broken(field, &value, given, errors);
    (errors.len() == before).then_some(value)
}

/// Checks a stored value as if it had been given.
pub(super) fn check_stored(field: &FieldView, value: &Value, errors: &mut Vec<FieldError>) {
    match value {
        Value::Null if field.is_required() => errors.push(missing(field)),
        Value::Null => {}
        Value::Malformed => errors.push(not_of_datatype(field, &Json::Null)),
        Value::List(items) => {
            for item in items {
                broken(field, item, &item.to_json(), errors);
            }
        }
        value => broken(field, value, &value.to_json(), errors),
    }
}

/// Parses an argument as a value of a datatype, as strictly as the datatype's schema.
pub(super) fn typed(datatype: Datatype, given: &Json) -> Option<Value> {
    match (datatype, given) {
        (Datatype::String, Json::String(text)) => storable(text).map(Value::Text),
        (Datatype::Iri, Json::String(text)) if is_iri(text) => storable(text).map(Value::Text),
        (Datatype::Integer, Json::Number(number)) => integer(number).map(Value::Integer),
        (Datatype::Decimal, Json::String(text)) => decimal_from_text(text).map(Value::Decimal),
        (Datatype::Number, Json::Number(number)) => {
            let number = number.as_f64().filter(|it| it.is_finite())?;
            // Not every store keeps the sign of zero.
            Some(Value::Number(if number == 0.0 { 0.0 } else { number }))
        }
        (Datatype::Boolean, Json::Bool(flag)) => Some(Value::Boolean(*flag)),
        (Datatype::Date, Json::String(text)) => date_from_text(text).map(Value::Date),
        // To clients, a date alone, and a space before the time, are not date-times.
        (Datatype::Datetime, Json::String(text))
            if matches!(text.as_bytes().get(10), Some(b'T' | b't')) =>
        {
            datetime_from_text(text).map(Value::Datetime)
        }
        (Datatype::Json, given) => Some(Value::Json(Box::new(given.clone()))),
        _ => None,
    }
}

/// Accepts text that every store can hold: some cannot hold NUL.
fn storable(text: &str) -> Option<Text> {
    (!text.contains('\0')).then(|| text.into())
}

/// A 64-bit integer, in any notation.
fn integer(number: &serde_json::Number) -> Option<i128> {
    if let Some(integer) = number.as_i64() {
        return Some(integer.into());
    }
    let real = number.as_f64()?;
    let is_whole = real.fract() == 0.0 && real.abs() < MIN_INEXACT_INTEGER;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
    is_whole.then_some(real as i128)
}

/// Adds an error for each constraint that a value breaks.
fn broken(field: &FieldView, value: &Value, given: &Json, errors: &mut Vec<FieldError>) {
    let name = field.name();
    let mut push = |code: FieldErrorCode, must: String, constraint: Json| {
        let error = FieldError::new(name, code, format!("`{name}` must {must}"));
        errors.push(error.value(given.clone()).constraint(constraint));
    };
    if let Value::Text(text) = value {
        let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let [least, greatest] = field.lengths();
        if let Some(least) = least.filter(|it| length < *it) {
            let must = format!("have at least {least} characters");
            push(FieldErrorCode::MinLength, must, least.into());
        }
        if let Some(greatest) = greatest.filter(|it| length > *it) {
            let must = format!("have at most {greatest} characters");
            push(FieldErrorCode::MaxLength, must, greatest.into());
        }
        if let Some(pattern) = field.pattern()
            && !TextPattern::new(pattern).is_some_and(|it| it.is_match(text))
        {
            push(
                FieldErrorCode::Pattern,
                format!("match {pattern}"),
                pattern.into(),
            );
        }
    }
    let [least, greatest] = field.bounds();
    if let Some(least) = least.filter(|it| is_below(value, it)) {
        push(
            FieldErrorCode::MinValue,
            format!("be at least {least}"),
            number(least),
        );
    }
    if let Some(greatest) = greatest.filter(|it| is_above(value, it)) {
        push(
            FieldErrorCode::MaxValue,
            format!("be at most {greatest}"),
            number(greatest),
        );
    }
    let listed = field.one_of();
    if !listed.is_empty() && !listed.iter().any(|it| is_listed(&it.value, value)) {
        let allowed: Vec<Json> = listed
            .iter()
            .map(|it| scalar(&it.value, field.datatype()))
            .collect();
        let shown: Vec<String> = listed.iter().map(|it| format!("`{}`", it.value)).collect();
        let must = format!("be one of {}", shown.join(", "));
        push(FieldErrorCode::OneOf, must, Json::Array(allowed));
    }
}

fn exact(value: &Value) -> Option<ExactNumber> {
    match value {
        Value::Integer(integer) => integer.to_string().parse().ok(),
        Value::Decimal(decimal) => decimal.parse().ok(),
        _ => None,
    }
}

fn is_below(value: &Value, bound: &ExactNumber) -> bool {
    match value {
        // Compare as clients do: as floating-point numbers.
        Value::Number(number) => *number < bound.to_f64(),
        value => exact(value).is_some_and(|it| it < *bound),
    }
}

fn is_above(value: &Value, bound: &ExactNumber) -> bool {
    match value {
        Value::Number(number) => *number > bound.to_f64(),
        value => exact(value).is_some_and(|it| it > *bound),
    }
}

fn is_listed(listed: &Scalar, value: &Value) -> bool {
    match (listed, value) {
        (Scalar::Text(listed), Value::Text(text)) => listed == text.as_str(),
        (Scalar::Number(listed), value) => exact(value).is_some_and(|it| it == *listed),
        _ => false,
    }
}

/// A listed value as JSON. Decimals become texts.
pub(super) fn scalar(listed: &Scalar, datatype: Datatype) -> Json {
    match listed {
        Scalar::Text(text) => text.as_str().into(),
        Scalar::Number(exact) if datatype == Datatype::Decimal => exact.to_string().into(),
        Scalar::Number(exact) => number(exact),
    }
}

/// A bound as JSON.
pub(super) fn number(exact: &ExactNumber) -> Json {
    match exact.to_i64() {
        Some(whole) => whole.into(),
        None => exact.to_f64().into(),
    }
}

/// The name of a datatype, for callers.
pub(super) fn noun(datatype: Datatype) -> &'static str {
    match datatype {
        Datatype::String => "a text without NUL",
        Datatype::Iri => "an absolute IRI",
        Datatype::Integer => "a whole number of 64 bits",
        Datatype::Decimal => "a decimal written as a string, such as \"12.50\"",
        Datatype::Number => "a number",
        Datatype::Boolean => "true or false",
        Datatype::Date => "a date, such as \"2026-01-31\"",
        Datatype::Datetime => "a time with its zone, such as \"2026-01-31T09:30:00Z\"",
        Datatype::Json => "JSON",
    }
}

pub(super) fn not_of_datatype(field: &FieldView, given: &Json) -> FieldError {
    let (name, datatype) = (field.name(), field.datatype());
    let what = noun(datatype);
    let must = if field.is_many() {
        format!("`{name}` must be a list, each {what}")
    } else {
        format!("`{name}` must be {what}")
    };
    FieldError::new(name, FieldErrorCode::Datatype, must)
        .value(given.clone())
        .constraint(datatype.as_str())
}

pub(super) fn missing(field: &FieldView) -> FieldError {
    let name = field.name();
    FieldError::new(
        name,
        FieldErrorCode::Required,
        format!("`{name}` must be given"),
    )
    .constraint(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_with_a_point_is_taken_where_it_stands_for_no_other() {
        let read = |text: &str| typed(Datatype::Integer, &serde_json::from_str(text).unwrap());
        let last = 9_007_199_254_740_991;
        assert_eq!(read("9007199254740991.0"), Some(Value::Integer(last)));
        assert_eq!(read("-9007199254740991.0"), Some(Value::Integer(-last)));
        for text in ["9007199254740992.0", "-9007199254740992.0", "1e300", "1.5"] {
            assert_eq!(read(text), None, "{text}");
        }
        // Without a point every digit counts.
        assert_eq!(read("9007199254740993"), Some(Value::Integer(last + 2)));
    }
}
