//! Serving one client over standard input and output.
//!
//! Nothing but JSON-RPC goes to standard output, no port is bound, and when the client goes away
//! the server is done at once.

use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use rmcp::{
    RoleServer, ServiceExt as _,
    model::{ClientNotification, Extensions, GetExtensions as _, JsonRpcMessage},
    service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::Mutex,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Admit, Caller, Era, RpcError, Server, TurnedAway,
    admit::Hello,
    asked::{self, Asked},
    budget::Spent,
    calls::{self, Calls, Host},
    door::Turns,
    plain, quick,
    server::{Keeper, Shared},
    who::Who,
    wire_error,
};

/// The longest line taken.
const LONGEST: usize = 16 * 1024 * 1024;
/// Lines that may be waiting to be written beside the conversation. Beyond it no more is read: who
/// does not listen is not listened to.
const MOST_ASIDES: usize = 64;
/// How long calls still running may go on after the client closed our input.
const LAST_CALLS: Duration = Duration::from_secs(1);

/// Serving over stdio failed.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The first message did not begin a conversation.
    #[error("the client did not begin with a request: {reason}")]
    Handshake {
        /// What came instead.
        reason: String,
    },
    /// The serving task died.
    #[error("the serving task failed: {reason}")]
    Task {
        /// Why.
        reason: String,
    },
}

impl Server {
    /// Serves the client on the other end of standard input and output until it goes away or
    /// `stop` is cancelled.
    pub async fn serve_stdio(
        &self,
        admit: impl Admit,
        stop: CancellationToken,
    ) -> Result<(), StdioError> {
        let (read, write) = rmcp::transport::io::stdio_pipes();
        self.serve_pipe(admit, read, write, stop).await
    }

    /// Serves one client over any pair of byte streams, a JSON-RPC message a line.
    pub async fn serve_pipe(
        &self,
        admit: impl Admit,
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        stop: CancellationToken,
    ) -> Result<(), StdioError> {
        let keeper = Keeper::default();
        // Its end is the end of everything that listens through this pipe.
        let gone = keeper.draining.clone();
        let always = admit.always();
        let asked = always.is_none();
        // One that is asked for is replaced before the first message is handed over.
        let who = Who::new(always.unwrap_or_else(|| Arc::new(Caller::anonymous())));
        let door = Arc::new(self.door(who.clone(), &keeper, Turns::TakenHere));
        let host = Arc::new(OnceLock::new());
        let guest = Guest {
            admit: asked.then(|| Arc::new(admit) as Arc<dyn Admit>),
            who,
        };
        let write = Arc::new(Mutex::new(write));
        let lines = Lines {
            shared: self.0.clone(),
            guest,
            read: BufReader::with_capacity(64 * 1024, read),
            line: Vec::new(),
            whole: false,
            discarding: false,
            calls: Calls::new(host.clone(), write.clone()),
            write,
            asides: JoinSet::new(),
            era: None,
            gone: gone.clone(),
        };
        let serving = async {
            let running = match door.clone().serve(lines).await {
                Ok(running) => running,
                // It came, said nothing, and left: that is its right.
                Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
                Err(error) => {
                    return Err(StdioError::Handshake {
                        reason: error.to_string(),
                    });
                }
            };
            let peer = running.peer().clone();
            let _ = host.set(Host { door, peer });
            running
                .waiting()
                .await
                .map(|_| ())
                .map_err(|error| StdioError::Task {
                    reason: error.to_string(),
                })
        };
        tokio::select! {
            served = serving => served,
            () = async { gone.cancelled().await; tokio::time::sleep(LAST_CALLS).await } => Ok(()),
            () = async { stop.cancelled().await; gone.cancel(); std::future::pending().await } => Ok(()),
        }
    }
}

/// The client at the other end.
struct Guest {
    /// Says who it is at each message; none for one who is always the same.
    admit: Option<Arc<dyn Admit>>,
    who: Who,
}

