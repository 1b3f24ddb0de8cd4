//! The JSON-RPC error a request is answered with.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// A JSON-RPC error: the request was not carried out.
///
/// A tool that ran and failed answers with [`ToolResult::error`](crate::ToolResult::error)
/// instead, so that the model sees it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// The JSON-RPC code.
    pub code: i32,
    /// One line, lower-case, without a secret.
    pub message: Cow<'static, str>,
    /// The same facts as structured data.
    pub data: Option<Value>,
}

impl RpcError {
    /// Arguments or names are wrong.
    pub const INVALID_PARAMS: i32 = -32602;
    /// The server failed; `data.trace_id` identifies the log entry.
    pub const INTERNAL: i32 = -32603;
    /// The body is not JSON.
    pub const PARSE: i32 = -32700;
    /// The JSON is not a request this server takes.
    pub const INVALID_REQUEST: i32 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The request has no authorization, or its authorization has ended; `data.reason` says why.
    pub const UNAUTHENTICATED: i32 = -32001;
    /// No such resource, for protocol revisions before 2026-07-28 (later ones: `-32602`).
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// The caller has exceeded its budget.
    pub const BUDGET: i32 = -32003;
    /// The client did not declare a capability the request needs.
    pub const MISSING_CAPABILITY: i32 = -32021;

    /// An error with any code.
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Adds structured data.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Adds an observer's entries to `data._meta`. Data that is not an object stays unchanged.
    #[must_use]
    pub(crate) fn with_meta(mut self, added: Map<String, Value>) -> Self {
        add_meta(&mut self.data, added);
        self
    }

    /// `-32602`.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// The error for a subscription to a URI with a query, where only `whole` is subscribable.
    pub fn query_not_subscribable(whole: &str) -> Self {
        Self::invalid_params(format!(
            "a filter or page cannot be subscribed to: subscribe to `{whole}`, and read this URI \
             again when that changes"
        ))
        .with_data(json!({ "reason": "query_not_subscribable", "subscribe_to": whole }))
    }

    /// The resource does not exist, or not for this caller.
    pub fn resource_not_found(uri: &str) -> Self {
        Self::new(
            Self::RESOURCE_NOT_FOUND,
            format!("unknown resource `{}`", excerpt(uri)),
        )
        .with_data(json!({ "uri": excerpt(uri) }))
    }

    /// The client did not declare `capability`, for instance `sampling`.
    pub fn missing_capability(capability: &str) -> Self {
        Self::new(
            Self::MISSING_CAPABILITY,
            format!("the client does not declare `{capability}`"),
        )
        .with_data(json!({ "requiredCapabilities": { capability: {} } }))
    }

    /// The call cannot be recorded, so it is not served. For observers. Over HTTP without a session
    /// it is a `503`.
    pub fn unrecorded() -> Self {
        let message = "calls cannot be recorded and are refused; try again later";
        Self::new(Self::INTERNAL, message)
            .with_data(json!({ "reason": "audit_unavailable", "retryable": true }))
    }

    /// The client cancelled the request.
    pub(crate) fn cancelled() -> Self {
        Self::new(Self::INVALID_REQUEST, "request cancelled")
    }

    /// Whether it has this code and message.
    pub(crate) fn is(&self, code: i32, message: &str) -> bool {
        self.code == code && self.message == message
    }

    /// The authorization of a request was revoked while the request ran.
    pub(crate) fn revoked() -> Self {
        let why = "authentication failed: the token was revoked";
        Self::new(Self::UNAUTHENTICATED, why).with_data(json!({ "reason": "revoked_token" }))
    }

    /// The authorization of a request expired while the request ran.
    pub(crate) fn expired() -> Self {
        let why = "authentication failed: the authorization has expired";
        Self::new(Self::UNAUTHENTICATED, why).with_data(json!({ "reason": "expired_token" }))
    }

    /// `-32602` for an unknown name; `near` is the most similar known one.
    pub(crate) fn unknown(kind: &str, name: &str, near: Option<&str>) -> Self {
        let name = excerpt(name);
        match near {
            Some(near) => {
                Self::invalid_params(format!("unknown {kind} `{name}`; did you mean `{near}`?"))
                    .with_data(json!({ "did_you_mean": near }))
            }
            None => Self::invalid_params(format!("unknown {kind} `{name}`; see `{kind}s/list`")),
        }
    }

    /// `-32603` with a fresh trace id, which is also logged with `cause`.
    pub fn internal(cause: &str) -> Self {
        let trace_id = uuid::Uuid::new_v4().simple().to_string();
        tracing::error!(%trace_id, cause, "internal error");
        Self::new(Self::INTERNAL, "internal error").with_data(json!({ "trace_id": trace_id }))
    }
}

/// Adds entries to the `_meta` of an error's data, if the data is an object or absent.
pub(crate) fn add_meta(data: &mut Option<Value>, added: Map<String, Value>) {
    if added.is_empty() {
        return;
    }
    if let Value::Object(members) = data.get_or_insert_with(|| json!({}))
        && let Value::Object(meta) = members.entry("_meta").or_insert_with(|| json!({}))
    {
        meta.extend(added);
    }
}

/// A caller's own text, shortened and made safe to repeat: characters that would move a cursor,
/// break a line or end a quotation are replaced.
pub(crate) fn excerpt(text: &str) -> Cow<'_, str> {
    const MAX_EXCERPT_CHARS: usize = 120;
    let harmless = |c: char| (' '..='~').contains(&c) && c != '`';
    if text.len() <= MAX_EXCERPT_CHARS && text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut shown: String = text
        .chars()
        .take(MAX_EXCERPT_CHARS)
        .map(|c| match c {
            '`' => '\'',
            c if harmless(c) || c.is_alphanumeric() => c,
            _ => char::REPLACEMENT_CHARACTER,
        })
        .collect();
    if text.chars().nth(MAX_EXCERPT_CHARS).is_some() {
        shown.push('…');
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observer_adds_to_data_that_are_an_object_or_absent_and_to_no_others() {
        let added = || Map::from_iter([("x/y".to_owned(), json!("1"))]);
        let error = |data: Option<Value>| {
            let mut error = RpcError::invalid_params("no");
            error.data = data;
            error.with_meta(added()).data
        };
        assert_eq!(error(None), Some(json!({ "_meta": { "x/y": "1" } })));
        assert_eq!(
            error(Some(json!({ "a": 1 }))),
            Some(json!({ "a": 1, "_meta": { "x/y": "1" } }))
        );
        assert_eq!(error(Some(json!([1]))), Some(json!([1])));
        let plain = RpcError::invalid_params("no");
        assert_eq!(plain.clone().with_meta(Map::new()), plain);
    }

    #[test]
    fn what_is_repeated_is_short_and_moves_no_cursor() {
        assert_eq!(excerpt("query_records"), "query_records");
        assert_eq!(excerpt("größe"), "größe");
        assert_eq!(
            excerpt("a\u{202e}b\u{1b}[31m`\n"),
            "a\u{fffd}b\u{fffd}[31m'\u{fffd}"
        );
        assert_eq!(excerpt(&"ü".repeat(200)), format!("{}…", "ü".repeat(120)));
    }
}
