//! Answers to messages that are not carried out: broken JSON, batches, invalid messages, spent
//! budgets.

use serde_json::{Map, Value, json};

use crate::{
    RpcError, ToolResult,
    envelope::{
        Envelope, Fault,
        unparsed::{MAX_JSON_DEPTH, is_too_deep, outermost_id},
    },
    sdk::convert,
};

/// The error for a message that the SDK does not accept, and the message's id, if it has one.
pub(crate) fn diagnose(message: &[u8], envelope: &Envelope<'_>) -> (RpcError, Value) {
    if is_too_deep(message) {
        let why = format!("json nested deeper than {MAX_JSON_DEPTH} levels");
        return (RpcError::new(RpcError::PARSE, why), outermost_id(message));
    }
    let error = match envelope.fault() {
        Some(Fault::Syntax { line, column }) => RpcError::new(
            RpcError::PARSE,
            format!("not valid json at line {line} column {column}"),
        ),
        Some(Fault::Batch) => RpcError::new(
            RpcError::INVALID_REQUEST,
            "batches are accepted only in revision 2025-03-26, with 1 to 64 messages",
        ),
        Some(Fault::NoMessage) | None => {
            RpcError::new(RpcError::INVALID_REQUEST, "not a json-rpc 2.0 request")
        }
    };
    (error, envelope.id.clone())
}

/// A tool's result as the answer to a request, in the request's era, with an observer's additions
/// to its `_meta`.
pub(crate) fn tool_result(
    envelope: &Envelope<'_>,
    mut result: ToolResult,
    added: Map<String, Value>,
) -> String {
    if !added.is_empty() {
        result.meta.get_or_insert_default().extend(added);
    }
    let mut body = convert::tool_result_json(result);
    if envelope.is_stateless() {
        body.insert("resultType".to_owned(), json!("complete"));
    } else {
        body.remove("resultType");
    }
    json!({ "jsonrpc": "2.0", "id": envelope.id, "result": body }).to_string()
}

/// A JSON-RPC error response.
pub(crate) fn response(error: &RpcError, id: &Value) -> Value {
    let mut body = Map::from_iter([
        ("code".to_owned(), error.code.into()),
        ("message".to_owned(), Value::from(&*error.message)),
    ]);
    if let Some(data) = &error.data {
        body.insert("data".to_owned(), data.clone());
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosed(message: &str) -> (RpcError, Value) {
        let message = message.as_bytes();
        diagnose(message, &Envelope::parse(message))
    }

    fn check(message: &str, code: i32, id: &Value) {
        let (error, found) = diagnosed(message);
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
        assert!(diagnosed(&deep).0.message.contains("128"));
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

    #[test]
    fn a_result_is_written_in_the_era_of_its_request() {
        let result = |message: &str| {
            let envelope = Envelope::parse(message.as_bytes());
            tool_result(&envelope, ToolResult::text("x"), Map::new())
        };
        let legacy = result(r#"{"id":1,"method":"tools/call","params":{"name":"t"}}"#);
        assert!(!legacy.contains("resultType"));
        let modern = result(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        );
        assert!(modern.contains(r#""resultType":"complete""#));
    }
}
