//! The observation of a message: settled once, by the first layer that does so.
//!
//! An observation travels with its message, in the extensions of the request. Dropping one
//! unsettled reports a refusal by the protocol layer, so a new way of refusing a message cannot
//! escape the observer. Without an observer there are no observations.

use std::{
    any::Any,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use http::StatusCode;
use serde_json::{Map, Value};
use tracing::Instrument as _;

use crate::{
    CallEnd, CallObserver, Caller, Carrier, Content, Era, ObservedCall, Outcome, Recording,
    RefusalReason, RequestFacts, ResourceBody, RpcError, ToolReply,
    client_session::ClientSession,
    envelope::Envelope,
    error,
    sdk::model::{
        CompleteResult, DiscoverResult, ErrorData, GetPromptResponse, InitializeResult,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        MetaObject, ReadResourceResponse, RequestContext, RoleServer,
    },
    server::ServerState,
};

tokio::task_local! {
    static ATTACHMENT: Arc<dyn Any + Send + Sync>;
}

/// The value that the observer attached to the call this task works on, if it is a `T`.
pub fn call_attachment<T: Any + Send + Sync>() -> Option<Arc<T>> {
    ATTACHMENT
        .try_with(|attachment| Arc::clone(attachment).downcast().ok())
        .ok()
        .flatten()
}

/// Runs `work` with a value for [`call_attachment`], where no observer has attached one.
pub async fn with_call_attachment<T>(
    attachment: Arc<dyn Any + Send + Sync>,
    work: impl Future<Output = T>,
) -> T {
    ATTACHMENT.scope(attachment, work).await
}

pub(crate) struct Observation {
    observer: Arc<dyn CallObserver>,
    state: Mutex<State>,
}

struct State {
    /// Taken when the message is settled.
    facts: Option<RequestFacts>,
    is_notification: bool,
    /// The id a reply refers to.
    id: Value,
    /// The recording that a reply made by this layer waits for.
    recording: Option<Recording>,
    /// The observer's additions to a reply made by this layer.
    added: Map<String, Value>,
}

impl ServerState {
    /// The observation of a message that has just arrived, if an observer is set.
    pub(crate) fn observe(&self, carrier: Carrier, era: Option<Era>) -> Option<Arc<Observation>> {
        let observer = self.observer.clone()?;
        let facts = RequestFacts {
            carrier,
            era,
            caller: None,
            method: None,
            id: Value::Null,
            name: None,
            uri: None,
            arguments: None,
            client: None,
            traceparent: None,
            is_notification: false,
            arrived: Instant::now(),
        };
        Some(Arc::new(Observation {
            observer,
            state: Mutex::new(State {
                facts: Some(facts),
                is_notification: false,
                id: Value::Null,
                recording: None,
                added: Map::new(),
            }),
        }))
    }
}

impl Observation {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the facts; `None` if the message is settled already.
    fn settle(&self) -> Option<RequestFacts> {
        self.locked().facts.take()
    }

    fn set(&self, change: impl FnOnce(&mut RequestFacts)) {
        if let Some(facts) = &mut self.locked().facts {
            change(facts);
        }
    }

    pub(crate) fn set_caller(&self, caller: &Arc<Caller>) {
        self.set(|facts| facts.caller = Some(Arc::clone(caller)));
    }

    pub(crate) fn set_era(&self, era: Option<Era>) {
        self.set(|facts| facts.era = era);
    }

    pub(crate) fn set_id(&self, id: Value) {
        self.set(|facts| facts.id = id);
    }

    /// Takes the client's name from its session, if the message does not state it.
    pub(crate) fn set_session(&self, session: &ClientSession) {
        self.set(|facts| {
            if facts.client.is_none()
                && let Some(client) = session.client()
            {
                let info = &client.client_info;
                facts.client = Some((info.name.clone(), info.version.clone()));
            }
        });
    }

    /// Discards the observation of a batch, whose messages are observed instead.
    pub(crate) fn discard(&self) {
        let _ = self.settle();
    }

    /// Copies the facts of the message. A client's answer is not a request, and is not observed.
    pub(crate) fn set_message(&self, envelope: &Envelope<'_>) {
        let mut state = self.locked();
        state.is_notification = envelope.is_notification();
        state.id = envelope.id.clone();
        if envelope.is_answer() {
            state.facts = None;
        }
        if let Some(facts) = &mut state.facts {
            envelope.fill(facts);
        }
    }

    pub(crate) fn begin(&self) -> Option<Result<Box<dyn ObservedCall>, RpcError>> {
        self.settle().map(|facts| self.observer.begin(facts))
    }

    pub(crate) fn refuse(&self, reason: RefusalReason) {
        if let Some(facts) = self.settle() {
            let mut added = Map::new();
            let recording = self.observer.refused(facts, reason, &mut added);
            let mut state = self.locked();
            state.recording = Some(recording);
            state.added = added;
        }
    }

    /// Settles a request that its client cancelled before it began.
    pub(crate) fn cancel(&self) {
        if let Some(Ok(call)) = self.begin() {
            let end = CallEnd {
                outcome: Outcome::Cancelled,
                bytes: 0,
            };
            self.set_recording(call.end(end, &mut Map::new()));
        }
    }

    /// Takes the observer's additions to a refusal.
    pub(crate) fn take_added(&self) -> Map<String, Value> {
        std::mem::take(&mut self.locked().added)
    }

    /// The id a reply refers to.
    pub(crate) fn id(&self) -> Value {
        self.locked().id.clone()
    }

    /// Lets the reply wait for `recording`.
    pub(crate) fn set_recording(&self, recording: Recording) {
        self.locked().recording = Some(recording);
    }

    /// Waits until the message is recorded, if this layer itself replies to it.
    pub(crate) async fn recorded(&self) -> Result<(), RpcError> {
        let recording = self.locked().recording.take();
        match recording {
            Some(recording) => recording.wait().await,
            None => Ok(()),
        }
    }

    /// Settles a message that was carried out at once, with no result to add `_meta` to.
    pub(crate) fn complete(&self) {
        match self.begin() {
            Some(Ok(call)) => {
                let end = CallEnd {
                    outcome: Outcome::Completed,
                    bytes: 0,
                };
                self.set_recording(call.end(end, &mut Map::new()));
            }
            Some(Err(error)) => self.set_recording(Recording::Failed(error)),
            None => {}
        }
    }

    /// Settles a notification, which is carried out once it is handed over. Requests are settled by
    /// their handler.
    pub(crate) fn handed_over(&self) {
        let is_notification = self.locked().is_notification;
        if is_notification {
            self.complete();
        }
    }

    /// Records the HTTP response to the message. A refusal after the handler has begun is the
    /// handler's own.
    pub(crate) fn responded(&self, status: StatusCode) {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                self.refuse(RefusalReason::Authorization);
            }
            StatusCode::TOO_MANY_REQUESTS => self.refuse(RefusalReason::Budget),
            StatusCode::SERVICE_UNAVAILABLE => self.refuse(RefusalReason::Unavailable),
            status if status.is_client_error() => self.refuse(RefusalReason::Malformed),
            status if status.is_server_error() => self.refuse(RefusalReason::Protocol),
            _ => self.handed_over(),
        }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.refuse(RefusalReason::Protocol);
    }
}

