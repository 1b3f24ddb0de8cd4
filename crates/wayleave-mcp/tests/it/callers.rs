//! Visibility of tools to callers, and the outcomes of calls.

use crate::support::{
    LOST, both, controlled_tool,
    pipe::{Era, Pipe},
    server, text, tool,
};
use serde_json::{Value, json};
use tokio::time::timeout;
use wayleave_mcp::{Caller, RpcError, Tool, ToolResult, Visibility};

const TOOLS: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn a_caller_neither_sees_calls_nor_hears_of_what_is_hidden_from_it() {
    let (registry, server) = server();
    let secret =
        tool("secret", "told").visible(Visibility::when(|caller| caller.subject() == "alice"));
    for era in [Era::Session, Era::Stateless] {
        registry.remove_tool("secret");
        let mut alice = Pipe::listening_as(&server, era, Caller::new("alice")).await;
        let mut mallory = Pipe::listening_as(&server, era, Caller::new("mallory")).await;
        registry.add_tool(secret.clone());
        assert_eq!(alice.hears().await, TOOLS);
        assert_eq!(alice.tools().await, ["secret"]);
        mallory.hears_nothing().await;
        assert_eq!(mallory.tools().await, Vec::<String>::new());
        let hidden = mallory.call("secret", json!({})).await.unwrap_err();
        registry.remove_tool("secret");
        let missing = mallory.call("secret", json!({})).await.unwrap_err();
        assert_eq!(hidden, missing, "hidden and missing are one answer");
        mallory.hears_nothing().await;
    }
}

#[tokio::test]
async fn a_misspelt_name_is_answered_with_the_one_that_was_meant_and_never_with_a_hidden_one() {
    let (registry, server) = server();
    registry.add_tool(tool("query_records", "told"));
    let alices = Visibility::when(|caller| caller.subject() == "alice");
    registry.add_tool(tool("querry_record", "told").visible(alices));
    for (who, meant) in [("alice", "querry_record"), ("bob", "query_records")] {
        let mut client = Pipe::listening_as(&server, Era::Session, Caller::new(who)).await;
        for name in ["querry_recordz", "Querry_Recordx"] {
            let error = client.call(name, json!({})).await.unwrap_err();
            assert_eq!(error["code"], -32602);
            assert_eq!(error["data"]["did_you_mean"], meant, "{who}: {error}");
            assert!(
                error["message"].as_str().unwrap().contains(meant),
                "{error}"
            );
        }
        for name in ["select", "\u{202e}", &"query_records".repeat(1000)] {
            let error = client.call(name, json!({})).await.unwrap_err();
            assert_eq!(error["data"], Value::Null, "{error}");
            let message = error["message"].as_str().unwrap();
            assert!(
                message.contains("tools/list") && message.len() < 200,
                "{message}"
            );
        }
    }
}

#[tokio::test]
async fn an_entry_shown_to_others_too_is_no_change_to_whoever_sees_it_already() {
    let (registry, server) = server();
    let shown_to = |names: &'static [&'static str]| {
        tool("shared", "x").visible(Visibility::when(|caller| names.contains(&caller.subject())))
    };
    for era in [Era::Session, Era::Stateless] {
        registry.add_tool(shown_to(&["alice"]));
        let mut alice =
            Pipe::listening_as(&server, era, Caller::new("alice").with_view("alice")).await;
        let mut bob = Pipe::listening_as(&server, era, Caller::new("bob").with_view("bob")).await;
        registry.add_tool(shown_to(&["alice", "bob"]));
        assert_eq!(bob.hears().await, TOOLS);
        assert_eq!(bob.tools().await, ["shared"]);
        alice.hears_nothing().await;
        registry.add_tool(shown_to(&["alice"]));
        assert_eq!(bob.hears().await, TOOLS);
        assert_eq!(bob.tools().await, Vec::<String>::new());
        alice.hears_nothing().await;
        registry.remove_tool("shared");
    }
}

