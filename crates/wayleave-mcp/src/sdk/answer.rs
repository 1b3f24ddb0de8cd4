//! Answers to requests, as they are serialized.
//!
//! The SDK's result holds structured content as a tree. Content that is already serialized stays
//! beside it and is inserted when the answer is written; only where the SDK itself writes the
//! answer is the content parsed into a tree again.

use rmcp::{
    ErrorData,
    model::{CustomResult, ErrorCode, RequestId, ServerJsonRpcMessage, ServerResult},
};
use serde_json::{Map, Value};

use super::convert;
use crate::{
    Era, RpcError, Structured, ToolReply, observation::EmptyReply, structured, wire_error,
};

/// A result, with its already serialized parts.
#[derive(Debug)]
pub(crate) struct WireAnswer {
    /// Without its structured content, if that is already serialized.
    result: ServerResult,
    written: Option<String>,
}

impl WireAnswer {
    pub(crate) fn new(result: impl Into<ServerResult>) -> Self {
        Self {
            result: result.into(),
            written: None,
        }
    }

    /// A result without members of its own.
    pub(crate) fn empty(reply: EmptyReply) -> Self {
        if reply.meta.is_empty() {
            return Self::new(ServerResult::empty(()));
        }
        // The SDK's empty result has no place for `_meta`.
        let body = Map::from_iter([("_meta".to_owned(), Value::Object(reply.meta))]);
        Self::new(ServerResult::CustomResult(CustomResult::new(body.into())))
    }

    pub(crate) fn from_reply(mut reply: ToolReply) -> Result<Self, RpcError> {
        let mut written = None;
        if let ToolReply::Done(result) = &mut reply {
            match result.structured.take().map(Structured::into_json) {
                Some(Ok(json)) => written = Some(json),
                Some(Err(value)) => result.structured = Some(value.into()),
                None => {}
            }
        }
        Ok(Self {
            result: ServerResult::from(convert::tool_reply(reply)?),
            written,
        })
    }

    /// Converts the answer to the form of the era, as the SDK does for the requests it handles
    /// itself.
    pub(crate) fn for_era(mut self, era: Era) -> Result<Self, ErrorData> {
        match era {
            Era::Stateless => self.result.fill_missing_cache_hints(),
            Era::Session => {
                if matches!(self.result, ServerResult::InputRequiredResult(_)) {
                    return Err(ErrorData::invalid_request(
                        "InputRequiredResult requires negotiated protocol version 2026-07-28 or newer",
                        None,
                    ));
                }
                self.result.strip_result_type_for_legacy_peer();
            }
        }
        Ok(self)
    }

    /// Converts the answer to the SDK's own type.
    pub(super) fn into_result(mut self) -> Result<ServerResult, ErrorData> {
        if let (Some(json), ServerResult::CallToolResult(result)) = (self.written, &mut self.result)
        {
            let value = structured::value_of(&json);
            let value = value.map_err(|error| {
                RpcError::internal(&format!("written content is not JSON: {error}"))
            })?;
            result.structured_content = Some(value);
        }
        Ok(self.result)
    }
}

/// Converts an error to the form of the era.
pub(crate) fn error_for_era(mut error: ErrorData, era: Era) -> ErrorData {
    // A tool may give the same code another meaning; only ours names a resource.
    let names_a_resource = error
        .data
        .as_ref()
        .is_some_and(|it| it.get("uri").is_some());
    if era == Era::Stateless && error.code == ErrorCode::RESOURCE_NOT_FOUND && names_a_resource {
        error.code = ErrorCode::INVALID_PARAMS;
    }
    error
}

/// Serializes the answer to request `id`.
pub(crate) fn write(reply: Result<WireAnswer, ErrorData>, id: RequestId) -> Vec<u8> {
    match reply {
        Ok(answer) => {
            let message = ServerJsonRpcMessage::response(answer.result, id);
            write_message(&message, answer.written.as_deref())
        }
        Err(error) => write_message(&ServerJsonRpcMessage::error(error, Some(id)), None),
    }
}

/// Serializes a message, with content that is already serialized inserted into its result.
pub(crate) fn write_message(message: &ServerJsonRpcMessage, written: Option<&str>) -> Vec<u8> {
    let id = match message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    };
    serialize(message, written).unwrap_or_else(|error| unwritable(&error, id))
}

/// The replacement for a message that cannot be serialized: an empty answer would look like a
/// success.
fn unwritable(error: &serde_json::Error, id: Option<&RequestId>) -> Vec<u8> {
    let id = match id {
        Some(RequestId::Number(id)) => Value::from(*id),
        Some(RequestId::String(id)) => Value::from(&**id),
        None => Value::Null,
    };
    let error = RpcError::internal(&format!("an answer cannot be written: {error}"));
    wire_error::response(&error, &id).to_string().into_bytes()
}

fn serialize(message: &ServerJsonRpcMessage, written: Option<&str>) -> serde_json::Result<Vec<u8>> {
    const NAME: &[u8] = br#","structuredContent":"#;
    const END: &[u8] = b"}}";
    let Some(written) = written else {
        return serde_json::to_vec(message);
    };
    // Most texts need no escaping, and the text is about as long as the structure.
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
    use serde_json::json;

    use super::*;
    use crate::ToolResult;

    const JSON: &str = r#"{"data":[1,"}}",null]}"#;

    fn results() -> Vec<ToolResult> {
        let plain = ToolResult::text("}}");
        let failed = ToolResult::error("no");
        let meta = Map::from_iter([("a/b".to_owned(), json!({ "c": {} }))]);
        let none = ToolResult::blocks(Vec::new());
        vec![plain.clone().with_meta(meta), plain, failed, none]
    }

    fn id() -> RequestId {
        RequestId::String("a".into())
    }

    fn parsed(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn what_is_written_already_says_what_the_sdk_would_write() {
        let value: Value = serde_json::from_str(JSON).unwrap();
        for result in results() {
            let plain = result.clone().with_structured(value.clone());
            let plain = WireAnswer::from_reply(plain.into()).unwrap();
            assert!(plain.written.is_none());
            let plain = parsed(&write(Ok(plain), id()));
            assert_eq!(plain["result"]["structuredContent"], value);

            let written = result.with_structured(Structured::written(JSON.to_owned()));
            let written = || WireAnswer::from_reply(written.clone().into()).unwrap();
            let whole = write(Ok(written()), id());
            assert!(whole.ends_with(format!("{JSON}}}}}").as_bytes()));
            assert_eq!(parsed(&whole), plain);

            let by_sdk = ServerJsonRpcMessage::response(written().into_result().unwrap(), id());
            assert_eq!(parsed(&write_message(&by_sdk, None)), plain);
        }
    }

    #[test]
    fn nothing_is_put_into_an_error() {
        let error = ErrorData::internal_error("no", Some(json!({ "a": {} })));
        let error = ServerJsonRpcMessage::error(error, None);
        let bytes = write_message(&error, Some(JSON));
        assert_eq!(bytes, serde_json::to_vec(&error).unwrap());
    }

    #[test]
    fn what_cannot_be_written_is_an_internal_error_under_its_id() {
        let error = serde_json::from_str::<Value>("{").unwrap_err();
        let answer = parsed(&unwritable(&error, Some(&id())));
        assert_eq!(answer["id"], "a");
        assert_eq!(answer["error"]["code"], RpcError::INTERNAL);
        assert!(answer["error"]["data"]["trace_id"].is_string());
    }
}
