//! What a message asks for, read without its arguments, to refuse it by.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Caller, RpcError, ToolResult, convert, registry::Snapshot, resolve};

/// A request, as far as refusing it needs.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Asked<'m> {
    #[serde(default)]
    pub(crate) id: Value,
    #[serde(borrow, default)]
    method: Cow<'m, str>,
    #[serde(borrow, default)]
    params: Option<Named<'m>>,
}

#[derive(Debug, Default, Deserialize)]
struct Named<'m> {
    #[serde(borrow, default)]
    name: Option<Cow<'m, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'m, str>>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<Meta<'m>>,
}

#[derive(Debug, Default, Deserialize)]
struct Meta<'m> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'m, str>>,
}

impl<'m> Asked<'m> {
    /// What `message` asks for; nothing, when it is not a request that can be read.
    pub(crate) fn of(message: &'m [u8]) -> Self {
        let mut asked: Self = serde_json::from_slice(message).unwrap_or_default();
        if !(asked.id.is_string() || asked.id.is_number()) {
            asked.id = Value::Null;
        }
        asked
    }

    /// Whether an answer is waited for.
    pub(crate) fn is_request(&self) -> bool {
        !self.id.is_null()
    }

    pub(crate) fn is_tool_call(&self) -> bool {
        self.is_request() && self.method == "tools/call"
    }

    /// Why the caller may not use what it named, when that is no secret.
    pub(crate) fn denial(&self, snapshot: &Snapshot, caller: &Caller) -> Option<RpcError> {
        let params = self.params.as_ref()?;
        match &*self.method {
            "tools/call" => resolve::denial(&snapshot.tools, params.name.as_deref()?, caller),
            "prompts/get" => resolve::denial(&snapshot.prompts, params.name.as_deref()?, caller),
            "resources/read" | "resources/subscribe" => {
                resolve::readings(snapshot, params.uri.as_deref()?, caller).err()
            }
            _ => None,
        }
    }

    /// A tool's result as the answer to this request, in its own era.
    pub(crate) fn result(&self, result: ToolResult) -> String {
        let mut body = serde_json::to_value(convert::tool_result(result)).unwrap_or_default();
        let params = self.params.as_ref();
        let meta = params.and_then(|params| params.meta.as_ref());
        let stateless = meta.is_some_and(|meta| meta.version.is_some());
        if let Some(body) = body.as_object_mut() {
            if stateless {
                body.insert("resultType".to_owned(), json!("complete"));
            } else {
                body.remove("resultType");
            }
        }
        json!({ "jsonrpc": "2.0", "id": self.id, "result": body }).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_read_whatever_else_the_message_holds() {
        let asked = Asked::of(
            br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t\u0031","arguments":{"x":[1]}}}"#,
        );
        assert!(asked.is_tool_call());
        assert_eq!(asked.params.unwrap().name.unwrap(), "t1");
        for other in ["{", "[]", r#"{"id":{}}"#, r#"{"method":"tools/call"}"#] {
            assert!(!Asked::of(other.as_bytes()).is_request(), "{other}");
        }
    }

    #[test]
    fn a_result_is_written_in_the_era_of_its_request() {
        let legacy = Asked::of(br#"{"id":1,"method":"tools/call","params":{"name":"t"}}"#);
        assert!(!legacy.result(ToolResult::text("x")).contains("resultType"));
        let modern = Asked::of(
            br#"{"id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        );
        assert!(
            modern
                .result(ToolResult::text("x"))
                .contains(r#""resultType":"complete""#)
        );
    }
}
