//! Every kind of message, for every transport and era.

use serde_json::{Value, json};
use wayleave_mcp::RefusalReason;

use crate::support::meta;

/// The id of the message under test. Earlier messages of the conversation have other ids.
pub(crate) const ID: u64 = 4711;

/// A transport in one era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EraTransport {
    StatelessHttp,
    SessionHttp,
    StatelessPipe,
    SessionPipe,
}

pub(crate) const WAYS: [EraTransport; 4] = [
    EraTransport::StatelessHttp,
    EraTransport::SessionHttp,
    EraTransport::StatelessPipe,
    EraTransport::SessionPipe,
];

impl EraTransport {
    pub(crate) fn is_stateless(self) -> bool {
        matches!(self, Self::StatelessHttp | Self::StatelessPipe)
    }

    /// Number of messages that open a conversation.
    pub(crate) fn opening_messages(self) -> usize {
        match self {
            Self::StatelessHttp => 0,
            Self::StatelessPipe => 1,
            Self::SessionHttp | Self::SessionPipe => 2,
        }
    }

    pub(crate) fn is_http(self) -> bool {
        matches!(self, Self::StatelessHttp | Self::SessionHttp)
    }
}

/// The expected outcome of a message.
#[derive(Debug, Clone)]
pub(crate) enum ExpectedOutcome {
    /// A result, whose shape may have room for `_meta` or not.
    Completed {
        meta: bool,
    },
    ToolError,
    Failed,
    Refused(RefusalReason),
    /// Refused for any reason, or answered with an error: which one depends on the transport.
    NotDone,
    /// Any outcome.
    Any,
    /// Runs until its client leaves.
    Open,
    /// Not a request at all.
    Unseen,
}

/// A message as bytes, with the headers that HTTP needs for it.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) body: Vec<u8>,
    pub(crate) method: String,
    pub(crate) named: Option<String>,
    pub(crate) expected: ExpectedOutcome,
}

pub(crate) fn request(
    way: EraTransport,
    method: &str,
    mut params: Value,
    expected: ExpectedOutcome,
) -> Case {
    if way.is_stateless() && params.get("_meta").is_none() {
        params["_meta"] = meta();
    }
    let named = params.get("name").or(params.get("uri"));
    let named = named.and_then(Value::as_str).map(str::to_owned);
    let body = json!({ "jsonrpc": "2.0", "id": ID, "method": method, "params": params });
    Case {
        name: format!("{way:?} {method} {params} {expected:?}"),
        body: body.to_string().into_bytes(),
        method: method.to_owned(),
        named,
        expected,
    }
}

pub(crate) fn raw(way: EraTransport, body: impl Into<Vec<u8>>, expected: ExpectedOutcome) -> Case {
    let body = body.into();
    let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
    Case {
        name: format!("{way:?} {shown} {expected:?}"),
        body,
        method: "tools/call".to_owned(),
        named: Some("ok".to_owned()),
        expected,
    }
}

fn done() -> ExpectedOutcome {
    ExpectedOutcome::Completed { meta: true }
}

fn empty() -> ExpectedOutcome {
    ExpectedOutcome::Completed { meta: false }
}

fn malformed() -> ExpectedOutcome {
    ExpectedOutcome::Refused(RefusalReason::Malformed)
}

/// Every kind of message, successful and refused.
pub(crate) fn cases(way: EraTransport) -> Vec<Case> {
    let mut cases = calls(way);
    cases.extend(reads(way));
    cases.extend(broken(way));
    cases.extend(if way.is_stateless() {
        of_stateless_era(way)
    } else {
        of_session_era(way)
    });
    cases
}

fn calls(way: EraTransport) -> Vec<Case> {
    let call = |params, expected| request(way, "tools/call", params, expected);
    let named = |name: &str, expected| call(json!({ "name": name }), expected);
    // A request with a progress token is not handled on the direct path.
    let mut progress = if way.is_stateless() {
        meta()
    } else {
        json!({})
    };
    progress["progressToken"] = json!("p");
    vec![
        named("ok", done()),
        named("fails", ExpectedOutcome::Failed),
        named("panics", ExpectedOutcome::Failed),
        named("errs", ExpectedOutcome::ToolError),
        named("picky", ExpectedOutcome::ToolError),
        named("unknown", ExpectedOutcome::Failed),
        named("denied", ExpectedOutcome::Failed),
        call(json!({ "name": "ok", "_meta": progress }), done()),
        call(json!({ "name": 7 }), ExpectedOutcome::NotDone),
    ]
}

fn reads(way: EraTransport) -> Vec<Case> {
    let ask = |method: &str, params, expected| request(way, method, params, expected);
    let completed = json!({
        "ref": { "type": "ref/prompt", "name": "p" },
        "argument": { "name": "a", "value": "" }
    });
    vec![
        ask("tools/list", json!({}), done()),
        ask(
            "tools/list",
            json!({ "cursor": "x" }),
            ExpectedOutcome::Failed,
        ),
        ask("tools/list", json!({ "cursor": 7 }), malformed()),
        ask("resources/list", json!({}), done()),
        ask("resources/templates/list", json!({}), done()),
        ask("prompts/list", json!({}), done()),
        ask("resources/read", json!({ "uri": "x:/a" }), done()),
        ask(
            "resources/read",
            json!({ "uri": "x:/b" }),
            ExpectedOutcome::Failed,
        ),
        ask("prompts/get", json!({ "name": "p" }), done()),
        ask(
            "prompts/get",
            json!({ "name": "q" }),
            ExpectedOutcome::Failed,
        ),
        ask("completion/complete", completed, done()),
        ask("no/such", json!({}), ExpectedOutcome::NotDone),
    ]
}

