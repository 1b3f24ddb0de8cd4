//! Constraints on values that callers write, and the errors that report violations.

mod pattern;

use serde::Serialize;
use serde_json::Value as Json;

pub use pattern::{TextPattern, is_portable};

use crate::codes::codes;
use crate::parse;

/// The field name in errors about the record as a whole. No field has this name.
pub const WHOLE_RECORD: &str = "*";

/// One error in a write. The answer to a call lists all of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldError {
    /// The field or argument, or [`WHOLE_RECORD`].
    pub field: String,
    /// The kind of error.
    pub code: FieldErrorCode,
    /// The message, which names the field.
    pub message: String,
    /// The value given; null if none was.
    pub value: Json,
    /// The violated constraint: a bound, a list, a pattern; null if it has no value.
    pub constraint: Json,
}

impl FieldError {
    /// An error about a value.
    pub fn new(field: &str, code: FieldErrorCode, message: impl Into<String>) -> Self {
        Self {
            field: field.to_owned(),
            code,
            message: message.into(),
            value: Json::Null,
            constraint: Json::Null,
        }
    }

    /// An error about the record as a whole.
    pub fn whole(code: FieldErrorCode, message: impl Into<String>) -> Self {
        Self::new(WHOLE_RECORD, code, message)
    }

    /// Sets the value that was given.
    #[must_use]
    pub fn value(mut self, value: Json) -> Self {
        self.value = value;
        self
    }

    /// Sets the violated constraint.
    #[must_use]
    pub fn constraint(mut self, constraint: impl Into<Json>) -> Self {
        self.constraint = constraint.into();
        self
    }
}

codes! {
    /// The kind of a field error.
    pub enum FieldErrorCode {
        Unknown => "unknown": "The call has no such argument.",
        Required => "required": "A value must be given, or must not be null.",
        Datatype => "datatype": "The value is not of the field's datatype, or not one that the store can hold.",
        MinLength => "min_length": "The text is too short.",
        MaxLength => "max_length": "The text is too long.",
        Pattern => "pattern": "The text does not match the pattern.",
        OneOf => "one_of": "The value is not one of those allowed.",
        MinValue => "min_value": "The number is too small.",
        MaxValue => "max_value": "The number is too great.",
        Reference => "reference": "The value refers to a record that does not exist for this caller.",
        Unique => "unique": "Another record has these values.",
        NotFound => "not_found": "There is no record with this key for this caller.",
        Conflict => "conflict": "The record has changed since the caller read it, its `updated` field did not grow with this write, or the idempotency key was used with other arguments.",
        Referenced => "referenced": "Other records refer to the record.",
        Check => "check": "A rule of the source rejects the record.",
        Serialization => "serialization": "Concurrent writes conflicted with this one; try again.",
    }
}

/// Whether a text is an absolute IRI.
pub fn is_iri(text: &str) -> bool {
    parse::is_iri(text)
}
