//! Clients that speak the wire protocol themselves, so that tests control every byte sent.

pub mod connection;
pub mod http;
pub mod pipe;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Notify;
use wayleave_mcp::{Identity, Registry, Server, Tool, ToolResult};

/// Timeout of waits that only a lost event can exceed.
pub const LOST: Duration = Duration::from_secs(10);
/// Time in which an unwanted notice would arrive.
pub const SILENCE: Duration = Duration::from_millis(400);

pub const STATELESS: &str = "2026-07-28";
pub const SESSION: &str = "2025-11-25";

/// A client of each era, both listening.
pub async fn both(server: &Server) -> [pipe::Pipe; 2] {
    [
        pipe::Pipe::listening(server, pipe::Era::Session).await,
        pipe::Pipe::listening(server, pipe::Era::Stateless).await,
    ]
}

pub fn server() -> (Registry, Server) {
    let registry = Registry::new();
    let server = Server::new(registry.clone(), Identity::new("test", "1.0.0"));
    (registry, server)
}

/// A tool that returns the text `says`.
pub fn tool(name: &str, says: &'static str) -> Tool {
    Tool::new(
        name.to_owned(),
        json!({ "type": "object" }),
        move |_| async move { Ok(ToolResult::text(says)) },
    )
    .unwrap()
}

/// `_meta` of a stateless request.
pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
    })
}

/// The names in a list result.
pub fn names(result: &Value, list: &str, key: &str) -> Vec<String> {
    result[list]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it[key].as_str().unwrap().to_owned())
        .collect()
}

pub fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text in {result}"))
}

pub struct OnDrop(Arc<Notify>);

/// Notifies when the returned guard is dropped.
pub fn on_drop(notify: Arc<Notify>) -> OnDrop {
    OnDrop(notify)
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A tool that a test controls.
pub struct ControlledTool {
    pub tool: Tool,
    /// Notified when a call is running.
    pub running: Arc<Notify>,
    /// Lets a running call finish.
    pub go_on: Arc<Notify>,
    /// Notified when a call has ended in any way.
    pub ended: Arc<Notify>,
}

/// Creates a tool whose calls run until released, and then return `finished`.
pub fn controlled_tool(name: &str) -> ControlledTool {
    let [running, go_on, ended] = std::array::from_fn(|_| Arc::new(Notify::new()));
    let strings = [running.clone(), go_on.clone(), ended.clone()];
    let tool = Tool::new(name.to_owned(), json!({ "type": "object" }), move |_| {
        let [running, go_on, ended] = strings.clone();
        async move {
            let _ended = OnDrop(ended);
            running.notify_one();
            go_on.notified().await;
            Ok(ToolResult::text("finished"))
        }
    })
    .unwrap();
    ControlledTool {
        tool,
        running,
        go_on,
        ended,
    }
}