impl Guest {
    /// Who sent `message`.
    async fn identify(&self, message: &[u8]) -> Result<(), TurnedAway> {
        let Some(admit) = &self.admit else {
            return Ok(());
        };
        if let Hello::Some(bearer) = Hello::of(message) {
            admit.begin(bearer.as_deref()).await?;
        }
        let caller = admit.caller().await?;
        self.who.came(&caller);
        Ok(())
    }
}

/// JSON-RPC messages, one a line.
struct Lines<R, W> {
    shared: Arc<Shared>,
    guest: Guest,
    read: BufReader<R>,
    /// Kept across calls: `receive` may be dropped in the middle of a line.
    line: Vec<u8>,
    /// Whether the line is whole, and waits until it is known who sent it.
    whole: bool,
    discarding: bool,
    calls: Calls<W>,
    write: Arc<Mutex<W>>,
    asides: JoinSet<()>,
    /// The era of the conversation, once a request has settled it.
    era: Option<Era>,
    gone: CancellationToken,
}

/// Its sender is not talked to any longer.
struct HungUp;

enum Line {
    Whole,
    TooLong { id: Value },
    End,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Reads up to the end of a line. Dropped half-way, it goes on where it was.
    async fn next_line(&mut self) -> io::Result<Line> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                return Ok(Line::End);
            }
            let (chunk, ended) = match memchr::memchr(b'\n', available) {
                Some(at) => (available.get(..at).unwrap_or_default(), true),
                None => (available, false),
            };
            let consumed = chunk.len() + usize::from(ended);
            let too_long = !self.discarding && self.line.len() + chunk.len() > LONGEST;
            // What has been read of it may tell whom to answer.
            let refused = too_long.then(|| wire_error::outermost_id(&self.line));
            if too_long {
                self.line = Vec::new();
            } else if !self.discarding {
                self.line.extend_from_slice(chunk);
            }
            self.read.consume(consumed);
            let was_discarding = self.discarding;
            self.discarding = (was_discarding || too_long) && !ended;
            if let Some(id) = refused {
                return Ok(Line::TooLong { id });
            }
            if ended && !was_discarding {
                return Ok(Line::Whole);
            }
        }
    }

    /// Writes a line beside the conversation, in its own task: a reader dropped half-way must
    /// not leave half a line behind.
    fn aside(&mut self, mut line: Vec<u8>) {
        let write = self.write.clone();
        self.asides.spawn(async move {
            line.push(b'\n');
            if let Err(error) = calls::put(&write, &line).await {
                tracing::debug!(%error, "line not written");
            }
        });
    }

    /// Waits until there is room for one line more beside the conversation.
    async fn room(&mut self) {
        while self.asides.try_join_next().is_some() {}
        while self.asides.len() >= MOST_ASIDES {
            self.asides.join_next().await;
        }
        self.calls.room().await;
    }

    fn refuse(&mut self, error: &RpcError, id: &Value) {
        self.aside(wire_error::response(error, id).to_string().into_bytes());
    }

    /// Finds out who sent the line, and hands its message over when it is one for the SDK.
    async fn take(&mut self) -> Result<Option<RxJsonRpcMessage<RoleServer>>, HungUp> {
        if self.line.iter().all(u8::is_ascii_whitespace) {
            self.line.clear();
            return Ok(None);
        }
        // Until here nothing is lost when it is dropped; the line is still there.
        let identified = self.guest.identify(&self.line).await;
        self.whole = false;
        match identified {
            Ok(()) => Ok(self.message()),
            Err(TurnedAway { error, hang_up }) => {
                let line = std::mem::take(&mut self.line);
                let asked = Asked::of(&line);
                if asked.is_request() {
                    self.refuse(&error, &asked.id);
                }
                if hang_up { Err(HungUp) } else { Ok(None) }
            }
        }
    }

    /// The message on the line, when it is one for the SDK.
    fn message(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let line = std::mem::take(&mut self.line);
        let caller = Arc::clone(&self.guest.who.caller());
        if let Some(Err(spent)) = caller.budget().map(|budget| budget.spend())
            && self.spent(spent, &line)
        {
            return None;
        }
        if let Some(era) = self.era
            && quick::looks_like_list(&line)
            && let Some(answer) = quick::answer(&self.shared, &caller, &line, era, None)
        {
            self.aside(answer);
            self.reuse(line);
            return None;
        }
        if self.called(&line, &caller) {
            self.reuse(line);
            return None;
        }
        let Ok(mut message) = serde_json::from_slice(&line) else {
            let (error, id) = wire_error::diagnose(&line);
            self.refuse(&error, &id);
            return None;
        };
        self.reuse(line);
        match &mut message {
            // The SDK ends the conversation over a notification that comes first.
            JsonRpcMessage::Notification(_) if self.era.is_none() => return None,
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.calls.give_up(id);
                }
            }
            JsonRpcMessage::Request(request) if asked::is_too_long(&request.id) => {
                self.refuse(&asked::id_too_long(), &Value::Null);
                return None;
            }
            JsonRpcMessage::Request(request) => {
                if self.era.is_none() {
                    self.era = era_of_first(&request.request);
                }
                if self.guest.admit.is_some() {
                    request.request.extensions_mut().insert(caller);
                }
            }
            _ => {}
        }
        Some(message)
    }

    /// Carries the call on the line out, if it is one and the SDK need not do it; says whether so.
    fn called(&mut self, line: &[u8], caller: &Arc<Caller>) -> bool {
        // The first request settles what the conversation is like, and the SDK does that.
        if self.era.is_none() {
            return false;
        }
        let Some(call) = plain::read(line).filter(|call| !asked::is_too_long(&call.id)) else {
            return false;
        };
        let mut extensions = Extensions::new();
        if self.guest.admit.is_some() {
            extensions.insert(caller.clone());
        }
        self.calls.begin(call, extensions)
    }

    /// Refuses what one sends who has asked too much; says whether it could be refused.
    fn spent(&mut self, spent: Spent, line: &[u8]) -> bool {
        let asked = Asked::of(line);
        if asked.is_told() {
            return false;
        }
        if asked.is_tool_call() {
            self.aside(asked.result(spent.result()).into_bytes());
        } else {
            self.refuse(&spent.error(), &asked.id);
        }
        true
    }

    fn reuse(&mut self, mut line: Vec<u8>) {
        line.clear();
        self.line = line;
    }
}