fn broken(way: EraTransport) -> Vec<Case> {
    let long_id = "x".repeat(2000);
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let odd_version = json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": "1999-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
    } });
    let too_long = if way.is_http() { 5 } else { 17 } * 1024 * 1024;
    vec![
        raw(way, "{", malformed()),
        raw(way, "[]", malformed()),
        raw(way, r#"{"jsonrpc":"2.0"}"#, malformed()),
        raw(way, r#"{"id":5}"#, ExpectedOutcome::Unseen),
        raw(
            way,
            r#"{"jsonrpc":"1.0","id":4711,"method":"tools/list"}"#,
            ExpectedOutcome::NotDone,
        ),
        raw(
            way,
            format!(r#"{{"jsonrpc":"2.0","id":"{long_id}","method":"ping"}}"#),
            malformed(),
        ),
        raw(
            way,
            format!(r#"{{"jsonrpc":"2.0","id":4711,"method":"ping","params":{deep}}}"#),
            malformed(),
        ),
        raw(way, vec![b'x'; too_long], malformed()),
        request(way, "prompts/list", odd_version, ExpectedOutcome::NotDone),
    ]
}

fn notification(way: EraTransport, method: &str, params: &Value) -> Case {
    let body = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    raw(way, body.to_string(), empty())
}

fn of_stateless_era(way: EraTransport) -> Vec<Case> {
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut cases = vec![
        request(
            way,
            "prompts/list",
            json!({ "_meta": {} }),
            ExpectedOutcome::NotDone,
        ),
        request(way, "server/discover", json!({}), done()),
        request(way, "ping", json!({}), ExpectedOutcome::NotDone),
        request(way, "subscriptions/listen", filter, ExpectedOutcome::Open),
    ];
    if !way.is_http() {
        let cancelled = json!({ "requestId": 99 });
        cases.push(notification(way, "notifications/cancelled", &cancelled));
    }
    cases
}

fn of_session_era(way: EraTransport) -> Vec<Case> {
    let ask = |method: &str, params, expected| request(way, method, params, expected);
    let cancelled = json!({ "requestId": 99 });
    vec![
        ask("ping", json!({}), done()),
        ask("logging/setLevel", json!({ "level": "info" }), done()),
        ask("resources/subscribe", json!({ "uri": "x:/a" }), done()),
        ask("resources/unsubscribe", json!({ "uri": "x:/a" }), done()),
        ask(
            "subscriptions/listen",
            json!({ "notifications": {} }),
            ExpectedOutcome::NotDone,
        ),
        notification(way, "notifications/initialized", &json!({})),
        notification(way, "notifications/cancelled", &cancelled),
        notification(way, "notifications/odd", &json!({})),
        raw(
            way,
            r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#,
            ExpectedOutcome::Unseen,
        ),
    ]
}

/// Every current and former method, and an unknown one, with valid parameters.
fn methods() -> Vec<(&'static str, Value)> {
    let client = json!({ "name": "test", "version": "0" });
    let initialize =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let complete = json!({
        "ref": { "type": "ref/prompt", "name": "p" },
        "argument": { "name": "a", "value": "" }
    });
    vec![
        ("initialize", initialize),
        ("ping", json!({})),
        ("server/discover", json!({})),
        ("tools/call", json!({ "name": "ok" })),
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "x:/a" })),
        ("resources/subscribe", json!({ "uri": "x:/a" })),
        ("resources/unsubscribe", json!({ "uri": "x:/a" })),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "p" })),
        ("completion/complete", complete),
        ("logging/setLevel", json!({ "level": "info" })),
        ("tasks/get", json!({ "taskId": "t" })),
        ("no/such", json!({})),
        ("notifications/initialized", json!({})),
        ("notifications/cancelled", json!({ "requestId": 99 })),
        (
            "notifications/progress",
            json!({ "progressToken": 1, "progress": 1 }),
        ),
        ("notifications/roots/list_changed", json!({})),
    ]
}

/// Spellings of a message that one parser might accept and another reject.
fn spellings(method: &str, params: &Value) -> Vec<String> {
    let id = format!(r#""id":{ID},"#);
    let mut whole = format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#);
    let mut spelt = vec![
        whole.replace(&id, r#""id":null,"#),
        whole.replace(&id, r#""id":{},"#),
    ];
    if method.starts_with("notifications/") {
        whole = whole.replace(&id, "");
    }
    let params = format!(r#""params":{params}"#);
    let escaped = format!("\\u{:04x}{}", method.as_bytes()[0], &method[1..]);
    spelt.extend([
        whole.replace(&format!(",{params}"), ""),
        whole.replace(&params, r#""params":7"#),
        whole.replace(&params, r#""params":null"#),
        whole.replace(r#""jsonrpc""#, r#""more":1,"jsonrpc""#),
        whole.replace(r#""jsonrpc":"2.0","#, ""),
        whole.replace(r#""method""#, r#""method":"ping","method""#),
        whole.replace(&format!(r#""{method}""#), &format!(r#""{escaped}""#)),
        whole.replace(r#""method""#, r#""id":"text","method""#),
        whole,
    ]);
    spelt
}

/// Every method in every spelling.
pub(crate) fn generated(way: EraTransport) -> Vec<Case> {
    let mut cases = Vec::new();
    for (method, mut params) in methods() {
        if way.is_stateless() {
            params["_meta"] = meta();
        }
        for body in spellings(method, &params) {
            let named = params.get("name").or(params.get("uri"));
            cases.push(Case {
                name: format!("{way:?} {body}"),
                named: named.and_then(Value::as_str).map(str::to_owned),
                method: method.to_owned(),
                body: body.into_bytes(),
                expected: ExpectedOutcome::Any,
            });
        }
    }
    cases
}
