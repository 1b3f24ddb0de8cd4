//! What a message asks for, read without its arguments, to refuse it by.
//!
//! Whatever else is odd about a message, it is read: one that could not be would escape being
//! refused, and the SDK might yet understand it.

use std::{borrow::Cow, collections::HashMap};

use rmcp::model::RequestId;
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Value, json, value::RawValue};

use crate::{
    Caller, RequestFacts, RpcError, ToolResult, call_parser::ParsedCall, convert,
    registry::Snapshot, resolve,
};

/// The longest text that an answer repeats to say what it answers. A listener's is in every notice.
pub(crate) const MAX_ID_BYTES: usize = 1024;

/// Whether an id is longer than that.
pub(crate) fn is_too_long(id: &RequestId) -> bool {
    matches!(id, RequestId::String(id) if id.len() > MAX_ID_BYTES)
}

/// Why a request with such an id is refused.
pub(crate) fn id_too_long() -> RpcError {
    RpcError::new(
        RpcError::INVALID_REQUEST,
        format!("the id of a request has at most {MAX_ID_BYTES} bytes"),
    )
}

/// A message, as far as refusing it needs.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    /// What an answer refers to; null where none is possible.
    pub(crate) id: Value,
    pub(crate) id_is_too_long: bool,
    kind: Kind,
    method: String,
    name: Option<String>,
    uri: Option<String>,
    /// Whether it says which revision it is of, as those without a session do.
    is_stateless: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Invalid,
    Request,
    /// A notification, or an answer to something we asked: nobody waits for an answer to it.
    OneWay,
}

/// A message as most are: no member of it given twice, none of a type it should not have.
#[derive(Deserialize)]
struct StrictMessage<'m> {
    #[serde(default)]
    id: Value,
    #[serde(borrow)]
    method: Cow<'m, str>,
    #[serde(borrow, default)]
    params: StrictParams<'m>,
}

#[derive(Default, Deserialize)]
struct StrictParams<'m> {
    #[serde(borrow, default)]
    name: Option<Cow<'m, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'m, str>>,
    #[serde(default, rename = "_meta")]
    meta: StrictMeta,
}

#[derive(Default, Deserialize)]
struct StrictMeta {
    #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<IgnoredAny>,
}

/// The members of a JSON object. Of two of one name the last counts.
type Members<'m> = HashMap<String, &'m RawValue>;

fn member<T: DeserializeOwned>(members: &Members<'_>, name: &str) -> Option<T> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

fn members<'m>(members: &Members<'m>, name: &str) -> Members<'m> {
    let object = members.get(name).map(|json| json.get());
    object
        .and_then(|json| serde_json::from_str(json).ok())
        .unwrap_or_default()
}

impl Envelope {
    /// What `message` asks for.
    pub(crate) fn parse(message: &[u8]) -> Self {
        match serde_json::from_slice(message) {
            Ok(strict) => Self::from_strict(strict),
            Err(_) => Self::from_members(message),
        }
    }

    /// What a call that has been read asks for.
    pub(crate) fn from_call(call: &ParsedCall) -> Self {
        let id_is_too_long = is_too_long(&call.id);
        Self {
            kind: Kind::Request,
            id: match &call.id {
                RequestId::String(id) if !id_is_too_long => Value::String(id.to_string()),
                RequestId::Number(id) => Value::from(*id),
                RequestId::String(_) => Value::Null,
            },
            id_is_too_long,
            method: "tools/call".to_owned(),
            name: Some(call.params.name.to_string()),
            uri: None,
            is_stateless: false,
        }
    }

    fn from_strict(message: StrictMessage<'_>) -> Self {
        let StrictMessage { id, method, params } = message;
        let id_is_too_long = id.as_str().is_some_and(|id| id.len() > MAX_ID_BYTES);
        let is_answerable = (id.is_string() || id.is_number()) && !id_is_too_long;
        Self {
            kind: if id.is_null() {
                Kind::OneWay
            } else {
                Kind::Request
            },
            id: if is_answerable { id } else { Value::Null },
            id_is_too_long,
            method: method.into_owned(),
            name: params.name.map(Cow::into_owned),
            uri: params.uri.map(Cow::into_owned),
            is_stateless: params.meta.version.is_some(),
        }
    }

