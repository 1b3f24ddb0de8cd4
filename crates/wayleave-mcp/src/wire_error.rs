//! Answers to what is not even a request: broken JSON, batches, messages without sense.

use serde_json::{Value, json};

use crate::RpcError;

/// The deepest JSON the parser follows.
pub(crate) const DEEPEST: usize = 128;

/// Why `message`, which does not parse as one JSON-RPC message, is refused, and the id to refuse
/// it under when it has one.
pub(crate) fn diagnose(message: &[u8]) -> (RpcError, Value) {
    let parsed: Result<Value, _> = serde_json::from_slice(message);
    match parsed {
        Err(error) if error.to_string().contains("recursion limit") => (
            RpcError::new(
                RpcError::PARSE,
                format!("json nested deeper than {DEEPEST} levels"),
            ),
            Value::Null,
        ),
        Err(error) => (
            RpcError::new(
                RpcError::PARSE,
                format!(
                    "not valid json at line {} column {}",
                    error.line(),
                    error.column()
                ),
            ),
            Value::Null,
        ),
        Ok(Value::Array(_)) => (
            RpcError::new(
                RpcError::INVALID_REQUEST,
                "batches are not supported, send one message",
            ),
            Value::Null,
        ),
        Ok(value) => {
            let id = value
                .get("id")
                .filter(|id| id.is_string() || id.is_number())
                .cloned();
            (
                RpcError::new(RpcError::INVALID_REQUEST, "not a json-rpc 2.0 request"),
                id.unwrap_or(Value::Null),
            )
        }
    }
}

/// A JSON-RPC error response.
pub(crate) fn response(error: &RpcError, id: &Value) -> Value {
    let mut body = json!({ "code": error.code, "message": error.message });
    if let (Some(data), Some(body)) = (&error.data, body.as_object_mut()) {
        body.insert("data".to_owned(), data.clone());
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, code: i32, id: &Value) {
        let (error, found) = diagnose(message.as_bytes());
        assert_eq!((error.code, &found), (code, id), "{message}");
    }

    #[test]
    fn broken_json_is_a_parse_error_and_nonsense_an_invalid_request() {
        check("{", RpcError::PARSE, &Value::Null);
        check("\u{1}", RpcError::PARSE, &Value::Null);
        check(&"[".repeat(200), RpcError::PARSE, &Value::Null);
        check("[]", RpcError::INVALID_REQUEST, &Value::Null);
        check("17", RpcError::INVALID_REQUEST, &Value::Null);
        check(r#"{"id":7}"#, RpcError::INVALID_REQUEST, &json!(7));
        check(r#"{"id":{"a":1}}"#, RpcError::INVALID_REQUEST, &Value::Null);
    }

    #[test]
    fn nesting_beyond_the_limit_says_so() {
        let deep = format!("{}1{}", "[".repeat(129), "]".repeat(129));
        assert!(diagnose(deep.as_bytes()).0.message.contains("128"));
    }
}
