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
    Admit, Caller, Carrier, Era, RefusalReason, RpcError, Server, TurnedAway,
    budget::BudgetExceeded,
    call_parser,
    caller_cell::CallerCell,
    envelope::{self, Envelope},
    list_cache,
    observation::{self, Observation},
    pipe_calls::{self, PipeCalls, PipeSession},
    server::{ServerState, Shutdown},
    stdio_auth::InitializeProbe,
    turn::TurnPolicy,
    wire_error,
};

/// The longest line taken.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Lines that may be waiting to be written beside the conversation. Beyond it no more is read: who
/// does not listen is not listened to.
const MAX_PENDING_WRITES: usize = 64;
/// How long calls still running may go on after the client closed our input.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

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
        let shutdown = Shutdown::default();
        // Its end is the end of everything that listens through this pipe.
        let ended = shutdown.draining.clone();
        let always = admit.always();
        let envelope = always.is_none();
        // One that is asked for is replaced before the first message is handed over.
        let caller_cell = CallerCell::new(always.unwrap_or_else(|| Arc::new(Caller::anonymous())));
        let handler =
            Arc::new(self.sdk_handler(caller_cell.clone(), &shutdown, TurnPolicy::Acquire));
        let session = Arc::new(OnceLock::new());
        let client = StdioPeer {
            admit: envelope.then(|| Arc::new(admit) as Arc<dyn Admit>),
            caller_cell,
        };
        let write = Arc::new(Mutex::new(write));
        let lines = LineTransport {
            shared: self.0.clone(),
            client,
            read: BufReader::with_capacity(64 * 1024, read),
            line: Vec::new(),
            whole: false,
            discarding: false,
            calls: PipeCalls::new(session.clone(), write.clone()),
            write,
            pending_writes: JoinSet::new(),
            era: None,
            ended: ended.clone(),
        };
        let serving = async {
            let running = match handler.clone().serve(lines).await {
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
            let _ = session.set(PipeSession { handler, peer });
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
            () = async { ended.cancelled().await; tokio::time::sleep(FINISH_TIMEOUT).await } => Ok(()),
            () = async { stop.cancelled().await; ended.cancel(); std::future::pending().await } => Ok(()),
        }
    }
}

/// The client at the other end.
struct StdioPeer {
    /// Says who it is at each message; none for one who is always the same.
    admit: Option<Arc<dyn Admit>>,
    caller_cell: CallerCell,
}

impl StdioPeer {
    /// Who sent `message`.
    async fn identify(&self, message: &[u8]) -> Result<(), TurnedAway> {
        let Some(admit) = &self.admit else {
            return Ok(());
        };
        if let InitializeProbe::Some(bearer) = InitializeProbe::parse(message) {
            admit.begin(bearer.as_deref()).await?;
        }
        let caller = admit.caller().await?;
        self.caller_cell.replace(&caller);
        Ok(())
    }
}

/// JSON-RPC messages, one a line.
struct LineTransport<R, W> {
    shared: Arc<ServerState>,
    client: StdioPeer,
    read: BufReader<R>,
    /// Kept across calls: `receive` may be dropped in the middle of a line.
    line: Vec<u8>,
    /// Whether the line is whole, and waits until it is known who sent it.
    whole: bool,
    discarding: bool,
    calls: PipeCalls<W>,
    write: Arc<Mutex<W>>,
    pending_writes: JoinSet<()>,
    /// The era of the conversation, once a request has settled it.
    era: Option<Era>,
    ended: CancellationToken,
}

/// Its sender is not talked to any longer.
struct PeerRejected;

