//! Answers to what is not even a request: broken JSON, batches, messages without sense.

use serde_json::{Value, json};

use crate::RpcError;

/// The deepest JSON the parser follows.
pub(crate) const MAX_JSON_DEPTH: usize = 128;

/// Why `message`, which does not parse as one JSON-RPC message, is refused, and the id to refuse
/// it under when it has one.
pub(crate) fn diagnose(message: &[u8]) -> (RpcError, Value) {
    let parsed: Result<Value, _> = serde_json::from_slice(message);
    match parsed {
        Err(error) if error.to_string().contains("recursion limit") => (
            RpcError::new(
                RpcError::PARSE,
                format!("json nested deeper than {MAX_JSON_DEPTH} levels"),
            ),
            outermost_id(message),
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

/// The id of a message that is too deep or too long to be read, as far as it is there: on a pipe
/// nobody whose id is not in the answer knows that it is one. Null where none is found.
pub(crate) fn outermost_id(message: &[u8]) -> Value {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = message.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let rest = message.get(at..).unwrap_or_default();
                let Some(end) = end_of_text(rest) else { break };
                let after = rest.get(end..).unwrap_or_default().trim_ascii_start();
                if depth == 1
                    && rest.starts_with(b"\"id\"")
                    && let Some(value) = after.strip_prefix(b":")
                {
                    return scalar(value.trim_ascii_start());
                }
                at += end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Value::Null
}

/// Where the JSON text ends that `rest` begins with.
fn end_of_text(rest: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', rest.get(at..)?)?;
        match rest.get(at) {
            Some(b'"') => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// The text or number, short enough to be repeated, that `rest` begins with.
fn scalar(rest: &[u8]) -> Value {
    let end = match rest.first() {
        Some(b'"') => end_of_text(rest),
        _ => rest.iter().position(|byte| matches!(byte, b',' | b'}')),
    };
    let text = end.filter(|end| *end <= crate::envelope::MAX_ID_BYTES);
    text.and_then(|end| serde_json::from_slice::<Value>(rest.get(..end)?).ok())
        .filter(|id| id.is_string() || id.is_number())
        .unwrap_or_default()
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
    fn nesting_beyond_the_limit_says_so_to_whoever_asked() {
        let deep = format!("{}1{}", "[".repeat(129), "]".repeat(129));
        assert!(diagnose(deep.as_bytes()).0.message.contains("128"));
        for (message, id) in [
            (format!(r#"{{"id":7,"params":{deep}}}"#), json!(7)),
            (
                format!(r#"{{"params":{deep}, "id" : "a\"b" }}"#),
                json!("a\"b"),
            ),
            (
                format!(r#"{{"params":{{"id":1,"a":{deep}}},"id":2}}"#),
                json!(2),
            ),
            (
                format!(r#"{{"a":"\"id\":1","params":{deep}}}"#),
                Value::Null,
            ),
            (
                format!(r#"{{"id":{{"x":1}},"params":{deep}}}"#),
                Value::Null,
            ),
            (deep.clone(), Value::Null),
        ] {
            check(&message, RpcError::PARSE, &id);
        }
    }

    #[test]
    fn of_a_message_cut_short_the_id_is_found_where_it_is_there() {
        for (message, id) in [
            (r#"{"id":7,"x":"aaa"#, json!(7)),
            (r#"{"x":"aaa"#, Value::Null),
            (r#"{"id""#, Value::Null),
            (r#"{"id":"#, Value::Null),
            (r#"{"id":"a\"#, Value::Null),
            (r#"{"id":12"#, Value::Null),
        ] {
            assert_eq!(outermost_id(message.as_bytes()), id, "{message}");
        }
    }
}
