//! Concurrent requests of one caller on a pipe.

use std::collections::BTreeMap;

use crate::support::{
    LOST, controlled_tool,
    pipe::{Era, Pipe},
    server, text, tool,
};
use serde_json::{Value, json};
use tokio::time::timeout;
use wayleave_mcp::{Allowance, Budget, Caller};

fn alone() -> Caller {
    let allowance = Allowance {
        per_minute: 60_000,
        burst: 1000,
        concurrent: 1,
        streams: 1,
    };
    Caller::new("alice").with_budget(Budget::new(allowance).into())
}

fn request(id: u64, name: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name } })
}

fn is_rate_limited(answer: &Value) -> bool {
    answer["result"]["structuredContent"]["error"]["code"] == "rate_limited"
}

#[tokio::test]
async fn a_call_beyond_those_allowed_at_once_waits_and_what_comes_after_it_is_heard() {
    let (registry, server) = server();
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    registry.add_tool(tool("ok", "ok"));
    let mut client = Pipe::listening_as(&server, Era::Session, alone()).await;
    client.say(request(101, "slow")).await;
    timeout(LOST, slow.running.notified()).await.unwrap();
    // Four wait for the running call; the queue has no room for the fifth.
    for id in 102..=106 {
        client.say(request(id, "ok")).await;
    }
    let refused = client.hear().await;
    assert!(is_rate_limited(&refused), "{refused}");
    // A ping takes no permit and is answered meanwhile, and a waiting request can be cancelled.
    client.ask("ping", json!({})).await.unwrap();
    let given_up = if refused["id"] == 102 { 103 } else { 102 };
    client
        .say(
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": given_up } }),
        )
        .await;
    client.ask("ping", json!({})).await.unwrap();
    slow.go_on.notify_one();
    let mut answers = BTreeMap::new();
    while answers.len() < 4 {
        let answer = client.hear().await;
        let id = answer["id"].as_u64().unwrap();
        assert_ne!(id, given_up, "answered though cancelled: {answer}");
        answers.insert(id, text(&answer["result"]).to_owned());
    }
    assert_eq!(answers.remove(&101).unwrap(), "finished");
    assert!(answers.values().all(|said| said == "ok"), "{answers:?}");
    // What still runs is answered before the server closes the pipe.
    assert_eq!(client.rest().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_call_that_never_gets_its_turn_is_told_so_in_either_era() {
    let (registry, server) = server();
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    registry.add_tool(tool("ok", "ok"));
    for era in [Era::Session, Era::Stateless] {
        let mut client = Pipe::listening_as(&server, era, alone()).await;
        client
            .send("tools/call", json!({ "name": "slow", "arguments": {} }))
            .await;
        timeout(LOST, slow.running.notified()).await.unwrap();
        let refused = client.call("ok", json!({})).await.unwrap();
        let error = &refused["structuredContent"]["error"];
        assert_eq!(error["code"], "rate_limited", "{refused}");
        let refused = client.ask("prompts/get", json!({ "name": "any" })).await;
        assert_eq!(refused.unwrap_err()["code"], -32003);
        drop(client);
        timeout(LOST, slow.ended.notified()).await.unwrap();
    }
}

#[tokio::test]
async fn every_request_is_answered_however_many_are_refused_before_one_is_read() {
    let (_registry, server) = server();
    let mut client = Pipe::listening_as(&server, Era::Session, Caller::anonymous()).await;
    // Far more replies than fit into the write queue; none is read until the last request is sent.
    let many = 2_000;
    let nonsense = (0..many).map(|id| format!(r#"{{"jsonrpc":"1.0","id":{id}}}"#));
    let nonsense: Vec<_> = nonsense.collect();
    client.say_raw(nonsense.join("\n").as_bytes()).await;
    for id in 0..many {
        let answer = client.hear().await;
        assert_eq!(answer["error"]["code"], -32600, "{id}: {answer}");
    }
}

#[tokio::test]
async fn no_more_streams_are_open_on_a_pipe_than_allowed() {
    let (_registry, server) = server();
    let mut client = Pipe::listening_as(&server, Era::Stateless, alone()).await;
    let all = json!({ "notifications": { "toolsListChanged": true } });
    client.send("subscriptions/listen", all).await;
    let acknowledged = client.hear().await;
    assert!(acknowledged["method"].is_string(), "{acknowledged}");
    let refused = client.hear().await;
    assert_eq!(refused["error"]["code"], -32003, "{refused}");
}

#[tokio::test]
async fn whoever_sends_too_much_or_too_deep_is_told_under_the_id_it_waits_for() {
    let (_registry, server) = server();
    let mut client = Pipe::listening_as(&server, Era::Session, Caller::anonymous()).await;
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let long = format!("\"{}\"", "x".repeat(17 * 1024 * 1024));
    for (id, arguments, code) in [(71, deep, -32700), (72, long, -32600)] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"a":{arguments}}}}}}}"#
        );
        client.say_raw(line.as_bytes()).await;
        let answer = client.hear().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(id), &json!(code))
        );
    }
    client.ask("ping", json!({})).await.unwrap();
}
