//! Input schemas: compiled once at registration, applied before a handler runs.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{ToolResult, error::excerpt};

/// A tool that cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The name breaks the protocol's rule for tool names.
    #[error("tool name `{name}` is not 1 to 128 of A-Z, a-z, 0-9, `_`, `-`, `.`")]
    Name {
        /// The name as given, shortened.
        name: String,
    },
    /// The schema's root does not describe an object.
    #[error("input schema of `{tool}` must be an object with `type: \"object\"`")]
    NotAnObject {
        /// The tool.
        tool: String,
    },
    /// The schema is not valid JSON Schema, or refers to a document elsewhere.
    #[error("input schema of `{tool}` does not compile: {reason}")]
    Invalid {
        /// The tool.
        tool: String,
        /// The message of the schema compiler.
        reason: String,
    },
}

/// A violation of a tool's schema by its arguments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Violation {
    /// The argument, as a JSON pointer; empty for the arguments as a whole.
    pub path: String,
    /// The schema keyword that failed.
    pub keyword: String,
    /// What is wrong, in words, without the value.
    pub message: String,
}

/// Checks the name of a tool.
pub(crate) fn check_name(tool: &str) -> Result<(), SchemaError> {
    let valid = (1..=128).contains(&tool.len())
        && tool
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    if valid {
        return Ok(());
    }
    Err(SchemaError::Name {
        name: excerpt(tool).into_owned(),
    })
}

/// A compiled input schema.
pub(crate) struct InputSchema {
    document: Arc<Map<String, Value>>,
    validator: jsonschema::Validator,
    mirrors_headers: bool,
}

impl InputSchema {
    pub(crate) fn compile(tool: &str, document: Value) -> Result<Self, SchemaError> {
        check_name(tool)?;
        // No retriever is compiled in: a `$ref` to another document fails here, it is never fetched.
        let validator =
            jsonschema::validator_for(&document).map_err(|error| SchemaError::Invalid {
                tool: tool.to_owned(),
                reason: error.to_string(),
            })?;
        let mirrors_headers = document.to_string().contains("x-mcp-header");
        match document {
            Value::Object(map) if map.get("type") == Some(&json!("object")) => Ok(Self {
                document: Arc::new(map),
                validator,
                mirrors_headers,
            }),
            _ => Err(SchemaError::NotAnObject {
                tool: tool.to_owned(),
            }),
        }
    }

    pub(crate) fn document(&self) -> &Arc<Map<String, Value>> {
        &self.document
    }

    /// Whether an argument must be repeated in an HTTP header.
    pub(crate) fn mirrors_headers(&self) -> bool {
        self.mirrors_headers
    }

    /// Returns valid arguments unchanged, else every violation.
    pub(crate) fn check(
        &self,
        arguments: Map<String, Value>,
    ) -> Result<Map<String, Value>, Vec<Violation>> {
        /// Enough to correct a call; a hostile one could break thousands of rules.
        const MAX_VIOLATIONS: usize = 16;
        let arguments = Value::Object(arguments);
        if !self.validator.is_valid(&arguments) {
            return Err(self
                .validator
                .iter_errors(&arguments)
                .take(MAX_VIOLATIONS)
                .map(|error| violation(&error))
                .collect());
        }
        match arguments {
            Value::Object(map) => Ok(map),
            _ => Ok(Map::new()),
        }
    }
}

fn violation(error: &jsonschema::ValidationError<'_>) -> Violation {
    let path = error.instance_path().as_str().to_owned();
    let keyword = error.kind().keyword().to_owned();
    // Masked: the value is the caller's, may be huge, and is of no use to it.
    Violation {
        path,
        keyword,
        message: error.masked_with("the value").to_string(),
    }
}

/// The default refusal: a tool result the model can read and correct.
pub(crate) fn refuse(violations: &[Violation]) -> ToolResult {
    let first = violations.first();
    let message = first.map_or_else(
        || "invalid arguments".to_owned(),
        |violation| match violation.path.as_str() {
            "" => violation.message.clone(),
            path => format!("`{}`: {}", path.trim_start_matches('/'), violation.message),
        },
    );
    let error = json!({
        "code": "invalid_request",
        "message": message,
        "violations": violations,
        "retryable": false,
    });
    ToolResult::error(error.to_string()).with_structured(json!({ "error": error }))
}