    fn from_members(message: &[u8]) -> Self {
        let Ok(whole) = serde_json::from_slice::<Members<'_>>(message) else {
            return Self::default();
        };
        let params = members(&whole, "params");
        let meta = members(&params, "_meta");
        let id_is_too_long = member(&whole, "id").is_some_and(|id| is_too_long(&id));
        let id = member(&whole, "id").filter(|id: &Value| id.is_string() || id.is_number());
        let id = id.filter(|_| !id_is_too_long);
        let has_id = whole.get("id").is_some_and(|id| id.get() != "null");
        Self {
            kind: match (whole.contains_key("method"), has_id) {
                (true, true) => Kind::Request,
                (true, false) | (false, true) => Kind::OneWay,
                (false, false) => Kind::Invalid,
            },
            id: id.unwrap_or_default(),
            id_is_too_long,
            method: member(&whole, "method").unwrap_or_default(),
            name: member(&params, "name"),
            uri: member(&params, "uri"),
            is_stateless: meta.contains_key("io.modelcontextprotocol/protocolVersion"),
        }
    }

    /// Whether an answer is waited for.
    pub(crate) fn is_request(&self) -> bool {
        self.kind == Kind::Request
    }

    /// Whether it can only be told, and refusing it would tell nobody.
    pub(crate) fn is_one_way(&self) -> bool {
        self.kind == Kind::OneWay
    }

    /// Whether it is a notification.
    pub(crate) fn is_notification(&self) -> bool {
        self.is_one_way() && !self.method.is_empty()
    }

    /// Whether it answers something the client was asked.
    pub(crate) fn is_answer(&self) -> bool {
        self.is_one_way() && self.method.is_empty()
    }

    /// Tells an observer what the message says.
    pub(crate) fn fill(self, facts: &mut RequestFacts) {
        facts.method = Some(self.method).filter(|method| !method.is_empty());
        facts.id = self.id;
        facts.name = self.name;
        facts.uri = self.uri;
    }

    pub(crate) fn is_tool_call(&self) -> bool {
        self.is_request() && !self.id.is_null() && self.method == "tools/call"
    }

    /// Whether it begins a session.
    pub(crate) fn is_initialize(&self) -> bool {
        self.method == "initialize"
    }

    /// Why the caller may not use what it named, when that is no secret.
    pub(crate) fn denial(&self, snapshot: &Snapshot, caller: &Caller) -> Option<RpcError> {
        let (name, uri) = (self.name.as_deref(), self.uri.as_deref());
        match &*self.method {
            "tools/call" => resolve::denial(&snapshot.tools, name?, caller),
            "prompts/get" => resolve::denial(&snapshot.prompts, name?, caller),
            "resources/read" | "resources/subscribe" => {
                resolve::read_routes(snapshot, uri?, caller).err()
            }
            _ => None,
        }
    }

    /// A tool's result as the answer to this request, in its own era.
    pub(crate) fn write_result(&self, write_result: ToolResult) -> String {
        let mut body = serde_json::to_value(convert::tool_result(write_result)).unwrap_or_default();
        if let Some(body) = body.as_object_mut() {
            if self.is_stateless {
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
        let envelope = Envelope::parse(
            br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t\u0031","arguments":{"x":[1]}}}"#,
        );
        assert!(envelope.is_tool_call());
        assert_eq!(envelope.name.unwrap(), "t1");
        for odd in [
            r#"{"id":1,"method":"tools/call","params":{"name":"t","uri":5}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"t","_meta":{"a":1,"a":1}}}"#,
            r#"{"id":1,"id":1,"method":"ping","method":"tools/call","params":[]}"#,
        ] {
            assert!(Envelope::parse(odd.as_bytes()).is_tool_call(), "{odd}");
        }
    }

    #[test]
    fn the_usual_way_reads_what_the_other_does() {
        let long = format!(
            r#"{{"id":"{}","method":"ping"}}"#,
            "x".repeat(MAX_ID_BYTES + 1)
        );
        for message in [
            r#"{"id":1,"method":"tools/call","params":{"name":"a\u0062","uri":null}}"#,
            r#"{"id":"a","method":"resources/read","params":{"uri":"x:/y","_meta":{}}}"#,
            r#"{"id":2,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"z"}}}"#,
            r#"{"id":{},"method":"ping"}"#,
            r#"{"id":true,"method":"initialize","more":[1]}"#,
            r#"{"id":null,"method":"notifications/initialized"}"#,
            r#"{"method":"notifications/initialized"}"#,
            &long,
        ] {
            let strict = Envelope::from_strict(serde_json::from_str(message).unwrap());
            let any = Envelope::from_members(message.as_bytes());
            assert_eq!(format!("{strict:?}"), format!("{any:?}"), "{message}");
        }
    }

    #[test]
    fn only_what_cannot_be_answered_is_merely_told() {
        for (message, request, told) in [
            (r#"{"id":1,"method":"ping"}"#, true, false),
            (r#"{"id":{},"method":"ping"}"#, true, false),
            (r#"{"method":"notifications/initialized"}"#, false, true),
            (r#"{"id":null,"method":"ping"}"#, false, true),
            (r#"{"id":1,"result":{}}"#, false, true),
            (r#"{"id":1,"method":"ping""#, false, false),
            ("[]", false, false),
            ("{}", false, false),
        ] {
            let envelope = Envelope::parse(message.as_bytes());
            assert_eq!(
                (envelope.is_request(), envelope.is_one_way()),
                (request, told),
                "{message}"
            );
        }
    }

    #[test]
    fn a_result_is_written_in_the_era_of_its_request() {
        let legacy = Envelope::parse(br#"{"id":1,"method":"tools/call","params":{"name":"t"}}"#);
        assert!(
            !legacy
                .write_result(ToolResult::text("x"))
                .contains("resultType")
        );
        let modern = Envelope::parse(
            br#"{"id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        );
        assert!(
            modern
                .write_result(ToolResult::text("x"))
                .contains(r#""resultType":"complete""#)
        );
    }
}
