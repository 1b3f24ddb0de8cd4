//! Tool calls on a pipe: messages before their answer, cancellation, and a client that does not
//! read.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::support::{
    LOST, both, controlled_tool,
    pipe::{Era, Pipe},
    server, text, tool,
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use wayleave_mcp::{Caller, Tool, ToolResult};

/// Time within which a call must stop after its client left. Its pipe gives it one second; the SDK
/// would give it five.
const SOON: Duration = Duration::from_secs(3);

#[tokio::test]
async fn what_a_call_says_and_asks_comes_before_its_answer() {
    let (registry, server) = server();
    let curious = Tool::new("curious", json!({ "type": "object" }), |call| async move {
        call.context.progress(1.0, Some(2.0), None).await;
        let roots = call.context.ask("roots/list", json!({})).await?;
        call.context.progress(2.0, Some(2.0), None).await;
        Ok(ToolResult::text(roots["roots"][0]["uri"].to_string()))
    });
    registry.add_tool(curious.unwrap());
    let mut client = Pipe::listening(&server, Era::Session).await;
    client.ask("ping", json!({})).await.unwrap();
    let asked = json!({ "name": "curious", "_meta": { "progressToken": "p" } });
    let id = client.send("tools/call", asked).await;
    let progress = client.hear().await;
    assert_eq!(progress["params"]["progressToken"], "p", "{progress}");
    let question = client.hear().await;
    assert_eq!(question["method"], "roots/list", "{question}");
    let roots = json!({ "roots": [{ "uri": "file:///here" }] });
    client
        .say(json!({ "jsonrpc": "2.0", "id": question["id"], "result": roots }))
        .await;
    let answer = client.answer(id).await;
    assert_eq!(text(&answer["result"]), "\"file:///here\"");
    assert_eq!(client.heard_so_far(), ["notifications/progress"]);
}

#[tokio::test]
async fn a_call_that_was_given_up_ends_unanswered_and_its_id_is_free() {
    let (registry, server) = server();
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    registry.add_tool(tool("ok", "ok"));
    for mut client in both(&server).await {
        // The second call is typical of all later ones; the first may determine the era.
        client.call("ok", json!({})).await.unwrap();
        let id = client.send("tools/call", json!({ "name": "slow" })).await;
        timeout(LOST, slow.running.notified()).await.unwrap();
        client
            .say(
                json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": { "requestId": id } }),
            )
            .await;
        timeout(LOST, slow.ended.notified()).await.unwrap();
        client.hears_nothing().await;
        client.next_id = id;
        assert_eq!(text(&client.call("ok", json!({})).await.unwrap()), "ok");
    }
}

#[tokio::test]
async fn a_call_still_under_way_when_its_client_leaves_ends_soon() {
    let (registry, server) = server();
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    for mut client in both(&server).await {
        client.send("tools/call", json!({ "name": "slow" })).await;
        timeout(LOST, slow.running.notified()).await.unwrap();
        let ended = async {
            client.leave().await.unwrap();
            slow.ended.notified().await;
        };
        timeout(SOON, ended).await.expect("still under way");
    }
}

#[tokio::test]
async fn whoever_reads_no_answers_is_read_no_longer_and_loses_none() {
    const MANY: u64 = 5_000;
    let (registry, server) = server();
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let large = Tool::new("large", json!({ "type": "object" }), move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(ToolResult::text("x".repeat(8 * 1024))) }
    });
    registry.add_tool(large.unwrap());
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(theirs);
    let serving = tokio::spawn(async move {
        let stop = CancellationToken::new();
        let caller = Caller::anonymous();
        server.serve_pipe(caller, read, write, stop).await
    });
    let (read, mut write) = tokio::io::split(ours);
    let mut sending = tokio::spawn(async move {
        for id in 0..MANY {
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "large", "_meta": crate::support::meta() } });
            let line = format!("{call}\n");
            write.write_all(line.as_bytes()).await.unwrap();
        }
        write
    });
    // Only as many calls run as fit into the buffers in between.
    let mut before = 0;
    loop {
        let sent = timeout(crate::support::SILENCE, &mut sending).await;
        assert!(sent.is_err(), "all was read");
        let now = calls.load(Ordering::SeqCst);
        if now == before {
            break;
        }
        before = now;
    }
    assert!((1..MANY / 2).contains(&before), "{before}");
    let mut lines = BufReader::new(read).lines();
    let mut answered = BTreeSet::new();
    while answered.len() < usize::try_from(MANY).unwrap() {
        let line = timeout(LOST, lines.next_line()).await.unwrap();
        let answer: serde_json::Value = serde_json::from_str(&line.unwrap().unwrap()).unwrap();
        assert!(answered.insert(answer["id"].as_u64().unwrap()), "{answer}");
    }
    drop(sending.await.unwrap());
    drop(lines);
    let outcome = timeout(LOST, serving).await;
    outcome.unwrap().unwrap().unwrap();
}
