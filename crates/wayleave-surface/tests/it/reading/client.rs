//! A client on a pipe that speaks the wire protocol itself.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio_util::sync::{CancellationToken, DropGuard};
use wayleave_mcp::{Batch, Caller, Identity, Registry, Server};
use wayleave_plan::package::Package;
use wayleave_surface::{ReadService, instructions, tools};

pub struct Client {
    lines: Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
    write: tokio::io::WriteHalf<DuplexStream>,
    next: u64,
    pub greeting: Json,
    _stop: DropGuard,
}

impl Client {
    /// Connects a client of this service's tools, under one package.
    pub async fn from_service(service: &ReadService, package: Package) -> Self {
        let package = Arc::new(package);
        let registry = Registry::new();
        let batch = tools(service, move |_| Arc::clone(&package))
            .unwrap()
            .into_iter()
            .fold(Batch::new(), Batch::add_tool);
        registry.commit(batch);
        let mut identity = Identity::new("test", "1");
        identity.instructions = Some(instructions());
        Self::connect(Server::new(registry, identity), Caller::anonymous()).await
    }

    /// Connects a client to this server as this caller.
    pub async fn connect(server: Server, caller: Caller) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let stop = CancellationToken::new();
        let (read, write) = tokio::io::split(theirs);
        let ended = stop.clone();
        tokio::spawn(async move { server.serve_pipe(caller, read, write, ended).await });
        let (read, write) = tokio::io::split(ours);
        let mut client = Self {
            lines: BufReader::new(read).lines(),
            write,
            next: 0,
            greeting: Json::Null,
            _stop: stop.drop_guard(),
        };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        client.greeting = client.ask("initialize", hello).await;
        client
            .say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        client
    }

    async fn say(&mut self, message: Json) {
        self.write
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }

    /// Sends a request that must succeed, and returns its result.
    pub async fn ask(&mut self, method: &str, params: Json) -> Json {
        let asked = self.try_ask(method, params).await;
        asked.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Sends a request, and returns its result or its error.
    pub async fn try_ask(&mut self, method: &str, params: Json) -> Result<Json, Json> {
        self.next += 1;
        let id = self.next;
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        loop {
            let line = self.lines.next_line().await.unwrap().unwrap();
            let message: Json = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return match &message["error"] {
                    Json::Null => Ok(message["result"].clone()),
                    error => Err(error.clone()),
                };
            }
        }
    }

    pub async fn tools(&mut self) -> Json {
        self.ask("tools/list", json!({})).await["tools"].clone()
    }

    pub async fn call(&mut self, tool: &str, arguments: Json) -> Json {
        self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
        .await
    }
}
