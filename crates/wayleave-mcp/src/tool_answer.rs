//! The answer to a tool call on its way to the wire.
//!
//! The SDK's result holds structured content as a tree. Content that is written already stays
//! beside it, and is put in its place when the answer is written; only where the SDK itself writes
//! the answer, the content is read into a tree again.

use std::sync::{Arc, OnceLock};

use rmcp::model::{CallToolResponse, ServerJsonRpcMessage};

use crate::{RpcError, ToolReply, convert, structured};

/// An answer, with what is written of it already.
pub(crate) struct ToolAnswer {
    /// Without its structured content, if that is written.
    pub(crate) response: CallToolResponse,
    pub(crate) written: Option<String>,
}

impl ToolAnswer {
    pub(crate) fn from_reply(reply: ToolReply) -> Result<Self, RpcError> {
        let mut written = None;
        let response = match reply {
            ToolReply::Done(mut result) => {
                match result.structured.take().map(crate::Structured::into_json) {
                    Some(Ok(json)) => written = Some(json),
                    Some(Err(value)) => result.structured = Some(value.into()),
                    None => {}
                }
                CallToolResponse::Complete(convert::tool_result(result))
            }
            ToolReply::NeedsInput(required) => {
                CallToolResponse::InputRequired(convert::input(required)?)
            }
        };
        Ok(Self { response, written })
    }

    /// The answer as the SDK writes it, or, if there is a slot for what is written, as
    /// [`write`] does.
    pub(crate) fn into_response(mut self, slot: Option<&RawContentSlot>) -> CallToolResponse {
        let left = match slot {
            Some(slot) => self.written.and_then(|json| slot.put(json)),
            None => self.written,
        };
        if let (Some(json), CallToolResponse::Complete(result)) = (left, &mut self.response) {
            result.structured_content = Some(structured::value_of(&json));
        }
        self.response
    }
}

/// Where whoever writes the answer to a request finds what is written of it already. It goes with
/// the request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawContentSlot(Arc<OnceLock<String>>);

impl RawContentSlot {
    /// Gives it back where there is something already.
    fn put(&self, json: String) -> Option<String> {
        self.0.set(json).err()
    }

    pub(crate) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// A message as bytes, with what is written of its result put in.
pub(crate) fn write(
    message: &ServerJsonRpcMessage,
    written: Option<&str>,
) -> serde_json::Result<Vec<u8>> {
    const NAME: &[u8] = br#","structuredContent":"#;
    const END: &[u8] = b"}}";
    let Some(written) = written else {
        return serde_json::to_vec(message);
    };
    // Of most texts no byte is escaped, and the text is about as long as the structure.
    let mut bytes = Vec::with_capacity(written.len() * 2 + 1024);
    serde_json::to_writer(&mut bytes, message)?;
    // A result is the last member of its message and never empty.
    if let (ServerJsonRpcMessage::Response(_), true) = (message, bytes.ends_with(END)) {
        bytes.truncate(bytes.len() - END.len());
        for part in [NAME, written.as_bytes(), END] {
            bytes.extend_from_slice(part);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use rmcp::{
        ErrorData,
        model::{RequestId, ServerResult},
    };
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::{Structured, ToolResult};

    const JSON: &str = r#"{"data":[1,"}}",null]}"#;

    fn results() -> Vec<ToolResult> {
        let plain = ToolResult::text("}}");
        let failed = ToolResult::error("no");
        let meta = Map::from_iter([("a/b".to_owned(), json!({ "c": {} }))]);
        let none = ToolResult::blocks(Vec::new());
        vec![plain.clone().with_meta(meta), plain, failed, none]
    }

    fn response(response: CallToolResponse) -> ServerJsonRpcMessage {
        let id = RequestId::String("a".into());
        ServerJsonRpcMessage::response(ServerResult::from(response), id)
    }

    fn parsed(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn what_is_written_already_says_what_the_sdk_would_write() {
        let value: Value = serde_json::from_str(JSON).unwrap();
        for result in results() {
            let plain = result.clone().with_structured(value.clone());
            let plain = ToolAnswer::from_reply(plain.into()).unwrap();
            assert!(plain.written.is_none());
            let plain = parsed(&write(&response(plain.response), None).unwrap());
            assert_eq!(plain["result"]["structuredContent"], value);

            let written = result.with_structured(Structured::written(JSON.to_owned()));
            let written = || ToolAnswer::from_reply(written.clone().into()).unwrap();
            let answer = written();
            let whole = write(&response(answer.response), answer.written.as_deref()).unwrap();
            assert!(whole.ends_with(format!("{JSON}}}}}").as_bytes()));
            assert_eq!(parsed(&whole), plain);

            let slot = RawContentSlot::default();
            let into_response = response(written().into_response(Some(&slot)));
            assert_eq!(parsed(&write(&into_response, slot.get()).unwrap()), plain);

            let into_response = response(written().into_response(None));
            assert_eq!(parsed(&write(&into_response, None).unwrap()), plain);
        }
    }

    #[test]
    fn nothing_is_put_into_an_error() {
        let error = ErrorData::internal_error("no", Some(json!({ "a": {} })));
        let error = ServerJsonRpcMessage::error(error, None);
        let bytes = write(&error, Some(JSON)).unwrap();
        assert_eq!(bytes, serde_json::to_vec(&error).unwrap());
    }
}
