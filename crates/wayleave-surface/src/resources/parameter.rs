//! Reads the query parameters of a resource, and words their refusals: `-32602` with
//! `{field, reason, …}`.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use wayleave_mcp::RpcError;
use wayleave_plan::refusal::Call;

/// The refusal of a parameter, or of the field that it names.
pub(super) struct InvalidParameter {
    message: String,
    data: Map<String, Json>,
}

impl InvalidParameter {
    pub(super) fn new(field: &str, reason: &'static str, message: impl Into<String>) -> Self {
        let mut data = Map::new();
        data.insert("field".to_owned(), field.into());
        data.insert("reason".to_owned(), reason.into());
        Self {
            message: message.into(),
            data,
        }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    /// Offers a call that reads what this URI cannot.
    pub(super) fn next(self, call: &Call) -> Self {
        self.with(
            "next",
            json!({ "tool": call.tool, "arguments": call.arguments }),
        )
    }
}

impl From<InvalidParameter> for RpcError {
    fn from(it: InvalidParameter) -> Self {
        Self::invalid_params(it.message).with_data(Json::Object(it.data))
    }
}

/// A parameter that is a bounded whole number.
pub(super) struct NumberParameter {
    pub(super) name: &'static str,
    pub(super) default: u32,
    pub(super) min: u32,
    pub(super) max: u32,
    /// What to do about a number beyond the maximum, after the message.
    pub(super) hint: &'static str,
}

impl NumberParameter {
    pub(super) fn read(
        &self,
        variables: &BTreeMap<String, String>,
    ) -> Result<u32, InvalidParameter> {
        let Some(text) = variables.get(self.name) else {
            return Ok(self.default);
        };
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_digit()) {
            return Err(self.refused("type_mismatch"));
        }
        let number = text.parse().ok();
        let number = number.filter(|it| (self.min..=self.max).contains(it));
        number.ok_or_else(|| self.refused("out_of_range"))
    }

    fn refused(&self, reason: &'static str) -> InvalidParameter {
        let Self {
            name,
            min,
            max,
            hint,
            ..
        } = self;
        let message = format!("`{name}` is a whole number from {min} to {max}{hint}");
        InvalidParameter::new(name, reason, message)
            .with("expected_datatype", "integer")
            .with("minimum", *min)
            .with("maximum", *max)
    }
}