/// The observation of the message that carried a request of the SDK.
pub(crate) fn from_context(request: &RequestContext<RoleServer>) -> Option<Arc<Observation>> {
    let parts = request.extensions.get::<http::request::Parts>();
    let observation = match parts {
        Some(parts) => parts.extensions.get::<Arc<Observation>>(),
        None => request.extensions.get(),
    };
    observation.cloned()
}

/// Refuses a message under observation; returns the observer's additions to the refusal.
pub(crate) fn refuse(
    observation: Option<&Observation>,
    reason: RefusalReason,
) -> Map<String, Value> {
    let Some(observation) = observation else {
        return Map::new();
    };
    observation.refuse(reason);
    observation.take_added()
}

/// Like [`refuse`], but waits until the refusal is recorded.
pub(crate) async fn refuse_recorded(
    observation: Option<&Observation>,
    reason: RefusalReason,
) -> Result<Map<String, Value>, RpcError> {
    let added = refuse(observation, reason);
    if let Some(observation) = observation {
        observation.recorded().await?;
    }
    Ok(added)
}

/// Runs `work` under observation, and adds the observer's entries to its result. Returns the result
/// once it is recorded, or an error if it cannot be.
pub(crate) async fn run<T: ObservedResult, E: ObservedError + From<RpcError>>(
    observation: Option<Arc<Observation>>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let call = match observation.and_then(|observation| observation.begin()) {
        Some(begun) => begun?,
        None => return work.await,
    };
    let work = work.instrument(call.span());
    let mut reply = match call.attachment() {
        Some(attachment) => ATTACHMENT.scope(attachment, work).await,
        None => work.await,
    };
    let mut added = Map::new();
    let recording = match &mut reply {
        Ok(result) => {
            let end = CallEnd {
                outcome: result.outcome(),
                bytes: result.bytes(),
            };
            let recording = call.end(end, &mut added);
            if !added.is_empty() {
                result.add_meta(added);
            }
            recording
        }
        Err(error) => {
            let (code, message) = error.facts();
            let outcome = if RpcError::cancelled().is(code, message) {
                Outcome::Cancelled
            } else {
                Outcome::Failed { code, message }
            };
            let recording = call.end(CallEnd { outcome, bytes: 0 }, &mut added);
            error.add_meta(added);
            recording
        }
    };
    recording.wait().await?;
    reply
}

