//! The workup tools as clients list and call them.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;
use wayleave_mcp::{Batch, Caller, Identity, Registry, Server};
use wayleave_model::grant::{Scope, Scopes};
use wayleave_plan::package::Package;
use wayleave_surface::ReadService;
use wayleave_surface::access::Access;
use wayleave_surface::workup;
use wayleave_test::assert_golden;

use crate::workup::fixture::{HARBOUR, harbour, ratified};

/// Sends a request as a client with this access, and returns the answer.
async fn asked(service: &ReadService, access: Access, method: &str, params: Json) -> Json {
    let registry = Registry::new();
    let mapping = ratified(HARBOUR);
    let tools = [
        workup::tool(service).unwrap(),
        workup::tool_for(service, &mapping.dataset).unwrap(),
        workup::check_citations(service).unwrap(),
    ];
    registry.commit(tools.into_iter().fold(Batch::new(), Batch::add_tool));
    let server = Server::new(registry, Identity::new("test", "1"));
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let (read, write) = tokio::io::split(theirs);
    let caller = Caller::new("tester").with_attachment(access);
    tokio::spawn(async move { server.serve_pipe(caller, read, write, stop).await });
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": params }),
    ] {
        write
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }
    loop {
        let line = lines.next_line().await.unwrap().unwrap();
        let message: Json = serde_json::from_str(&line).unwrap();
        if message["id"] == 2 {
            return message;
        }
    }
}

fn builder() -> Access {
    Access {
        package: Arc::new(Package::local()),
        scopes: [Scope::Runtime, Scope::Builder]
            .into_iter()
            .collect::<Scopes>(),
        authenticated: true,
        max_own_tools: None,
    }
}

#[tokio::test]
async fn the_tools_are_listed_like_this() {
    let harbour = harbour().await;
    let listed = asked(&harbour.service, builder(), "tools/list", json!({})).await;
    let tools = serde_json::to_string_pretty(&listed["result"]["tools"]).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/workup/golden/tools.json");
    assert_golden(golden, &format!("{tools}\n"));
}

#[tokio::test]
async fn a_builder_calls_them_and_nobody_else_does() {
    let harbour = harbour().await;
    let service = &harbour.service;
    let own = json!({ "name": "workup_harbour", "arguments": { "entity": "Grey Heron" } });
    let any =
        json!({ "name": "workup", "arguments": { "dataset": "harbour", "entity": "Grey Heron" } });
    let (first, second) = (
        asked(service, builder(), "tools/call", own.clone()).await,
        asked(service, builder(), "tools/call", any.clone()).await,
    );
    let text = &first["result"]["content"][0]["text"];
    assert!(
        text.as_str()
            .unwrap()
            .starts_with("# Ship \"Grey Heron\" [g1]"),
        "{first}"
    );
    assert_eq!(*text, second["result"]["content"][0]["text"]);
    let workup = &first["result"]["structuredContent"]["workup"];
    let check =
        json!({ "name": "check_citations", "arguments": { "note": text, "workup": workup } });
    let report = asked(service, builder(), "tools/call", check.clone()).await;
    assert_eq!(
        report["result"]["structuredContent"]["ok"], true,
        "{report}"
    );

    let token = Access {
        authenticated: true,
        ..Access::local()
    };
    for call in [own, any, check] {
        let denied = asked(service, token.clone(), "tools/call", call.clone()).await;
        assert_eq!(denied["error"]["code"], -32004, "{denied}");
        assert_eq!(denied["error"]["data"]["tool"], call["name"]);
        let denied = asked(service, Access::local(), "tools/call", call).await;
        assert_eq!(denied["error"]["code"], -32001, "{denied}");
    }
    let listed = asked(service, token, "tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"], json!([]));
}
