//! A tool call as nearly all are written, read in one go.
//!
//! The SDK tries one kind of message after another, and buffers what it tries. Whatever is unusual
//! about a message, even a member too many or one given twice, is left to it.

use std::borrow::Cow;

use rmcp::model::{CallToolRequestParams, RequestId, RequestMetaObject};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message<'m> {
    #[serde(borrow)]
    jsonrpc: Cow<'m, str>,
    id: RequestId,
    #[serde(borrow)]
    method: Cow<'m, str>,
    params: CallToolRequestParams,
}

/// A `tools/call`.
pub(crate) struct ParsedCall {
    pub(crate) id: RequestId,
    /// Without their `_meta`.
    pub(crate) params: CallToolRequestParams,
    pub(crate) meta: Option<RequestMetaObject>,
}

/// Reads `message` as a call, if it is one.
pub(crate) fn parse(message: &[u8]) -> Option<ParsedCall> {
    memchr::memmem::find(message, b"\"tools/call\"")?;
    let message: Message<'_> = serde_json::from_slice(message).ok()?;
    if message.jsonrpc != "2.0" || message.method != "tools/call" {
        return None;
    }
    let mut params = message.params;
    let meta = params.meta.take();
    Some(ParsedCall {
        id: message.id,
        params,
        meta,
    })
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetMeta as _, JsonRpcMessage};

    use super::*;

    /// What the SDK reads, if it reads a call.
    fn parsed_by_sdk(message: &str) -> Option<ParsedCall> {
        let JsonRpcMessage::Request(request) =
            serde_json::from_str::<ClientJsonRpcMessage>(message).ok()?
        else {
            return None;
        };
        let meta = request.request.get_meta().clone();
        let ClientRequest::CallToolRequest(call) = request.request else {
            return None;
        };
        Some(ParsedCall {
            id: request.id,
            params: call.params,
            meta: Some(meta),
        })
    }

    #[test]
    fn what_is_read_in_one_go_is_what_the_sdk_reads() {
        for params in [
            r#"{"name":"t"}"#,
            r#"{"name":"t","arguments":{"a":[1,{"b":null}],"c":1.5e300,"d":"\u00fc"}}"#,
            r#"{"name":"t","arguments":{},"_meta":{"progressToken":7,"x":{"y":1}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"t\n"}"#,
            r#"{"name":"t","requestState":"s","inputResponses":{"k":{"action":"accept"}}}"#,
            r#"{"name":"t","more":[1]}"#,
        ] {
            for id in ["1", "\"a\"", "-5"] {
                let message = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#
                );
                let (parsed, full) = (parse(message.as_bytes()), parsed_by_sdk(&message));
                let (parsed, full) = (parsed.unwrap(), full.unwrap());
                assert_eq!(parsed.id, full.id, "{message}");
                assert_eq!(parsed.params, full.params, "{message}");
                assert_eq!(parsed.meta.unwrap_or_default(), full.meta.unwrap());
            }
        }
    }

    #[test]
    fn whatever_is_unusual_is_left_to_the_sdk() {
        for message in [
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","result":{},"params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":"tools/call"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        ] {
            assert!(parse(message.as_bytes()).is_none(), "{message}");
        }
    }
}