/// The era a first request settles; probes settle none.
fn era_of_first(request: &rmcp::model::ClientRequest) -> Option<Era> {
    use rmcp::model::{ClientRequest, GetMeta as _};
    match request {
        ClientRequest::InitializeRequest(_) => Some(Era::Session),
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => None,
        request => {
            let version = request.get_meta().protocol_version()?;
            (!version.has_initialize()).then_some(Era::Stateless)
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = self.write.clone();
        async move { calls::send(&write, &item, None).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Each line is answered with one at most.
            self.room().await;
            if self.whole {
                match self.take().await {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => self.whole = false,
                    Err(HungUp) => break,
                }
            }
            match self.next_line().await {
                Ok(Line::Whole) => self.whole = true,
                Ok(Line::TooLong { id }) => {
                    let error = RpcError::new(
                        RpcError::INVALID_REQUEST,
                        format!("message longer than {LONGEST} bytes"),
                    );
                    self.refuse(&error, &id);
                }
                Ok(Line::End) => break,
                Err(error) => {
                    tracing::debug!(%error, "standard input failed");
                    break;
                }
            }
        }
        // A refusal is the last word, and is heard.
        while self.asides.join_next().await.is_some() {}
        self.gone.cancel();
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.calls.finish(LAST_CALLS).await;
        while self.asides.join_next().await.is_some() {}
        self.write.lock().await.shutdown().await
    }
}