/// An error a request is answered with.
pub(crate) trait ObservedError {
    fn facts(&self) -> (i32, &str);

    /// Adds to the `_meta` of its data.
    fn add_meta(&mut self, added: Map<String, Value>);
}

impl ObservedError for RpcError {
    fn facts(&self) -> (i32, &str) {
        (self.code, &self.message)
    }

    fn add_meta(&mut self, added: Map<String, Value>) {
        error::add_meta(&mut self.data, added);
    }
}

impl ObservedError for ErrorData {
    fn facts(&self) -> (i32, &str) {
        (self.code.0, &self.message)
    }

    fn add_meta(&mut self, added: Map<String, Value>) {
        error::add_meta(&mut self.data, added);
    }
}

/// A result a request is answered with.
pub(crate) trait ObservedResult {
    fn outcome(&self) -> Outcome<'static> {
        Outcome::Completed
    }

    /// Bytes of its content.
    fn bytes(&self) -> usize {
        0
    }

    /// Adds to its `_meta`, if the result has one.
    fn add_meta(&mut self, added: Map<String, Value>);
}

/// Counts the bytes written to it.
struct ByteCount(usize);

impl io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[expect(
    clippy::expect_used,
    reason = "counting cannot fail, and keys are texts"
)]
fn json_bytes(value: &impl serde::Serialize) -> usize {
    let mut count = ByteCount(0);
    serde_json::to_writer(&mut count, value).expect("contents are JSON");
    count.0
}

fn content_bytes(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Image { data, .. } | Content::Audio { data, .. } => data.len(),
        Content::Resource(contents) => match &contents.body {
            ResourceBody::Text(text) | ResourceBody::Blob(text) => text.len(),
        },
        Content::Link { uri, .. } => uri.len(),
    }
}

fn extend(meta: &mut Option<MetaObject>, added: Map<String, Value>) {
    meta.get_or_insert_default().0.extend(added);
}

/// A result without members of its own.
#[derive(Debug, Default)]
pub(crate) struct EmptyReply {
    pub(crate) meta: Map<String, Value>,
}

impl ObservedResult for EmptyReply {
    fn add_meta(&mut self, added: Map<String, Value>) {
        self.meta.extend(added);
    }
}

/// A stream that has ended; nothing is sent any more.
impl ObservedResult for () {
    fn add_meta(&mut self, _: Map<String, Value>) {}
}

macro_rules! with_meta {
    ($($result:ident),*) => {$(
        impl ObservedResult for $result {
            fn add_meta(&mut self, added: Map<String, Value>) {
                extend(&mut self.meta, added);
            }
        }
    )*};
}

with_meta!(
    InitializeResult,
    DiscoverResult,
    CompleteResult,
    ListToolsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListPromptsResult
);

impl ObservedResult for ReadResourceResponse {
    fn bytes(&self) -> usize {
        match self {
            Self::Complete(result) => json_bytes(&result.contents),
            _ => 0,
        }
    }

    fn add_meta(&mut self, added: Map<String, Value>) {
        if let Self::Complete(result) = self {
            extend(&mut result.meta, added);
        }
    }
}

impl ObservedResult for GetPromptResponse {
    fn add_meta(&mut self, added: Map<String, Value>) {
        if let Self::Complete(result) = self {
            extend(&mut result.meta, added);
        }
    }
}

impl ObservedResult for ToolReply {
    fn outcome(&self) -> Outcome<'static> {
        match self {
            Self::Done(result) if result.is_error => Outcome::ToolError,
            _ => Outcome::Completed,
        }
    }

    fn bytes(&self) -> usize {
        let Self::Done(result) = self else {
            return 0;
        };
        let content: usize = result.content.iter().map(content_bytes).sum();
        let structured = result.structured.as_ref();
        content + structured.map_or(0, |structured| structured.bytes(json_bytes))
    }

    fn add_meta(&mut self, added: Map<String, Value>) {
        if let Self::Done(result) = self {
            result.meta.get_or_insert_default().extend(added);
        }
    }
}
