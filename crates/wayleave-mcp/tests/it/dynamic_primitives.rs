//! Primitives that come and go: the rules, each with a session client and a stateless client
//! connected at once.

use std::time::Instant;

use crate::support::{
    LOST, SILENCE, both, controlled_tool, names,
    pipe::{Era, Pipe},
    server, text, tool,
};
use serde_json::{Value, json};
use tokio::time::timeout;
use wayleave_mcp::{
    Batch, Caller, Completion, CompletionRef, Prompt, PromptMessage, Registry, Resource,
    ResourceContents, ResourceTemplate, Tool, ToolResult,
};

const TOOLS: &str = "notifications/tools/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const UPDATED: &str = "notifications/resources/updated";

fn resource(uri: &str, says: &'static str) -> Resource {
    Resource::new(uri, "it", move |read| async move {
        Ok(ResourceContents::text(read.uri, "text/plain", says))
    })
    .subscribable()
}

fn template(uri_template: &str, says: Option<&'static str>) -> ResourceTemplate {
    ResourceTemplate::new(uri_template, "it", move |read| async move {
        Ok(says.map(|says| ResourceContents::text(read.uri, "text/plain", says)))
    })
    .unwrap()
}

async fn read(client: &mut Pipe, uri: &str) -> Result<String, Value> {
    let result = client.ask("resources/read", json!({ "uri": uri })).await?;
    Ok(result["contents"][0]["text"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn list_changed_is_declared_for_tools_resources_and_prompts_even_when_empty() {
    let (_, server) = server();
    let mut session = Pipe::raw(&server, Caller::anonymous());
    let told = session.initialize().await;
    let mut stateless = Pipe::listening(&server, Era::Stateless).await;
    let discovered = stateless.ask("server/discover", json!({})).await.unwrap();
    for told in [told, discovered] {
        for list in ["tools", "resources", "prompts"] {
            assert_eq!(
                told["capabilities"][list]["listChanged"], true,
                "{list}: {told}"
            );
        }
    }
}

#[tokio::test]
async fn what_a_notice_announces_is_already_there() {
    let (registry, server) = server();
    let mut clients = both(&server).await;
    registry.add_tool(tool("new", "x"));
    for client in &mut clients {
        assert_eq!(client.hears().await, TOOLS);
        assert_eq!(client.tools().await, ["new"]);
    }
}

#[tokio::test]
async fn a_removed_tool_is_gone_and_calling_it_is_refused_by_name() {
    let (registry, server) = server();
    registry.add_tool(tool("old", "x"));
    let mut clients = both(&server).await;
    registry.remove_tool("old");
    for client in &mut clients {
        assert_eq!(client.hears().await, TOOLS);
        assert_eq!(client.tools().await, Vec::<String>::new());
        let error = client.call("old", json!({})).await.unwrap_err();
        assert_eq!(error["code"], -32602);
        assert!(
            error["message"].as_str().unwrap().contains("`old`"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_call_whose_tool_is_removed_completes() {
    let (registry, server) = server();
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    for mut client in both(&server).await {
        registry.add_tool(slow.tool.clone());
        let id = client.send("tools/call", json!({ "name": "slow" })).await;
        timeout(LOST, slow.running.notified()).await.unwrap();
        registry.remove_tool("slow");
        slow.go_on.notify_one();
        assert_eq!(text(&client.answer(id).await["result"]), "finished");
        assert_eq!(
            client.call("slow", json!({})).await.unwrap_err()["code"],
            -32602
        );
    }
}

#[tokio::test]
async fn adding_a_name_again_replaces_it() {
    let (registry, server) = server();
    registry.add_tool(tool("same", "before"));
    let mut clients = both(&server).await;
    registry.add_tool(tool("same", "after").describe("Another."));
    for client in &mut clients {
        assert_eq!(client.hears().await, TOOLS);
        let list = client.ask("tools/list", json!({})).await.unwrap();
        assert_eq!(names(&list, "tools", "description"), ["Another."]);
        assert_eq!(
            text(&client.call("same", json!({})).await.unwrap()),
            "after"
        );
    }
}

#[tokio::test]
async fn a_batch_of_three_is_one_notice() {
    let (registry, server) = server();
    let mut clients = both(&server).await;
    registry.commit(
        Batch::new()
            .add_tool(tool("a", ""))
            .add_tool(tool("b", ""))
            .add_tool(tool("c", "")),
    );
    for client in &mut clients {
        assert_eq!(client.hears().await, TOOLS);
        client.hears_nothing().await;
        assert_eq!(client.tools().await, ["a", "b", "c"]);
    }
}

#[tokio::test]
async fn a_new_template_changes_the_resource_list_and_makes_its_uris_readable() {
    let (registry, server) = server();
    let mut clients = both(&server).await;
    registry.commit(Batch::new().add_template(template("t://{id}", Some("made"))));
    for client in &mut clients {
        assert_eq!(client.hears().await, RESOURCES);
        let list = client
            .ask("resources/templates/list", json!({}))
            .await
            .unwrap();
        assert_eq!(
            names(&list, "resourceTemplates", "uriTemplate"),
            ["t://{id}"]
        );
        assert_eq!(read(client, "t://7").await.unwrap(), "made");
    }
}

#[tokio::test]
async fn a_fixed_resource_wins_over_a_template_that_matches_it() {
    let (registry, server) = server();
    registry.commit(
        Batch::new()
            .add_template(template("t://{id}", Some("template")))
            .add_resource(resource("t://fixed", "fixed")),
    );
    for client in &mut both(&server).await {
        assert_eq!(read(client, "t://fixed").await.unwrap(), "fixed");
        assert_eq!(read(client, "t://other").await.unwrap(), "template");
    }
}

#[tokio::test]
async fn a_template_that_knows_nothing_of_a_uri_leaves_it_to_the_next() {
    let (registry, server) = server();
    registry.commit(
        Batch::new()
            .add_template(template("t://{a}", None))
            .add_template(template("t://{b}", Some("second"))),
    );
    let [mut session, mut stateless] = both(&server).await;
    for client in [&mut session, &mut stateless] {
        assert_eq!(read(client, "t://7").await.unwrap(), "second");
    }
    registry.commit(Batch::new().remove_template("t://{b}"));
    assert_eq!(
        read(&mut session, "t://7").await.unwrap_err()["code"],
        -32002
    );
    assert_eq!(
        read(&mut stateless, "t://7").await.unwrap_err()["code"],
        -32602
    );
}

#[tokio::test]
async fn completions_come_and_go_without_notice() {
    let (registry, server) = server();
    let prompt = Prompt::new("p", |_| async { Ok(PromptMessage::user("hello")) })
        .argument("who", "Whom to greet");
    registry.commit(Batch::new().add_prompt(prompt));
    let mut clients = both(&server).await;
    let values = Completion::new(CompletionRef::prompt("p"), |completing| async move {
        Ok((0..200)
            .map(|n| format!("{}{n}", completing.value))
            .collect())
    });
    registry.commit(Batch::new().add_completion(values));
    let ask = |name: &str| {
        json!({ "ref": { "type": "ref/prompt", "name": name },
                "argument": { "name": "who", "value": "x" } })
    };
    for client in &mut clients {
        client.hears_nothing().await;
        let found = client.ask("completion/complete", ask("p")).await.unwrap();
        assert_eq!(found["completion"]["values"].as_array().unwrap().len(), 100);
        assert_eq!(found["completion"]["total"], 200);
        assert_eq!(found["completion"]["hasMore"], true);
        let none = client
            .ask("completion/complete", ask("nobody"))
            .await
            .unwrap();
        assert_eq!(none["completion"]["values"], json!([]));
    }
    registry.commit(Batch::new().remove_completion(CompletionRef::prompt("p")));
    for client in &mut clients {
        client.hears_nothing().await;
        let none = client.ask("completion/complete", ask("p")).await.unwrap();
        assert_eq!(none["completion"]["values"], json!([]));
    }
}

#[tokio::test]
async fn a_cursor_survives_changes_and_a_malformed_one_says_so() {
    let (registry, server) = server();
    let many = (0..1500).fold(Batch::new(), |batch, n| {
        batch.add_tool(tool(&format!("t{n:04}"), ""))
    });
    registry.commit(many);
    for client in &mut both(&server).await {
        let first = client.ask("tools/list", json!({})).await.unwrap();
        assert_eq!(first["tools"].as_array().unwrap().len(), 1000);
        let cursor = first["nextCursor"].clone();
        // Also remove the very entry that the cursor names.
        registry.commit(
            Batch::new()
                .remove_tool("t0999")
                .add_tool(tool("t1000b", "")),
        );
        let second = client
            .ask("tools/list", json!({ "cursor": cursor }))
            .await
            .unwrap();
        let second = names(&second, "tools", "name");
        assert_eq!(second.first().map(String::as_str), Some("t1000"));
        assert_eq!(second.len(), 501);
        registry.commit(
            Batch::new()
                .add_tool(tool("t0999", ""))
                .remove_tool("t1000b"),
        );

        for cursor in ["", "!!", "AAAA", &cursor.as_str().unwrap()[1..]] {
            let error = client
                .ask("tools/list", json!({ "cursor": cursor }))
                .await
                .unwrap_err();
            assert_eq!(error["code"], -32602, "{cursor}");
        }
        let elsewhere = client
            .ask("prompts/list", json!({ "cursor": cursor }))
            .await
            .unwrap_err();
        assert!(
            elsewhere["message"]
                .as_str()
                .unwrap()
                .contains("for `tools`"),
            "{elsewhere}"
        );
    }
}

#[tokio::test]
async fn a_subscriber_hears_of_its_uri_once_per_change_and_of_no_other() {
    let (registry, server) = server();
    registry.commit(
        Batch::new()
            .add_resource(resource("r://a", "a"))
            .add_resource(resource("r://b", "b")),
    );
    let mut session = Pipe::listening(&server, Era::Session).await;
    session
        .ask("resources/subscribe", json!({ "uri": "r://a" }))
        .await
        .unwrap();
    session
        .ask("resources/subscribe", json!({ "uri": "r://a" }))
        .await
        .unwrap();
    let mut stateless = Pipe::raw(&server, Caller::anonymous());
    stateless = {
        let mut client = Pipe::listening(&server, Era::Stateless).await;
        let ack = client.listen(json!(["r://a", "r://nowhere"])).await;
        assert_eq!(
            ack["params"]["notifications"]["resourceSubscriptions"],
            json!(["r://a"])
        );
        drop(stateless);
        client
    };
    registry.updated("r://a");
    registry.updated("r://b");
    for client in [&mut session, &mut stateless] {
        let heard = client.hear().await;
        assert_eq!(
            (heard["method"].as_str(), heard["params"]["uri"].as_str()),
            (Some(UPDATED), Some("r://a"))
        );
        client.hears_nothing().await;
    }
    let refused = session
        .ask("resources/subscribe", json!({ "uri": "r://nowhere" }))
        .await;
    assert_eq!(refused.unwrap_err()["code"], -32002);
    for _ in 0..2 {
        session
            .ask("resources/unsubscribe", json!({ "uri": "r://a" }))
            .await
            .unwrap();
    }
    registry.updated("r://a");
    assert_eq!(stateless.hears().await, UPDATED);
    session.hears_nothing().await;
}

#[tokio::test]
async fn adding_with_nobody_connected_is_seen_by_those_who_come() {
    let (registry, server) = server();
    registry.add_tool(tool("early", ""));
    for client in &mut both(&server).await {
        assert_eq!(client.tools().await, ["early"]);
        client.hears_nothing().await;
    }
}

/// A tool that adds a tool named after the call's `name`.
fn adder(registry: &Registry) -> Tool {
    let registry = registry.clone();
    Tool::new("add", json!({ "type": "object" }), move |call| {
        let registry = registry.clone();
        async move {
            registry.add_tool(tool(call.text("name"), ""));
            Ok(ToolResult::text("added"))
        }
    })
    .unwrap()
}

#[tokio::test]
async fn a_handler_that_adds_a_tool_is_answered_after_the_notice() {
    let (registry, server) = server();
    registry.add_tool(adder(&registry));
    for era in [Era::Session, Era::Stateless] {
        let mut client = Pipe::listening(&server, era).await;
        // Make many changes at once, so that notices are still throttled when the next change is
        // made.
        for n in 0..5 {
            let name = format!("{era:?}{n}");
            client.call("add", json!({ "name": name })).await.unwrap();
            assert_eq!(client.heard_so_far(), [TOOLS], "before the reply to {name}");
        }
    }
}

#[tokio::test]
async fn both_of_two_clients_are_notified_once_and_one_leaving_harms_nobody() {
    let (registry, server) = server();
    let [mut session, mut stateless] = both(&server).await;
    registry.add_tool(tool("one", ""));
    for client in [&mut session, &mut stateless] {
        assert_eq!(client.hears().await, TOOLS);
        client.hears_nothing().await;
    }
    session.leave().await.unwrap();
    registry.add_tool(tool("two", "still here"));
    assert_eq!(stateless.hears().await, TOOLS);
    assert_eq!(
        text(&stateless.call("two", json!({})).await.unwrap()),
        "still here"
    );
    let mut session = Pipe::listening(&server, Era::Session).await;
    stateless.leave().await.unwrap();
    registry.commit(
        Batch::new()
            .remove_tool("two")
            .add_prompt(Prompt::new("p", |_| async {
                Ok(PromptMessage::user("hi"))
            })),
    );
    assert_eq!(session.hears().await, TOOLS);
    assert_eq!(session.hears().await, PROMPTS);
}

#[tokio::test]
async fn a_change_that_changes_nothing_commits_nothing_and_notifies_nobody() {
    let (registry, server) = server();
    registry.add_tool(tool("same", "x"));
    let mut clients = both(&server).await;
    let before = registry.revision();
    registry.commit(Batch::new());
    registry.commit(Batch::new().remove_tool("nothing").remove_prompt("nothing"));
    assert_eq!(registry.revision(), before);
    // A new handler behind the same entry is used at once, but changes no list.
    let commit = registry.add_tool(tool("same", "y"));
    assert!(!commit.tools);
    for client in &mut clients {
        client.hears_nothing().await;
        assert_eq!(text(&client.call("same", json!({})).await.unwrap()), "y");
    }
}

/// The names of all tools, page by page.
async fn all_tools(client: &mut Pipe) -> Vec<String> {
    let mut cursor = Value::Null;
    let mut seen = Vec::new();
    loop {
        let page = client
            .ask("tools/list", json!({ "cursor": cursor }))
            .await
            .unwrap();
        seen.extend(names(&page, "tools", "name"));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            return seen;
        }
    }
}

/// Lists the tools at every notice until the last one is there. Returns the number of notices.
async fn notices_of_burst(mut client: Pipe) -> u128 {
    let mut notices = 0;
    loop {
        assert_eq!(client.hears().await, TOOLS);
        notices += 1;
        let seen = all_tools(&mut client).await;
        if seen.last().map(String::as_str) == Some("z_last") {
            assert_eq!(seen.len(), 10_001);
            break;
        }
    }
    // A list may be ahead of its notice.
    while timeout(SILENCE, client.hear()).await.is_ok() {
        notices += 1;
    }
    notices
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_ten_thousand_changes_is_a_few_notices_and_the_last_state_is_seen() {
    let (registry, server) = server();
    let clients = both(&server).await;
    let started = Instant::now();
    // The clients listen on other threads, while changes are still made.
    let clients = clients.map(|client| tokio::spawn(notices_of_burst(client)));
    for n in 0..10_000 {
        registry.add_tool(tool(&format!("t{n:05}"), ""));
    }
    registry.add_tool(tool("z_last", ""));
    let took = started.elapsed();
    for client in clients {
        let notices = client.await.unwrap();
        println!("{notices} notices for 10,001 changes made in {took:?}");
        // At most one notice every 200 ms, and one at the end.
        assert!(
            notices <= 2 + took.as_millis() / 200,
            "{notices} notices in {took:?}"
        );
    }
}