enum LineEnd {
    Whole,
    TooLong { id: Value },
    End,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Reads up to the end of a line. Dropped half-way, it goes on where it was.
    async fn next_line(&mut self) -> io::Result<LineEnd> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                return Ok(LineEnd::End);
            }
            let (chunk, ended) = match memchr::memchr(b'\n', available) {
                Some(at) => (available.get(..at).unwrap_or_default(), true),
                None => (available, false),
            };
            let consumed = chunk.len() + usize::from(ended);
            let too_long = !self.discarding && self.line.len() + chunk.len() > MAX_LINE_BYTES;
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
                return Ok(LineEnd::TooLong { id });
            }
            if ended && !was_discarding {
                return Ok(LineEnd::Whole);
            }
        }
    }

    /// Writes a line beside the conversation, in its own task: a reader dropped half-way must
    /// not leave half a line behind.
    fn spawn_write(&mut self, mut line: Vec<u8>) {
        let write = self.write.clone();
        self.pending_writes.spawn(async move {
            line.push(b'\n');
            if let Err(error) = pipe_calls::write_line(&write, &line).await {
                tracing::debug!(%error, "line not written");
            }
        });
    }

    /// Waits until there is room for one line more beside the conversation.
    async fn wait_for_room(&mut self) {
        while self.pending_writes.try_join_next().is_some() {}
        while self.pending_writes.len() >= MAX_PENDING_WRITES {
            self.pending_writes.join_next().await;
        }
        self.calls.wait_for_room().await;
    }

    fn refuse(&mut self, error: &RpcError, id: &Value) {
        self.spawn_write(wire_error::response(error, id).to_string().into_bytes());
    }

    /// Finds out who sent the line, and hands its message over when it is one for the SDK.
    async fn identify_line(
        &mut self,
    ) -> Result<Option<RxJsonRpcMessage<RoleServer>>, PeerRejected> {
        if self.line.iter().all(u8::is_ascii_whitespace) {
            self.line.clear();
            return Ok(None);
        }
        // Until here nothing is lost when it is dropped; the line is still there.
        let identified = self.client.identify(&self.line).await;
        self.whole = false;
        let observation = self.observe();
        match identified {
            Ok(()) => Ok(self.sdk_message(observation)),
            Err(TurnedAway { error, hang_up }) => {
                observation::refuse(observation.as_deref(), RefusalReason::Authorization);
                let line = std::mem::take(&mut self.line);
                let envelope = Envelope::parse(&line);
                if envelope.is_request() {
                    self.refuse(&error, &envelope.id);
                }
                if hang_up { Err(PeerRejected) } else { Ok(None) }
            }
        }
    }

    /// The observation of the message on the line, if anybody observes.
    fn observe(&self) -> Option<Arc<Observation>> {
        let observation = self.shared.observe(Carrier::Pipe, self.era)?;
        observation.set_message(&self.line);
        Some(observation)
    }

    /// The message on the line, when it is one for the SDK.
    fn sdk_message(
        &mut self,
        observation: Option<Arc<Observation>>,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        let line = std::mem::take(&mut self.line);
        let caller = Arc::clone(&self.client.caller_cell.caller());
        if let Some(observation) = &observation {
            observation.set_caller(&caller);
        }
        if let Some(Err(exceeded)) = caller.budget().map(|budget| budget.spend())
            && self.refuse_over_budget(exceeded, &line)
        {
            observation::refuse(observation.as_deref(), RefusalReason::Budget);
            return None;
        }
        if let Some(era) = self.era
            && list_cache::looks_like_list(&line)
            && let Some(answer) = list_cache::answer(
                &self.shared,
                &caller,
                &line,
                era,
                None,
                observation.as_deref(),
            )
        {
            self.spawn_write(answer);
            self.recycle(line);
            return None;
        }
        if self.begin_call(&line, &caller, observation.as_ref()) {
            self.recycle(line);
            return None;
        }
        let Ok(mut message) = serde_json::from_slice(&line) else {
            let (error, id) = wire_error::diagnose(&line);
            observation::refuse(observation.as_deref(), RefusalReason::Malformed);
            self.refuse(&error, &id);
            return None;
        };
        self.recycle(line);
        match &mut message {
            // The SDK ends the conversation over a notification that comes first.
            JsonRpcMessage::Notification(_) if self.era.is_none() => return None,
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.calls.cancel(id);
                }
                if let Some(observation) = observation {
                    observation.handed_over();
                }
            }
            JsonRpcMessage::Request(request) if envelope::is_too_long(&request.id) => {
                observation::refuse(observation.as_deref(), RefusalReason::Malformed);
                self.refuse(&envelope::id_too_long(), &Value::Null);
                return None;
            }
            JsonRpcMessage::Request(request) => {
                if self.era.is_none() {
                    self.era = era_of_first(&request.request);
                }
                if self.client.admit.is_some() {
                    request.request.extensions_mut().insert(caller);
                }
                if let Some(observation) = observation {
                    observation.set_era(self.era);
                    if self.era.is_none() && is_ping(&request.request) {
                        // Before the handshake the SDK answers it without a handler.
                        observation.complete();
                    }
                    request.request.extensions_mut().insert(observation);
                }
            }
            _ => {}
        }
        Some(message)
    }

    /// Begins the tool call on the line, unless the line is no call or needs the SDK. Returns whether
    /// it did.
    fn begin_call(
        &mut self,
        line: &[u8],
        caller: &Arc<Caller>,
        observation: Option<&Arc<Observation>>,
    ) -> bool {
        // The first request settles what the conversation is like, and the SDK does that.
        if self.era.is_none() {
            return false;
        }
        let Some(call) = call_parser::parse(line).filter(|call| !envelope::is_too_long(&call.id))
        else {
            return false;
        };
        let mut extensions = Extensions::new();
        if self.client.admit.is_some() {
            extensions.insert(caller.clone());
        }
        if let Some(observation) = observation {
            extensions.insert(Arc::clone(observation));
        }
        self.calls.begin(call, extensions)
    }

    /// Refuses what one sends who has asked too much; says whether it could be refused.
    fn refuse_over_budget(&mut self, exceeded: BudgetExceeded, line: &[u8]) -> bool {
        let envelope = Envelope::parse(line);
        if envelope.is_one_way() {
            return false;
        }
        if envelope.is_tool_call() {
            self.spawn_write(envelope.write_result(exceeded.result()).into_bytes());
        } else {
            self.refuse(&exceeded.error(), &envelope.id);
        }
        true
    }

    fn recycle(&mut self, mut line: Vec<u8>) {
        line.clear();
        self.line = line;
    }
}

