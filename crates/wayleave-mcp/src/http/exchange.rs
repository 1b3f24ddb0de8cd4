//! The streams of sessions, kept by the SDK, with three things added: an answer that comes soon
//! needs no stream, a handler can hang up on its client and wait until that client calls again, and
//! a request whose client leaves, or whose session ends, is stopped.
//!
//! To the SDK a stream that breaks can be taken up again later, so a request outlives its client.
//! Here it does not: a query for nobody still costs the database. Only a handler that hung up
//! itself waits; and a client may take its stream up on another connection as long as it has not
//! left the first.

use std::{
    cell::Cell,
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

use futures::Stream;
use rmcp::{
    model::{ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_server::{
        RestoreOutcome, SessionId, SessionManager,
        session::{
            EventStore, ServerSseMessage,
            local::{LocalSessionHandle, LocalSessionManager, LocalSessionManagerError},
        },
    },
};
use tokio::{
    sync::{Notify, mpsc::Receiver},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{gate::WHO, sessions::Sessions};

/// How long an answer may take before its client is given a stream to wait on, with an id to call
/// again under.
const SOON: Duration = Duration::from_millis(50);

tokio::task_local! {
    /// What is known of the request being handed over beside what the SDK is told.
    pub(super) static HANDED: Handed;
}

/// What the SDK does not pass on: it asks for the stream of a request, and makes a response of it.
#[derive(Default)]
pub(super) struct Handed {
    /// The stream of a request that has been pushed already.
    pub(super) begun: Cell<Option<Begun>>,
    /// The answer, when it came soon: the SDK's response is then an empty stream.
    pub(super) answer: Cell<Option<Arc<ServerJsonRpcMessage>>>,
}

/// A request on its way, and what has been heard of it. Dropped before its end, it stops the
/// request.
pub(super) struct Begun {
    came: VecDeque<ServerSseMessage>,
    more: Receiver<ServerSseMessage>,
    /// None of what belongs to no request.
    running: Option<Arc<Running>>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        // Closed by the other side, it was answered, hung up on, or taken up elsewhere.
        if !self.more.is_closed()
            && let Some(running) = &self.running
        {
            running.stop();
        }
    }
}

impl Begun {
    /// Waits for a moment: the answer, if it was there by then.
    pub(super) async fn soon(&mut self) -> Option<Arc<ServerJsonRpcMessage>> {
        // Dropped at any point, it has lost no message that it took.
        let _ = timeout(SOON, self.hear()).await;
        let message = self.came.back()?.message.as_ref()?;
        match &**message {
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Some(message.clone()),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        }
    }

    /// Hears up to the first message that says something, or the end.
    async fn hear(&mut self) {
        while let Some(event) = self.more.recv().await {
            let says = event.message.is_some();
            self.came.push_back(event);
            if says {
                return;
            }
        }
    }

    /// Nothing more is to be heard.
    fn close(&mut self) {
        self.came.clear();
        self.more.close();
    }
}

impl Stream for Begun {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        match self.came.pop_front() {
            Some(message) => Poll::Ready(Some(message)),
            None => self.more.poll_recv(cx),
        }
    }
}

/// A stream within one session, numbered by the SDK.
type StreamNumber = u64;

/// A request within one session.
type RequestKey = (SessionId, StreamNumber);

/// The requests under way.
#[derive(Default)]
struct Requests(Mutex<HashMap<RequestKey, Weak<Running>>>);

impl Requests {
    fn locked(&self) -> MutexGuard<'_, HashMap<RequestKey, Weak<Running>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(self: &Arc<Self>, key: RequestKey) -> Arc<Running> {
        let running = Arc::new(Running {
            key: key.clone(),
            among: Arc::clone(self),
            stage: Mutex::new(Stage::Waiting),
            back: Notify::new(),
        });
        self.locked().insert(key, Arc::downgrade(&running));
        running
    }

    fn get(&self, key: &RequestKey) -> Option<Arc<Running>> {
        self.locked().get(key)?.upgrade()
    }

    /// Stops the requests of a session that is over.
    fn stop(&self, ended: &SessionId) {
        let stopped: Vec<_> = self
            .locked()
            .iter()
            .filter(|((session, _), _)| session == ended)
            .filter_map(|(_, running)| running.upgrade())
            .collect();
        // Without the lock: the last to hold one takes it to remove it.
        for running in stopped {
            running.stop();
        }
    }
}

/// One request under way.
struct Running {
    key: RequestKey,
    among: Arc<Requests>,
    stage: Mutex<Stage>,
    /// Notified when a client that was hung up on is back.
    back: Notify,
}

enum Stage {
    /// Its handler has not begun.
    Waiting,
    /// Cancelling the token stops its handler.
    Handled(CancellationToken),
    Stopped,
}

impl Running {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        if let Stage::Handled(token) = std::mem::replace(&mut *self.stage(), Stage::Stopped) {
            token.cancel();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.among.locked().remove(&self.key);
    }
}

