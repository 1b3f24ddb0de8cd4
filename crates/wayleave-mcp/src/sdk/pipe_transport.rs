//! A pipe as the SDK's transport: JSON-RPC messages, one per line.
//!
//! Each line is parsed once. Refused messages are answered here, plain ones go to the dispatch in a
//! task of their own, and the SDK gets the rest.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use rmcp::{
    RoleServer, ServiceExt as _,
    model::{Extensions, GetExtensions as _, JsonRpcMessage},
    service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::Mutex,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    answer,
    handler::SdkHandler,
    opening_requests::OpeningRequests,
    sdk_requests::{self, SdkRequests},
};
use crate::{
    Caller, Carrier, Era, RefusalReason, RpcError, StdioError, StdioRejection, batch,
    budget::BudgetExceeded,
    conversation::Conversation,
    dispatch::ConcurrencyPolicy,
    envelope::{self, Envelope},
    line_reader::{LineEnd, LineReader, MAX_LINE_BYTES},
    list_cache,
    observation::{self, Observation},
    pipe_calls::{self, BatchAnswers, PipeCalls, PipeSession},
    request::PlainRequest,
    server::ServerState,
    stdio::FINISH_TIMEOUT,
    stdio_auth::StdioPeer,
    subscription::OpeningListener,
    wire_error,
};

pub(crate) use rmcp::transport::io::stdio_pipes;

/// Maximum number of unwritten lines outside the SDK's loop, beyond which reading stops.
const MAX_PENDING_WRITES: usize = 64;