fn is_ping(request: &rmcp::model::ClientRequest) -> bool {
    matches!(request, rmcp::model::ClientRequest::PingRequest(_))
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

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
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
        async move { pipe_calls::write_message(&write, &item, None).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Each line is answered with one at most.
            self.wait_for_room().await;
            if self.whole {
                match self.identify_line().await {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => self.whole = false,
                    Err(PeerRejected) => break,
                }
            }
            match self.next_line().await {
                Ok(LineEnd::Whole) => self.whole = true,
                Ok(LineEnd::TooLong { id }) => {
                    let error = RpcError::new(
                        RpcError::INVALID_REQUEST,
                        format!("message longer than {MAX_LINE_BYTES} bytes"),
                    );
                    if let Some(observation) = self.shared.observe(Carrier::Pipe, self.era) {
                        observation.set_id(id.clone());
                        observation.refuse(RefusalReason::Malformed);
                    }
                    self.refuse(&error, &id);
                }
                Ok(LineEnd::End) => break,
                Err(error) => {
                    tracing::debug!(%error, "standard input failed");
                    break;
                }
            }
        }
        // A refusal is the last word, and is heard.
        while self.pending_writes.join_next().await.is_some() {}
        self.ended.cancel();
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.calls.finish(FINISH_TIMEOUT).await;
        while self.pending_writes.join_next().await.is_some() {}
        self.write.lock().await.shutdown().await
    }
}
