//! A session client on a pipe that counts the notices it receives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
    split,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use wayleave_mcp::Caller;
use wayleave_model::grant::Scope;
use wayleave_plan::package::Package;
use wayleave_server::Deployment;
use wayleave_surface::access::Access;

/// Timeout of waits that only a broken server exceeds.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Client {
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    next: u64,
    /// Number of notices received, by method.
    pub(crate) heard: BTreeMap<String, usize>,
    _stop: DropGuard,
}

/// A caller who may read everything and build.
pub(crate) fn builder() -> Caller {
    Caller::new("tok_1")
        .with_view("builder")
        .with_attachment(Access {
            package: Arc::new(Package::local()),
            scopes: [Scope::Runtime, Scope::Builder].into_iter().collect(),
            authenticated: true,
            max_own_tools: None,
        })
}

impl Client {
    pub(crate) async fn connect(deployment: &Deployment) -> Self {
        Self::with(deployment, builder()).await
    }

    pub(crate) async fn with(deployment: &Deployment, caller: Caller) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (their_read, their_write) = split(theirs);
        let stop = CancellationToken::new();
        let (server, stopped) = (deployment.server().clone(), stop.clone());
        tokio::spawn(async move {
            server
                .serve_pipe(caller, their_read, their_write, stopped)
                .await
        });
        let (read, write) = split(ours);
        let mut client = Self {
            write,
            lines: BufReader::new(read).lines(),
            next: 0,
            heard: BTreeMap::new(),
            _stop: stop.drop_guard(),
        };
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        client.ask("initialize", params).await.unwrap();
        client
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        client
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.write.write_all(line.as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> Value {
        let line = tokio::time::timeout(REPLY_TIMEOUT, self.lines.next_line()).await;
        let message: Value = serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap();
        if let Some(method) = message.get("method").and_then(Value::as_str) {
            *self.heard.entry(method.to_owned()).or_default() += 1;
        }
        message
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        loop {
            let message = self.line().await;
            if message["id"] == id && message.get("method").is_none() {
                return match message.get("result") {
                    Some(result) => Ok(result.clone()),
                    None => Err(message["error"].clone()),
                };
            }
        }
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask("tools/call", params).await.unwrap()
    }

    /// Waits for the next notice that this list changed.
    pub(crate) async fn hears(&mut self, list: &str) {
        let method = format!("notifications/{list}/list_changed");
        let before = self.heard.get(&method).copied().unwrap_or_default();
        while self.heard.get(&method).copied().unwrap_or_default() == before {
            self.line().await;
        }
    }

    /// Waits for the next notice that a resource was updated.
    pub(crate) async fn hears_of_update(&mut self) {
        let method = "notifications/resources/updated";
        let before = self.heard.get(method).copied().unwrap_or_default();
        while self.heard.get(method).copied().unwrap_or_default() == before {
            self.line().await;
        }
    }

    pub(crate) fn heard_of(&self, list: &str) -> usize {
        let method = format!("notifications/{list}/list_changed");
        self.heard.get(&method).copied().unwrap_or_default()
    }

    /// The row of a dataset in `list_datasets`, by column.
    pub(crate) async fn dataset(&mut self, name: &str) -> BTreeMap<String, Value> {
        let listed = self.call("list_datasets", json!({})).await;
        let data = &listed["structuredContent"]["data"];
        let fields = data["fields"].as_array().unwrap().iter();
        let fields = fields.map(|field| field.as_str().unwrap().to_owned());
        let mut rows = data["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row[0] == name).unwrap();
        fields
            .zip(row.as_array().unwrap().iter().cloned())
            .collect()
    }

    /// The title of the first record of a dataset.
    pub(crate) async fn title(&mut self, dataset: &str) -> Value {
        let id = format!("{dataset}/things:1");
        let fetched = self.call("fetch", json!({ "id": id })).await;
        fetched["structuredContent"]["title"].clone()
    }
}
