//! Structured content of a result: a value, or its serialized JSON.
//!
//! A tool that reads thousands of values need not build a tree of them only for the wire to
//! serialize and drop: it serializes them itself, once, and the text is sent as it is.

use std::{borrow::Cow, sync::OnceLock};

use serde::Deserialize as _;
use serde_json::Value;

/// The structured content of a [`ToolResult`](crate::ToolResult).
///
/// ```
/// use serde_json::json;
/// use wayleave_mcp::{Structured, ToolResult};
///
/// let value = ToolResult::text("1, 2").with_structured(json!({ "rows": [1, 2] }));
/// let written = Structured::written(r#"{"rows":[1,2]}"#.to_owned());
/// assert_eq!(ToolResult::text("1, 2").with_structured(written), value);
/// ```
#[derive(Debug, Clone)]
pub struct Structured(Form);

#[derive(Debug, Clone)]
enum Form {
    Value(Value),
    Written {
        json: String,
        /// The parsed value, cached at the first read.
        read: OnceLock<Value>,
    },
}

impl Structured {
    /// JSON that is already serialized: one value, on one line. It is sent as it is; only a build
    /// with debug assertions checks that.
    pub fn written(json: String) -> Self {
        debug_assert!(
            !json.contains('\n')
                && serde_json::from_str::<&serde_json::value::RawValue>(&json).is_ok(),
            "not a line of JSON: {json}"
        );
        let read = OnceLock::new();
        Self(Form::Written { json, read })
    }

    /// The value. Serialized JSON is parsed at the first call.
    pub fn value(&self) -> &Value {
        match &self.0 {
            Form::Value(value) => value,
            Form::Written { json, read } => read.get_or_init(|| one_value(json)),
        }
    }

    /// The value, consuming the content.
    pub fn into_value(self) -> Value {
        match self.0 {
            Form::Value(value) => value,
            Form::Written { json, read } => read.into_inner().unwrap_or_else(|| one_value(&json)),
        }
    }

    /// The content as JSON.
    pub fn json(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Value(value) => Cow::Owned(value.to_string()),
            Form::Written { json, .. } => Cow::Borrowed(json),
        }
    }

    /// The length of the JSON; `measure` measures a value that is not serialized yet.
    pub(crate) fn bytes(&self, measure: impl FnOnce(&Value) -> usize) -> usize {
        match &self.0 {
            Form::Value(value) => measure(value),
            Form::Written { json, .. } => json.len(),
        }
    }

    /// The JSON, if it is already serialized; else the value.
    pub(crate) fn into_json(self) -> Result<String, Value> {
        match self.0 {
            Form::Value(value) => Err(value),
            Form::Written { json, .. } => Ok(json),
        }
    }
}

/// Parses JSON that this program wrote, without a depth limit: content nests a value of a store
/// deeper than the deepest value accepted from one.
pub(crate) fn value_of(json: &str) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_str(json);
    reader.disable_recursion_limit();
    Value::deserialize(&mut reader)
}

#[expect(
    clippy::expect_used,
    reason = "`Structured::written` requires one JSON value, and debug builds check it"
)]
fn one_value(json: &str) -> Value {
    value_of(json).expect("written content is one value of JSON")
}

impl From<Value> for Structured {
    fn from(value: Value) -> Self {
        Self(Form::Value(value))
    }
}

impl PartialEq for Structured {
    /// Whether both hold the same value, however it is written.
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_kept_and_reads_as_the_value_it_is() {
        let json = r#"{"b":[1.0,"ü\n"],"a":0.30000000000000004}"#;
        let written = Structured::written(json.to_owned());
        assert_eq!(written.json(), json);
        let value = json!({ "b": [1.0, "ü\n"], "a": 0.1 + 0.2 });
        assert_eq!(written.value(), &value);
        assert_eq!(written, Structured::from(value.clone()));
        assert_eq!(Structured::from(value.clone()).json(), json);
        assert_eq!(written.clone().into_value(), value);
        assert_eq!(written.into_json().as_deref(), Ok(json));
    }

    #[test]
    fn what_holds_the_deepest_value_that_is_read_reads_back_whole() {
        let deepest = format!("{}7{}", "[".repeat(127), "]".repeat(127));
        assert!(serde_json::from_str::<Value>(&deepest).is_ok());
        let json = format!(r#"{{"data":{{"rows":[[{deepest}]]}}}}"#);
        let written = Structured::written(json.clone());
        assert_eq!(written.value().to_string(), json);
    }

    #[test]
    fn every_finite_number_reads_back_as_it_was() {
        // Some numbers need more digits than a fast parser reads.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let number = f64::from_bits(state);
            if number.is_finite() {
                let written = Structured::written(json!(number).to_string());
                assert_eq!(written.value().as_f64(), Some(number));
            }
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    fn what_is_no_line_of_json_is_noticed_where_tests_run() {
        for odd in ["", "{", "{}x", "{\n}", "1 2"] {
            let made = std::panic::catch_unwind(|| Structured::written(odd.to_owned()));
            assert!(made.is_err(), "{odd:?}");
        }
    }
}