/// Serves the client at the other end of a pipe until it goes away.
pub(crate) async fn serve(
    conversation: Conversation,
    peer: StdioPeer,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), StdioError> {
    let handler = Arc::new(SdkHandler::new(
        conversation.clone(),
        ConcurrencyPolicy::Acquire,
    ));
    let session = Arc::new(OnceLock::new());
    let write = Arc::new(Mutex::new(write));
    let lines = LineTransport {
        shared: conversation.shared().clone(),
        conversation: conversation.clone(),
        peer,
        reader: LineReader::new(read),
        opening: OpeningRequests::default(),
        sdk_requests: SdkRequests::default(),
        from_batch: VecDeque::new(),
        batch: None,
        whole: None,
        calls: PipeCalls::new(session.clone(), write.clone()),
        write,
        pending_writes: JoinSet::new(),
        era: None,
        ended: conversation.shutdown().draining.clone(),
    };
    let running = match handler.clone().serve(lines).await {
        Ok(running) => running,
        // The client left without a message, which is not an error.
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
}

/// JSON-RPC messages, one per line.
struct LineTransport<R, W> {
    shared: Arc<ServerState>,
    conversation: Conversation,
    peer: StdioPeer,
    reader: LineReader<R>,
    opening: OpeningRequests,
    sdk_requests: SdkRequests,
    /// Messages of a batch that are for the SDK.
    from_batch: VecDeque<RxJsonRpcMessage<RoleServer>>,
    /// The answers to the batch whose messages are being read.
    batch: Option<Arc<BatchAnswers>>,
    /// A complete line, held until its sender is identified.
    whole: Option<Bytes>,
    calls: PipeCalls<W>,
    write: Arc<Mutex<W>>,
    pending_writes: JoinSet<()>,
    /// The era of the conversation, once a request has settled it.
    era: Option<Era>,
    ended: CancellationToken,
}

/// The sender was rejected; the conversation is over.
struct PeerRejected;

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Writes a line outside the SDK's loop, in its own task: a reader dropped half-way must not
    /// leave half a line behind. A reply is written once its message is recorded.
    fn spawn_write(&mut self, mut line: Vec<u8>, id: Value, observed: Option<Arc<Observation>>) {
        let (write, batch) = (self.write.clone(), self.batch.clone());
        self.pending_writes.spawn(async move {
            if let Some(observation) = observed
                && let Err(error) = observation.recorded().await
            {
                line = wire_error::response(&error, &id).to_string().into_bytes();
            }
            if let Some(batch) = batch {
                match batch.settle(Some(line)) {
                    Some(answers) => line = answers,
                    None => return,
                }
            }
            if let Err(error) = pipe_calls::write_line(&write, line).await {
                tracing::debug!(%error, "line not written");
            }
        });
    }

    /// Waits until there is room for one more line and one more answer.
    async fn wait_for_room(&mut self) {
        while self.pending_writes.try_join_next().is_some() {}
        while self.pending_writes.len() >= MAX_PENDING_WRITES {
            self.pending_writes.join_next().await;
        }
        self.calls.wait_for_room().await;
    }

    fn refuse(&mut self, error: RpcError, id: &Value, observed: Option<&Arc<Observation>>) {
        let added = observed.map(|it| it.take_added()).unwrap_or_default();
        let answer = wire_error::response(&error.with_meta(added), id);
        let line = answer.to_string().into_bytes();
        self.spawn_write(line, id.clone(), observed.cloned());
    }

    fn refuse_malformed(
        &mut self,
        error: RpcError,
        id: &Value,
        observed: Option<&Arc<Observation>>,
    ) {
        if let Some(observation) = observed {
            observation.refuse(RefusalReason::Malformed);
        }
        self.refuse(error, id, observed);
    }

    /// Refuses a message that the SDK does not accept.
    fn refuse_unreadable(
        &mut self,
        line: &[u8],
        envelope: &Envelope<'_>,
        observed: Option<&Arc<Observation>>,
    ) {
        if self.batch.is_some() && envelope.is_one_way() {
            // Its batch does not wait for an answer.
            if let Some(observation) = observed {
                observation.refuse(RefusalReason::Malformed);
            }
            return;
        }
        let (error, id) = wire_error::diagnose(line, envelope);
        self.refuse_malformed(error, &id, observed);
    }

    /// Identifies the sender of the line. Returns its message if the SDK must handle it.
    async fn identify_line(
        &mut self,
        line: Bytes,
    ) -> Result<Option<RxJsonRpcMessage<RoleServer>>, PeerRejected> {
        if line.iter().all(u8::is_ascii_whitespace) {
            self.recycle(line);
            return Ok(None);
        }
        let envelope = Envelope::parse(&line);
        // Cancel-safe up to here: the line is still stored.
        let identified = self.peer.identify(&envelope).await;
        self.whole = None;
        let session = self.conversation.session();
        if identified.is_ok()
            && envelope.is_batch()
            && batch::is_agreed(session.map(AsRef::as_ref))
            && let Some(members) = batch::members(&line)
        {
            self.take_batch(&members);
            self.recycle(line);
            return Ok(self.from_batch.pop_front());
        }
        let observation = self.observe(&envelope);
        let message = match identified {
            Ok(()) => self.sdk_message(&line, &envelope, observation),
            Err(StdioRejection { error, hang_up }) => {
                if let Some(observation) = &observation {
                    observation.refuse(RefusalReason::Authorization);
                }
                if envelope.is_request() {
                    self.refuse(error, &envelope.id, observation.as_ref());
                }
                if hang_up {
                    return Err(PeerRejected);
                }
                None
            }
        };
        self.recycle(line);
        Ok(message)
    }

    /// Handles the messages of a batch, and queues those for the SDK.
    fn take_batch(&mut self, members: &[&[u8]]) {
        let envelopes: Vec<Envelope<'_>> = members.iter().map(|it| Envelope::parse(it)).collect();
        let requests = envelopes.iter().filter(|it| !it.is_one_way()).count();
        self.batch = Some(Arc::new(BatchAnswers::new(requests)));
        for (member, envelope) in members.iter().zip(&envelopes) {
            let observation = self.observe(envelope);
            let message = self.sdk_message(member, envelope, observation);
            self.from_batch.extend(message);
        }
        self.batch = None;
    }

    /// The observation of the message on the line, if an observer is set.
    fn observe(&self, envelope: &Envelope<'_>) -> Option<Arc<Observation>> {
        let observation = self.shared.observe(Carrier::Pipe, self.era)?;
        observation.set_message(envelope);
        if let Some(session) = self.conversation.session() {
            observation.set_session(session);
        }
        Some(observation)
    }

    /// Answers or begins a message, or returns it if the SDK must handle it.
    fn sdk_message(
        &mut self,
        line: &[u8],
        envelope: &Envelope<'_>,
        observation: Option<Arc<Observation>>,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        let caller = Arc::clone(&self.peer.caller_cell.caller());
        let observed = observation.as_deref();
        if let Some(observation) = observed {
            observation.set_caller(&caller);
        }
        if let Some(Err(exceeded)) = caller.budget().map(|budget| budget.spend())
            && !envelope.is_one_way()
        {
            self.refuse_over_budget(exceeded, envelope, observation);
            return None;
        }
        if envelope.is_request() && envelope.id_is_too_long {
            self.refuse_malformed(envelope::id_too_long(), &Value::Null, observation.as_ref());
            return None;
        }
        if let Some(era) = self.era
            && let Some(answer) = list_cache::answer(&self.shared, &caller, envelope, era, observed)
        {
            self.spawn_write(answer, envelope.id.clone(), observation);
            return None;
        }
        if self.begin_call(envelope, &caller, observation.as_ref()) {
            return None;
        }
        if self.batch.is_some() && envelope.is_request() {
            self.refuse_malformed(batch::not_in_batch(), &envelope.id, observation.as_ref());
            return None;
        }
        if envelope.is_notification() {
            // The SDK ends the conversation when a notification comes first.
            self.era?;
            if let Some(id) = envelope.cancelled_request() {
                self.opening.cancel(&id);
                self.sdk_requests.cancel(&id);
                self.calls.cancel(&id);
            }
        }
        let read = serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line);
        let Ok(mut message) = read else {
            self.refuse_unreadable(line, envelope, observation.as_ref());
            return None;
        };
        // An error without an id. The SDK takes it, but the batch would wait for an answer to it.
        if self.batch.is_some() && !envelope.is_one_way() {
            self.refuse_malformed(batch::not_in_batch(), &Value::Null, observation.as_ref());
            return None;
        }
        match &mut message {
            JsonRpcMessage::Notification(_) => {
                if let Some(observation) = observed {
                    observation.handed_over();
                }
            }
            JsonRpcMessage::Request(request) => {
                let extensions = request.request.extensions_mut();
                self.attach(extensions, envelope, caller.clone(), observation);
            }
            _ => {}
        }
        match (envelope.listened_uris(), envelope.request_id()) {
            (Some(uris), Some(id)) => {
                let conversation = self.conversation.clone();
                let begin = async move {
                    let registry = &conversation.shared().registry;
                    let begun = OpeningListener::begin(registry, caller, uris).await;
                    conversation.open_listener(begun);
                };
                self.opening.begin(id, message, begin)
            }
            _ => Some(message),
        }
    }

    /// Settles the era by a request for the SDK, and attaches its caller.
    fn attach(
        &mut self,
        extensions: &mut Extensions,
        envelope: &Envelope<'_>,
        caller: Arc<Caller>,
        observation: Option<Arc<Observation>>,
    ) {
        if self.era.is_none() {
            self.era = envelope.opening_era();
        }
        if self.peer.authenticate.is_some() {
            extensions.insert(caller);
        }
        if let Some(observation) = observation {
            observation.set_era(self.era);
            if self.era.is_none() && envelope.method() == "ping" {
                // Before the handshake the SDK answers it without a handler.
                observation.complete();
            }
            self.sdk_requests.begin(envelope.request_id(), &observation);
            extensions.insert(observation);
        }
    }

    /// Begins the request on the line, unless it needs the SDK. Returns whether it did.
    fn begin_call(
        &mut self,
        envelope: &Envelope<'_>,
        caller: &Arc<Caller>,
        observation: Option<&Arc<Observation>>,
    ) -> bool {
        // The first request settles the era, and the SDK handles that.
        let Some(agreed) = self.era else {
            return false;
        };
        let Some(plain) = PlainRequest::from_envelope(envelope) else {
            return false;
        };
        if plain.era == Era::Session && agreed == Era::Stateless {
            return false;
        }
        let mut extensions = Extensions::new();
        if self.peer.authenticate.is_some() {
            extensions.insert(caller.clone());
        }
        if let Some(observation) = observation {
            extensions.insert(Arc::clone(observation));
        }
        self.calls.begin(plain, extensions, self.batch.clone())
    }

    /// Refuses a request of a caller whose budget is spent.
    fn refuse_over_budget(
        &mut self,
        exceeded: BudgetExceeded,
        envelope: &Envelope<'_>,
        observation: Option<Arc<Observation>>,
    ) {
        let added = observation::refuse(observation.as_deref(), RefusalReason::Budget);
        if self.shared.fails_with_result(envelope) {
            let answer = wire_error::tool_result(envelope, exceeded.result(), added);
            self.spawn_write(answer.into_bytes(), envelope.id.clone(), observation);
        } else {
            let error = exceeded.error().with_meta(added);
            self.refuse(error, &envelope.id, observation.as_ref());
        }
    }

    fn recycle(&mut self, line: Bytes) {
        self.whole = None;
        self.reader.reuse(Vec::from(line));
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
        let observed = self.sdk_requests.answered(&item);
        async move {
            let item = match observed {
                Some(observation) => sdk_requests::recorded(item, &observation).await,
                None => item,
            };
            let line = answer::write_message(&item, None);
            pipe_calls::write_line(&write, line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Each line is answered with at most one line.
            self.wait_for_room().await;
            if let Some(message) = self.from_batch.pop_front() {
                return Some(message);
            }
            if let Some(line) = self.whole.clone() {
                match self.identify_line(line).await {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => {}
                    Err(PeerRejected) => break,
                }
            }
            let line = tokio::select! {
                biased;
                message = self.opening.next() => return Some(message),
                line = self.reader.next_line() => line,
            };
            match line {
                Ok(LineEnd::Whole) => {
                    self.whole = Some(self.reader.take_line().into());
                }
                Ok(LineEnd::TooLong { id }) => {
                    let error = RpcError::new(
                        RpcError::INVALID_REQUEST,
                        format!("message longer than {MAX_LINE_BYTES} bytes"),
                    );
                    let observation = self.shared.observe(Carrier::Pipe, self.era);
                    if let Some(observation) = &observation {
                        observation.set_id(id.clone());
                    }
                    self.refuse_malformed(error, &id, observation.as_ref());
                }
                Ok(LineEnd::End) => break,
                Err(error) => {
                    tracing::debug!(%error, "standard input failed");
                    break;
                }
            }
        }
        // A refusal is the last message, and must be written.
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
