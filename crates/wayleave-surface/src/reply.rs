//! The reply of a read: text for the model, the same as structure, or a typed refusal.

use serde_json::{Value as Json, json};
use wayleave_mcp::{Structured, ToolReply, ToolResult};
use wayleave_plan::refusal::Refusal;

use crate::{escape, evidence, json_bytes};

/// Maximum size of an error result, text and structure together, in bytes; twice as much if it
/// describes connections to choose from.
pub const MAX_ERROR_BYTES: usize = wayleave_plan::refusal::MAX_BYTES;

/// The answer to one call of a read tool, whichever surface it goes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The complete answer for models.
    pub text: String,
    /// The same for programs.
    pub structured: Structured,
    /// Whether the call was refused or failed; the structure is then `{error}`.
    pub is_error: bool,
}

impl Reply {
    /// The reply of a successful read.
    pub(crate) fn done(text: String, structured: impl Into<Structured>) -> Self {
        evidence::set_answer_text(&text);
        Self::from_parts(text, structured.into())
    }

    fn from_parts(text: String, structured: Structured) -> Self {
        Self {
            text,
            structured,
            is_error: false,
        }
    }

    /// A reply of rows, with their JSON and its metadata.
    pub(crate) fn row_set(text: String, data: &str, meta: &Json) -> Self {
        let meta = meta.to_string();
        let mut json = String::with_capacity(data.len() + meta.len() + 32);
        for part in ["{\"data\":", data, ",\"meta\":", &meta, "}"] {
            json.push_str(part);
        }
        evidence::set_answer(data);
        Self::from_parts(text, Structured::written(json))
    }

    /// Size as a tool result, in bytes.
    pub fn bytes(&self) -> usize {
        const AROUND: &str =
            r#"{"content":[{"type":"text","text":}],"structuredContent":,"isError":}"#;
        let is_error = json_bytes::value_len(&Json::Bool(self.is_error));
        let text = json_bytes::text_len(&self.text);
        AROUND.len() + text + json_bytes::value_len(self.structured.value()) + is_error
    }
}

impl From<&Refusal> for Reply {
    /// The refusal as JSON, once as text and once as structure, within the budget of both.
    fn from(refusal: &Refusal) -> Self {
        if let Some(collector) = evidence::collector() {
            collector.set_error_code(refusal.code.as_str());
        }
        let most = refusal.max_bytes();
        let mut within = most / 2;
        loop {
            let error = refusal.to_json_within(within);
            let reply = Self {
                text: escape::json(&error),
                structured: json!({ "error": error }).into(),
                is_error: true,
            };
            // Below 512 bytes a refusal is not shortened any more.
            if reply.bytes() <= most || within < 512 {
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
        result
    }
}

impl From<Reply> for ToolReply {
    fn from(reply: Reply) -> Self {
        Self::Done(reply.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_counted_as_it_will_be_written() {
        let all: String = (0..0x120).filter_map(char::from_u32).collect();
        for structured in [
            Json::Null,
            json!([]),
            json!({}),
            json!([true, false, -1, 1.5e300, 12.3456, "é"]),
            json!({ "data": { "results": [{ "score": 0.1, &all: all }, {}] }, "meta": [[], 7] }),
        ] {
            for (text, is_error) in [("", false), ("|a\n", true), (&all, false)] {
                let written = json!({
                    "content": [{ "type": "text", "text": text }],
                    "structuredContent": structured,
                    "isError": is_error,
                });
                let mut reply = Reply::done(text.to_owned(), structured.clone());
                reply.is_error = is_error;
                assert_eq!(reply.bytes(), written.to_string().len());
            }
        }
    }
}
