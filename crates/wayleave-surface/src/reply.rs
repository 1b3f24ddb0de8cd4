//! What a read answers: text for the model, the same as structure, or a typed refusal.

use serde_json::{Map, Value as Json, json};
use wayleave_mcp::{Structured, ToolResult};
use wayleave_plan::refusal::Refusal;

use crate::escape;

/// The most bytes of an error result, text and structure together.
pub const MAX_ERROR_BYTES: usize = 2_048;

/// The answer to one call of a read tool, whichever surface it goes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What a model reads, complete.
    pub text: String,
    /// The same for programs.
    pub structured: Structured,
    /// Whether the call was refused or failed; the structure is then `{error}`.
    pub is_error: bool,
    /// Metadata, under reverse-DNS keys.
    pub meta: Option<Map<String, Json>>,
}

impl Reply {
    /// A read that went well.
    pub(crate) fn done(text: String, structured: impl Into<Structured>) -> Self {
        Self {
            text,
            structured: structured.into(),
            is_error: false,
            meta: None,
        }
    }

    /// Rows, whose JSON is written already, and what is said about them.
    pub(crate) fn row_set(text: String, data: &str, meta: &Json) -> Self {
        let meta = meta.to_string();
        let mut json = String::with_capacity(data.len() + meta.len() + 32);
        for part in ["{\"data\":", data, ",\"meta\":", &meta, "}"] {
            json.push_str(part);
        }
        Self::done(text, Structured::written(json))
    }

    /// How many bytes it takes as a tool result.
    pub fn bytes(&self) -> usize {
        let mut result = json!({
            "content": [{ "type": "text", "text": self.text }],
            "structuredContent": self.structured.value(),
            "isError": self.is_error,
        });
        if let (Some(meta), Json::Object(members)) = (&self.meta, &mut result) {
            members.insert("_meta".to_owned(), Json::Object(meta.clone()));
        }
        result.to_string().len()
    }
}

impl From<&Refusal> for Reply {
    /// The refusal as JSON, once as text and once as structure, within the budget of both.
    fn from(refusal: &Refusal) -> Self {
        let mut within = MAX_ERROR_BYTES / 2;
        loop {
            let error = refusal.to_json_within(within);
            let reply = Self {
                text: escape::json(&error),
                structured: json!({ "error": error }).into(),
                is_error: true,
                meta: None,
            };
            // Below 512 bytes a refusal is not shortened any more.
            if reply.bytes() <= MAX_ERROR_BYTES || within < 512 {
                return reply;
            }
            within -= 32;
        }
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self::from(&refusal)
    }
}

impl From<Reply> for ToolResult {
    fn from(reply: Reply) -> Self {
        let mut result = Self::text(reply.text).with_structured(reply.structured);
        result.is_error = reply.is_error;
        result.meta = reply.meta;
        result
    }
}
