//! A client on a pipe, in either era.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split,
    },
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use wayleave_mcp::{Caller, Server, StdioAuthenticate, StdioError};

use super::{LOST, SESSION, SILENCE, meta};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Era {
    Session,
    Stateless,
}

pub struct Pipe {
    era: Era,
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    heard: VecDeque<Value>,
    pub next_id: u64,
    pub server: JoinHandle<Result<(), StdioError>>,
}

impl Pipe {
    /// A connected client that has sent no message yet.
    pub fn raw(server: &Server, authenticate: impl StdioAuthenticate) -> Self {
        let (ours, theirs) = tokio::io::duplex(256 * 1024);
        let (their_read, their_write) = split(theirs);
        let stop = CancellationToken::new();
        let server = {
            let server = server.clone();
            tokio::spawn(async move {
                server
                    .serve_pipe(authenticate, their_read, their_write, stop)
                    .await
            })
        };
        let (read, write) = split(ours);
        Self {
            era: Era::Session,
            write,
            lines: BufReader::new(read).lines(),
            heard: VecDeque::new(),
            next_id: 1,
            server,
        }
    }

    /// A client that listens for every list change, by the means of its era.
    pub async fn listening(server: &Server, era: Era) -> Self {
        Self::listening_as(server, era, Caller::anonymous()).await
    }

    pub async fn listening_as(server: &Server, era: Era, caller: Caller) -> Self {
        let mut client = Self::raw(server, caller);
        client.era = era;
        match era {
            Era::Session => {
                client.initialize().await;
            }
            Era::Stateless => {
                client.listen(json!([])).await;
            }
        }
        client
    }

    pub async fn initialize(&mut self) -> Value {
        let result = self
            .ask(
                "initialize",
                json!({
                    "protocolVersion": SESSION,
                    "capabilities": {},
                    "clientInfo": { "name": "test", "version": "0" }
                }),
            )
            .await
            .unwrap();
        self.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        result
    }

    /// Opens a listening stream and returns its acknowledgment.
    pub async fn listen(&mut self, uris: Value) -> Value {
        let id = self.next_id;
        self.send(
            "subscriptions/listen",
            json!({ "notifications": {
                "toolsListChanged": true,
                "promptsListChanged": true,
                "resourcesListChanged": true,
                "resourceSubscriptions": uris,
            }}),
        )
        .await;
        let ack = self.hear().await;
        assert_eq!(
            ack["method"], "notifications/subscriptions/acknowledged",
            "{ack}"
        );
        assert_eq!(
            ack["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            id
        );
        ack
    }

    /// Sends a line as given.
    pub async fn say_raw(&mut self, line: &[u8]) {
        self.write.write_all(line).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    pub async fn say(&mut self, message: Value) {
        self.say_raw(message.to_string().as_bytes()).await;
    }

    /// Sends a request without waiting for its answer; returns its id.
    pub async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if self.era == Era::Stateless {
            params["_meta"] = meta();
        }
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    /// The next line of any kind; `None` when the server closed the pipe.
    pub async fn line(&mut self) -> Option<Value> {
        let line = timeout(LOST, self.lines.next_line())
            .await
            .expect("nothing came")
            .unwrap()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("not json: {line}")))
    }

    /// The answer to request `id`; notifications that come before it are stored.
    pub async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.line().await.expect("server closed");
            if message.get("method").is_some() {
                self.heard.push_back(message);
            } else {
                assert_eq!(message["id"], id, "unexpected {message}");
                return message;
            }
        }
    }

    pub async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params).await;
        let message = self.answer(id).await;
        match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"].clone()),
        }
    }

    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Value> {
        self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
        .await
    }

    pub async fn tools(&mut self) -> Vec<String> {
        let result = self.ask("tools/list", json!({})).await.unwrap();
        super::names(&result, "tools", "name")
    }

    /// Closes this end, and returns all unread messages.
    pub async fn rest(mut self) -> Vec<Value> {
        self.write.shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(line) = self.line().await {
            rest.push(line);
        }
        rest
    }

    /// The next notification, stored or new.
    pub async fn hear(&mut self) -> Value {
        match self.heard.pop_front() {
            Some(message) => message,
            None => self.line().await.expect("server closed"),
        }
    }

    /// The next notification's method.
    pub async fn hears(&mut self) -> String {
        let message = self.hear().await;
        message["method"]
            .as_str()
            .unwrap_or_else(|| panic!("not a notification: {message}"))
            .to_owned()
    }

    /// Methods of the notifications received before an answer, without waiting for more.
    pub fn heard_so_far(&mut self) -> Vec<String> {
        self.heard
            .drain(..)
            .map(|message| message["method"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Checks that no message follows.
    pub async fn hears_nothing(&mut self) {
        assert_eq!(self.heard, Vec::<Value>::new());
        if let Ok(line) = timeout(SILENCE, self.lines.next_line()).await {
            panic!("expected silence, heard {line:?}");
        }
    }

    /// Closes this end and waits for the server to end.
    pub async fn leave(self) -> Result<(), StdioError> {
        let Self {
            mut write,
            server,
            lines,
            ..
        } = self;
        write.shutdown().await.unwrap();
        let served = timeout(LOST, server)
            .await
            .expect("server did not end")
            .unwrap();
        drop(lines);
        served
    }
}