/// All sessions of one listener.
pub(crate) struct Exchange {
    sessions: LocalSessionManager,
    owned: Arc<Sessions>,
    requests: Arc<Requests>,
}

impl Exchange {
    /// Tells `owned` of each session as soon as there is one.
    pub(crate) fn new(sessions: LocalSessionManager, owned: Arc<Sessions>) -> Self {
        Self {
            sessions,
            owned,
            requests: Arc::default(),
        }
    }

    async fn session(&self, id: &str) -> Result<LocalSessionHandle, LocalSessionManagerError> {
        let session = self.sessions.sessions.read().await.get(id).cloned();
        session.ok_or_else(|| LocalSessionManagerError::SessionNotFound(id.into()))
    }

    /// Pushes a request into a session.
    pub(super) async fn begin(
        &self,
        id: &str,
        mut message: ClientJsonRpcMessage,
    ) -> Result<Begun, LocalSessionManagerError> {
        let session = self.session(id).await?;
        let receiver = session.establish_request_wise_channel().await?;
        let number = receiver.http_request_id;
        let running = number.map(|number| self.requests.add((session.id().clone(), number)));
        if let (JsonRpcMessage::Request(request), Some(running)) = (&mut message, &running) {
            request.request.extensions_mut().insert(Line {
                session: session.clone(),
                running: Arc::clone(running),
            });
        }
        let begun = Begun {
            came: VecDeque::new(),
            more: receiver.inner,
            running,
        };
        session.push_message(message, number).await?;
        Ok(begun)
    }
}

/// The stream the answer to one request goes out on.
#[derive(Clone)]
pub(crate) struct Line {
    session: LocalSessionHandle,
    running: Arc<Running>,
}

impl Line {
    /// Has `token` cancelled when the client leaves or its session ends.
    pub(crate) fn stops(&self, token: &CancellationToken) {
        let mut stage = self.running.stage();
        match *stage {
            Stage::Stopped => token.cancel(),
            Stage::Waiting | Stage::Handled(_) => *stage = Stage::Handled(token.clone()),
        }
    }

    /// Ends the stream, telling the client to call again after `retry`, and waits until it does.
    pub(crate) async fn hang_up(&self, retry: Duration) {
        let (_, number) = self.running.key;
        let mut back = std::pin::pin!(self.running.back.notified());
        // It may be back before this is told that the stream is closed.
        back.as_mut().enable();
        match self.session.close_sse_stream(number, Some(retry)).await {
            Ok(()) => back.await,
            Err(error) => tracing::debug!(%error, "stream not closed"),
        }
    }
}

/// The stream an event id of the SDK belongs to; none for the session's common one.
fn stream_of(event_id: &str) -> Option<StreamNumber> {
    event_id.split_once('/')?.1.parse().ok()
}

impl SessionManager for Exchange {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let created = self.sessions.create_session().await?;
        // Whoever asked may be gone before it is answered.
        if let Ok(who) = WHO.try_with(Clone::clone) {
            self.owned.begin(&created.0, &who);
        }
        Ok(created)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.sessions.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.sessions.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.requests.stop(id);
        self.sessions.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        if let Ok(Some(begun)) = HANDED.try_with(|handed| handed.begun.take()) {
            return Ok(begun);
        }
        let mut begun = self.begin(id, message).await?;
        if let Some(answer) = begun.soon().await
            && HANDED
                .try_with(|handed| handed.answer.set(Some(answer)))
                .is_ok()
        {
            begun.close();
        }
        Ok(begun)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.sessions.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.sessions.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let number = stream_of(&last_event_id);
        let running = number.and_then(|number| self.requests.get(&(id.clone(), number)));
        let session = self.session(id).await?;
        let resumed = session.resume(last_event_id.parse()?).await?;
        if let Some(running) = &running {
            running.back.notify_waiters();
        }
        Ok(Begun {
            came: VecDeque::new(),
            more: resumed.inner,
            running,
        })
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.sessions.restore_session(id).await
    }

    fn event_store(&self) -> Option<Arc<dyn EventStore>> {
        self.sessions.event_store()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Caller, who::Who};

    #[tokio::test]
    async fn a_session_whose_client_left_before_it_was_told_counts_and_is_forgotten() {
        let owned = Arc::<Sessions>::default();
        let exchange = Exchange::new(LocalSessionManager::default(), owned.clone());
        let alice = Arc::new(Caller::new("alice"));
        // The request is dropped here: nobody says any more that there is a session.
        let creating = WHO.scope(Who::new(alice.clone()), exchange.create_session());
        let (id, _transport) = creating.await.unwrap();
        assert_eq!(owned.count(), 1);
        assert_eq!(owned.reap(Duration::from_mins(1)), Vec::<Arc<str>>::new());
        assert_eq!(owned.reap(Duration::ZERO), vec![id.clone()]);
        exchange.close_session(&id).await.unwrap();
        assert!(!exchange.has_session(&id).await.unwrap());
    }
}
