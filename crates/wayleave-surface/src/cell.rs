//! Writes one cell of a row set in both forms at once: as text for a model, and as JSON for
//! programs.

use serde_json::Value as Json;
use wayleave_plan::value::{JsonForm, Value};

use crate::escape;

/// Appends a value to both outputs.
pub(crate) fn push_value(text: &mut String, json: &mut String, value: &Value) {
    match value {
        Value::Null => json.push_str("null"),
        Value::Text(it) | Value::Decimal(it) => string(text, json, it),
        other => {
            let before = text.len();
            let Some(simple) = other.push_simple(text) else {
                return push_json(text, json, &other.to_json());
            };
            let (_, shown) = text.split_at(before);
            match simple {
                JsonForm::Bare => json.push_str(shown),
                JsonForm::Quoted => quoted(json, shown),
            }
        }
    }
}

/// Appends any JSON value to both outputs.
pub(crate) fn push_json(text: &mut String, json: &mut String, value: &Json) {
    if let Json::String(it) = value {
        return string(text, json, it);
    }
    escape::cell(text, value);
    json.push_str(&value.to_string());
}

fn string(text: &mut String, json: &mut String, value: &str) {
    if !value.is_empty() && escape::is_plain_everywhere(value) {
        text.push_str(value);
        quoted(json, value);
    } else {
        escape::text_cell(text, value);
        text_json(json, value);
    }
}

/// Appends text as JSON.
#[expect(clippy::expect_used, reason = "without a value this is no JSON")]
pub(crate) fn text_json(json: &mut String, text: &str) {
    json.push_str(&serde_json::to_string(text).expect("text is JSON"));
}

fn quoted(json: &mut String, plain: &str) {
    json.push('"');
    json.push_str(plain);
    json.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let text = r#"([|\\"nrtu{}\n\r\t\x00]|\PC|[\u{80}-\u{9f}\u{2028}\u{202e}\u{feff}]){0,12}"#;
        let simple = prop_oneof![
            Just(Value::Null),
            text.prop_map(|it| Value::Text(it.into())),
            "-?[1-9][0-9]{0,20}(\\.[0-9]{0,5}[1-9])?".prop_map(|it| Value::Decimal(it.into())),
            any::<i128>().prop_map(Value::Integer),
            (-(1_i128 << 54)..1 << 54).prop_map(Value::Integer),
            any::<f64>().prop_map(Value::Number),
            any::<bool>().prop_map(Value::Boolean),
            any::<i32>().prop_map(Value::Date),
            any::<i64>().prop_map(Value::Datetime),
            text.prop_map(|it| Value::Json(Box::new(json!({ "b": [it, 1.5], "a": null })))),
        ];
        simple.prop_recursive(2, 8, 4, |value| {
            prop::collection::vec(value, 0..4).prop_map(Value::List)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn both_say_what_the_value_is(of in values()) {
            let (mut text, mut json, mut alone) = (String::new(), String::new(), String::new());
            push_value(&mut text, &mut json, &of);
            let canonical = of.to_json();
            prop_assert_eq!(&json, &canonical.to_string());
            escape::cell(&mut alone, &canonical);
            prop_assert_eq!(text, alone);
        }
    }
}
