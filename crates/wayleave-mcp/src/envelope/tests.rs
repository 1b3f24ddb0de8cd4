use serde_json::json;

use super::*;
use crate::{
    request::{PlainRequest, Request},
    sdk::model::{
        CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, GetMeta as _, JsonRpcMessage,
        RequestMetaObject,
    },
};

fn parse(message: &str) -> Envelope<'_> {
    Envelope::parse(message.as_bytes())
}

#[test]
fn what_is_asked_is_read_whatever_else_the_message_holds() {
    let envelope = parse(
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t\u0031","arguments":{"x":[1]}}}"#,
    );
    assert!(envelope.is_tool_call());
    assert!(envelope.is_plain());
    assert_eq!(envelope.name(), Some("t1"));
    for odd in [
        r#"{"id":1,"method":"tools/call","params":{"name":"t","uri":5}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"t","_meta":{"a":1,"a":1}}}"#,
        r#"{"id":1,"id":1,"method":"ping","method":"tools/call","params":[]}"#,
    ] {
        let envelope = parse(odd);
        assert!(envelope.is_tool_call(), "{odd}");
        assert!(!envelope.is_plain(), "{odd}");
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
        let envelope = parse(message);
        assert_eq!(
            (envelope.is_request(), envelope.is_one_way()),
            (request, told),
            "{message}"
        );
    }
}

#[test]
fn an_id_that_is_too_long_is_neither_repeated_nor_plain() {
    let long = "x".repeat(MAX_ID_BYTES + 1);
    let message = format!(r#"{{"jsonrpc":"2.0","id":"{long}","method":"ping"}}"#);
    let envelope = parse(&message);
    assert!(envelope.is_request() && envelope.id_is_too_long && !envelope.is_plain());
    assert_eq!(envelope.id, Value::Null);
}

#[test]
fn the_era_is_told_in_full_or_not_at_all() {
    let with = |meta: &str| {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{{{meta}}}}}}}"#
        );
        parse(&message).era()
    };
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    assert_eq!(with(""), Some(Era::Session));
    assert_eq!(with(capabilities), Some(Era::Session));
    assert_eq!(
        with(&format!("{version},{capabilities}")),
        Some(Era::Stateless)
    );
    assert_eq!(with(version), None);
    let other = version.replace("2026-07-28", "1999-01-01");
    assert_eq!(with(&format!("{other},{capabilities}")), None);
}

#[test]
fn a_cancellation_names_the_request_it_gives_up() {
    let given_up = |message: &str| parse(message).cancelled_request();
    let number = r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
    assert_eq!(given_up(number), Some(RequestId::Number(7)));
    let text = number.replace('7', "\"a\"");
    assert_eq!(given_up(&text), Some(RequestId::String("a".into())));
    assert_eq!(given_up(&number.replace("cancelled", "odd")), None);
    assert_eq!(given_up(r#"{"method":"notifications/cancelled"}"#), None);
}

#[test]
fn only_an_initialize_carries_a_bearer() {
    #[derive(Debug, PartialEq)]
    enum Says<'b> {
        NoInitialize,
        NoBearer,
        Bearer(&'b str),
    }
    use Says::{Bearer, NoBearer, NoInitialize};
    fn check(message: &str, expected: &Says<'_>) {
        let envelope = parse(message);
        let bearer = envelope.bearer();
        let says = match &bearer {
            _ if !envelope.is_initialize() => NoInitialize,
            None => NoBearer,
            Some(bearer) => Bearer(bearer),
        };
        assert_eq!(&says, expected, "{message}");
    }
    let with =
        r#"{"method":"initialize","params":{"clientInfo":{"authorization":{"bearer":"b"}}}}"#;
    check(with, &Bearer("b"));
    check(r#"{"method":"initialize","params":{}}"#, &NoBearer);
    check(r#"{"method":"initialize"}"#, &NoBearer);
    check(&with.replace("\"b\"", "7"), &Bearer(""));
    check(&with.replace("initialize", "tools/list"), &NoInitialize);
    check(r#"{"method":"notifications/initialized"}"#, &NoInitialize);
    check("initialize", &NoInitialize);
    check(
        &with.replace("\"initialize", "\"\\u0069nitialize"),
        &Bearer("b"),
    );
    // A bearer that can be read in two ways is wrong either way.
    for (one, two) in [
        (
            r#""method":"initialize""#,
            r#""method":"initialize","method":"initialize""#,
        ),
        (r#"{"bearer":"b"}"#, r#"{"bearer":"b"},"authorization":{}"#),
        (r#"{"clientInfo""#, r#"{"clientInfo":{},"clientInfo""#),
        (
            r#""params":{"clientInfo""#,
            r#""params":5,"x":{"clientInfo""#,
        ),
    ] {
        let twice = with.replace(one, two);
        assert_ne!(twice, with);
        check(&twice, &Bearer(""));
    }
}

/// The call as the SDK parses it, if it does.
fn parsed_by_sdk(message: &str) -> Option<(RequestId, CallToolRequestParams, RequestMetaObject)> {
    let JsonRpcMessage::Request(request) =
        serde_json::from_str::<ClientJsonRpcMessage>(message).ok()?
    else {
        return None;
    };
    let meta = request.request.get_meta().clone();
    let ClientRequest::CallToolRequest(call) = request.request else {
        return None;
    };
    Some((request.id, call.params, meta))
}

#[test]
fn a_call_is_read_as_the_sdk_reads_it() {
    for params in [
        r#"{"name":"t"}"#,
        r#"{"name":"t","arguments":{"a":[1,{"b":null}],"c":1.5e300,"d":"\u00fc"}}"#,
        r#"{"name":"t","arguments":{},"_meta":{"progressToken":7,"x":{"y":1}}}"#,
        r#"{"_meta":{"a":"b"},"name":"t\n"}"#,
        r#"{"name":"t","requestState":"s","inputResponses":{"k":{"action":"accept"}}}"#,
        r#"{"name":"t","more":[1]}"#,
    ] {
        for id in ["1", "\"a\"", "-5"] {
            let message =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
            let envelope = parse(&message);
            let (by_sdk_id, by_sdk, by_sdk_meta) = parsed_by_sdk(&message).unwrap();
            assert_eq!(envelope.request_id(), Some(by_sdk_id), "{message}");
            let plain = PlainRequest::from_envelope(&envelope).unwrap();
            assert_eq!(plain.meta, by_sdk_meta, "{message}");
            let Request::CallTool(mut params) = plain.request else {
                panic!("no call: {message}");
            };
            params.meta = None;
            assert_eq!(params, by_sdk, "{message}");
        }
    }
}

#[test]
fn whatever_is_unusual_about_a_call_is_left_to_the_sdk() {
    for message in [
        r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"t"}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"t"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"tools/call","params":{"name":"t"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","name":"t"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","result":{},"params":{"name":"t"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"no/such","params":{"name":"tools/call"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"t"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{"roots":5}}}}"#,
    ] {
        assert!(
            PlainRequest::from_envelope(&parse(message)).is_none(),
            "{message}"
        );
    }
}

#[test]
fn facts_of_a_message_are_those_an_observer_is_told() {
    let envelope = parse(
        r#"{"id":2,"method":"resources/read","params":{"uri":"x:/y","name":null,"_meta":{}}}"#,
    );
    assert_eq!(envelope.uri(), Some("x:/y"));
    assert_eq!(envelope.name(), None);
    assert_eq!(
        (envelope.method(), &envelope.id),
        ("resources/read", &json!(2))
    );
}