#[tokio::test]
async fn a_denied_caller_is_told_what_it_lacks_and_the_handler_does_not_run() {
    let (registry, server) = server();
    let dev = Tool::new("dev", json!({ "type": "object" }), |_| async {
        panic!("must not run");
        #[allow(unreachable_code, reason = "names the type")]
        Ok(ToolResult::text(""))
    })
    .unwrap()
    .visible(Visibility::rule(|_| {
        wayleave_mcp::Decision::Deny(
            RpcError::new(-32004, "scope denied: dev requires dev").with_data(
                json!({ "tool": "dev", "required_scope": "dev", "caller_scopes": ["runtime"] }),
            ),
        )
    }));
    registry.add_tool(dev);
    for client in &mut both(&server).await {
        assert_eq!(client.tools().await, Vec::<String>::new());
        let error = client.call("dev", json!({})).await.unwrap_err();
        assert_eq!(
            (&error["code"], &error["data"]["required_scope"]),
            (&json!(-32004), &json!("dev"))
        );
    }
}

#[tokio::test]
async fn arguments_are_validated_before_the_handler_runs() {
    let (registry, server) = server();
    let strict = Tool::new(
        "strict",
        json!({
            "type": "object",
            "properties": { "n": { "type": "integer", "minimum": 1 }, "s": { "type": "string" } },
            "required": ["n"],
            "additionalProperties": false
        }),
        |call| async move { Ok(ToolResult::text(call.arguments["n"].to_string())) },
    )
    .unwrap();
    registry.add_tool(strict);
    for client in &mut both(&server).await {
        assert_eq!(
            text(&client.call("strict", json!({ "n": 3 })).await.unwrap()),
            "3"
        );
        for (arguments, keyword) in [
            (json!({}), "required"),
            (json!({ "n": 0 }), "minimum"),
            (json!({ "n": "3" }), "type"),
            (
                json!({ "n": 3, "extra": "hush-hush" }),
                "additionalProperties",
            ),
            (json!({ "n": 3, "s": ["hush-hush"] }), "type"),
        ] {
            let result = client.call("strict", arguments).await.unwrap();
            assert_eq!(result["isError"], true);
            let error = &result["structuredContent"]["error"];
            assert_eq!(error["violations"][0]["keyword"], keyword, "{error}");
            assert_eq!(
                serde_json::from_str::<Value>(text(&result)).unwrap(),
                *error
            );
            assert!(
                !error.to_string().contains("hush-hush"),
                "a value came back: {error}"
            );
        }
    }
}

#[tokio::test]
async fn a_tool_that_checks_its_arguments_gets_them_as_they_came() {
    let (registry, server) = server();
    let schema = json!({
        "type": "object",
        "properties": { "n": { "type": "integer" } },
        "additionalProperties": false
    });
    let own_words = Tool::new("own_words", schema.clone(), |call| async move {
        let names: Vec<_> = call.arguments.keys().cloned().collect();
        Ok(ToolResult::error(format!("what is {}?", names.join(" "))))
    })
    .unwrap()
    .checking_arguments();
    registry.add_tool(own_words);
    for client in &mut both(&server).await {
        let listed = client.ask("tools/list", json!({})).await.unwrap();
        assert_eq!(listed["tools"][0]["inputSchema"], schema);
        let result = client.call("own_words", json!({ "n": "x", "m": 1 })).await;
        assert_eq!(text(&result.unwrap()), "what is n m?");
    }
}

#[tokio::test]
async fn a_panicking_handler_is_answered_with_a_trace_id_and_the_server_goes_on() {
    let (registry, server) = server();
    let broken = Tool::new("broken", json!({ "type": "object" }), |call| async move {
        assert!(!call.arguments.is_empty(), "a secret in a panic");
        Ok(ToolResult::text("fine"))
    })
    .unwrap();
    registry.add_tool(broken);
    for client in &mut both(&server).await {
        let error = client.call("broken", json!({})).await.unwrap_err();
        assert_eq!(error["code"], -32603);
        assert_eq!(error["data"]["trace_id"].as_str().unwrap().len(), 32);
        assert!(!error.to_string().contains("secret"), "{error}");
        assert_eq!(
            text(&client.call("broken", json!({ "a": 1 })).await.unwrap()),
            "fine"
        );
    }
}

#[tokio::test]
async fn a_client_that_cancels_has_its_handler_dropped() {
    let (registry, server) = server();
    let endless = controlled_tool("endless");
    registry.add_tool(endless.tool);
    let mut client = Pipe::listening(&server, Era::Session).await;
    let id = client
        .send("tools/call", json!({ "name": "endless" }))
        .await;
    timeout(LOST, endless.running.notified()).await.unwrap();
    client
        .say(json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": { "requestId": id }
        }))
        .await;
    timeout(LOST, endless.ended.notified()).await.unwrap();
}
