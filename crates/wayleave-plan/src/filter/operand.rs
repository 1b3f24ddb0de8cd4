//! A JSON operand as a value of a field's datatype.
//!
//! Strict, because a model that compares a number with a text, or a date with a year, has
//! misunderstood the field, and an empty page would not tell it so.

use serde_json::{Number, Value as Json};
use wayleave_model::mapping::{Datatype, ExactNumber};

use super::{Compared, MAX_TEXT};
use crate::refusal::{Code, Refusal};
use crate::value::Value;

/// Digits that survive the way through a floating-point number unharmed.
const SAFE_DIGITS: usize = 15;

/// The operand, checked against the field's list of values where it is to be `listed`.
pub(super) fn operand(
    compared: &Compared,
    json: &Json,
    path: &str,
    listed: bool,
) -> Result<Value, Refusal> {
    let refuse = |message: String| Refusal::new(Code::InvalidFilter, message).param(path);
    if json.is_null() {
        let message = format!(
            "nothing equals null; write {{\"{}\": {{\"is_null\": true}}}}",
            compared.name
        );
        return Err(refuse(message));
    }
    if json.as_str().is_some_and(|text| text.len() > MAX_TEXT) {
        let message = format!("a text to compare with has at most {MAX_TEXT} bytes");
        return Err(refuse(message));
    }
    let datatype = compared.datatype();
    let value = typed(datatype, json).ok_or_else(|| {
        refuse(format!(
            "`{}` ({datatype}) takes {}",
            compared.name,
            spelling(datatype)
        ))
    })?;
    let one_of = compared.field.as_ref().map_or(&[][..], |it| it.one_of());
    let known = |text: &str| one_of.iter().any(|one| one.to_string() == text);
    if listed
        && !one_of.is_empty()
        && let Some(text) = value.to_text()
        && !known(&text)
    {
        let message = format!("`{}` never has that value", compared.name);
        return Err(refuse(message)
            .allowed(one_of.iter().map(ToString::to_string))
            .near(&text));
    }
    Ok(value)
}

fn typed(datatype: Datatype, json: &Json) -> Option<Value> {
    match (datatype, json) {
        // PostgreSQL has no NUL in its texts, so no store may be asked for one.
        (Datatype::String | Datatype::Iri, Json::String(text)) if text.contains('\0') => None,
        (Datatype::Number, Json::Number(number)) => {
            number.as_f64().filter(|n| n.is_finite()).map(Value::Number)
        }
        (Datatype::Boolean, Json::Bool(boolean)) => Some(Value::Boolean(*boolean)),
        (Datatype::Integer, Json::Number(number)) => whole(number).map(Value::Integer),
        (Datatype::Decimal, Json::Number(number)) => {
            decimal(number).map(|it| Value::Decimal(it.into()))
        }
        (Datatype::Number | Datatype::Boolean | Datatype::Json, _) => None,
        (datatype, Json::String(text)) => Value::from_text(datatype, text).ok(),
        _ => None,
    }
}

/// A whole number, also as the `10.0` of clients that have no others, where it is certain which.
fn whole(number: &Number) -> Option<i128> {
    let exact = || -> Option<i128> {
        let exact = ExactNumber::from_f64(number.as_f64()?)?;
        exact.to_string().parse().ok()
    };
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
        .or_else(|| exact().filter(|it| it.unsigned_abs() < 1 << 53))
}

/// A JSON number as the decimal that was written, where it is certain which one that was.
fn decimal(number: &Number) -> Option<String> {
    if let Some(whole) = whole(number) {
        return Some(whole.to_string());
    }
    let exact = ExactNumber::from_f64(number.as_f64()?)?.to_string();
    let significant = exact
        .trim_start_matches(['-', '0', '.'])
        .bytes()
        .filter(u8::is_ascii_digit)
        .count();
    (significant <= SAFE_DIGITS).then_some(exact)
}

/// How a value of the datatype is written.
const fn spelling(datatype: Datatype) -> &'static str {
    match datatype {
        Datatype::String | Datatype::Iri => "a text, without U+0000",
        Datatype::Integer => "a whole number, or one in quotes beyond 2^53",
        Datatype::Decimal => "a decimal in quotes, such as \"12.50\"",
        Datatype::Number => "a number",
        Datatype::Boolean => "true or false",
        Datatype::Date => "a date, such as \"2026-01-31\"",
        Datatype::Datetime => {
            "an RFC 3339 time, such as \"2026-01-31T09:30:00Z\"; `gt`, `gte` and `lt` also a date, for its midnight UTC"
        }
        Datatype::Json => "no comparison",
    }
}
