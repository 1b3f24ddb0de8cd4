//! The streams of sessions, kept by the SDK, with two additions: a handler can hang up on its
//! client and wait until that client reconnects, and a request whose client leaves, or whose
//! session ends, is stopped.
//!
//! The SDK keeps a request running when its stream breaks, because the stream can be resumed. Here
//! it is stopped: a query for nobody still costs the database. Only a handler that hung up itself
//! waits; and a client may resume its stream on another connection as long as it has not left the
//! first.

use std::{
    collections::{HashMap, HashSet},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

use futures::Stream;
use rmcp::{
    model::{ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_server::{
        RestoreOutcome, SessionId, SessionManager, SessionRestoreMarker,
        session::{
            EventStore, ServerSseMessage,
            local::{LocalSessionHandle, LocalSessionManager, LocalSessionManagerError},
        },
    },
};
use tokio::sync::{Notify, mpsc::Receiver};
use tokio_util::sync::CancellationToken;

use super::streamable_http::CONVERSATION;
use crate::http::sessions::Sessions;

/// The messages of a running request. Dropping it before its end stops the request.
struct PendingCall {
    incoming: Receiver<ServerSseMessage>,
    /// None for messages that belong to no request.
    running: Option<Arc<RunningRequest>>,
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        // If the other side closed it, the request was answered, hung up on, or resumed elsewhere.
        if !self.incoming.is_closed()
            && let Some(running) = &self.running
        {
            running.stop();
        }
    }
}

impl Stream for PendingCall {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        self.incoming.poll_recv(cx)
    }
}

/// A stream within one session, numbered by the SDK.
type StreamNumber = u64;

/// A request within one session.
type RequestKey = (SessionId, StreamNumber);

/// The running requests.
#[derive(Default)]
struct RequestTable(Mutex<HashMap<RequestKey, Weak<RunningRequest>>>);

impl RequestTable {
    fn locked(&self) -> MutexGuard<'_, HashMap<RequestKey, Weak<RunningRequest>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(self: &Arc<Self>, key: RequestKey) -> Arc<RunningRequest> {
        let running = Arc::new(RunningRequest {
            key: key.clone(),
            table: Arc::clone(self),
            stage: Mutex::new(Stage::Waiting),
            resumed: Notify::new(),
        });
        self.locked().insert(key, Arc::downgrade(&running));
        running
    }

    fn get(&self, key: &RequestKey) -> Option<Arc<RunningRequest>> {
        self.locked().get(key)?.upgrade()
    }

    /// Stops the requests of a session that has ended.
    fn stop(&self, ended: &SessionId) {
        let stopped: Vec<_> = self
            .locked()
            .iter()
            .filter(|((session, _), _)| session == ended)
            .filter_map(|(_, running)| running.upgrade())
            .collect();
        // Stop outside the lock: dropping the last reference takes the lock to remove it.
        for running in stopped {
            running.stop();
        }
    }
}

/// One running request.
struct RunningRequest {
    key: RequestKey,
    table: Arc<RequestTable>,
    stage: Mutex<Stage>,
    /// Notified when a client that was hung up on reconnects.
    resumed: Notify,
}

enum Stage {
    /// Its handler has not begun.
    Waiting,
    /// Cancelling the token stops its handler.
    Handled(CancellationToken),
    Stopped,
}

impl RunningRequest {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        if let Stage::Handled(token) = std::mem::replace(&mut *self.stage(), Stage::Stopped) {
            token.cancel();
        }
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.table.locked().remove(&self.key);
    }
}

/// All sessions of one listener.
pub(crate) struct SessionStreams {
    sessions: LocalSessionManager,
    owned: Arc<Sessions>,
    requests: Arc<RequestTable>,
    /// Sessions whose handshake is being repeated.
    restoring: Mutex<HashSet<SessionId>>,
}

impl SessionStreams {
    /// Wraps the SDK's sessions, and registers each new one with `owned`.
    pub(crate) fn new(sessions: LocalSessionManager, owned: Arc<Sessions>) -> Self {
        Self {
            sessions,
            owned,
            requests: Arc::default(),
            restoring: Mutex::default(),
        }
    }

    fn restoring(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.restoring
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn session(&self, id: &str) -> Result<LocalSessionHandle, LocalSessionManagerError> {
        let session = self.sessions.sessions.read().await.get(id).cloned();
        session.ok_or_else(|| LocalSessionManagerError::SessionNotFound(id.into()))
    }

    /// Whether the SDK holds state for a session, or is about to.
    pub(super) async fn has_session_state(&self, id: &SessionId) -> bool {
        self.restoring().contains(id) || self.sessions.sessions.read().await.contains_key(id)
    }

    /// Pushes a request into a session.
    async fn begin(
        &self,
        id: &str,
        mut message: ClientJsonRpcMessage,
    ) -> Result<PendingCall, LocalSessionManagerError> {
        let session = self.session(id).await?;
        let receiver = session.establish_request_wise_channel().await?;
        let number = receiver.http_request_id;
        let running = number.map(|number| self.requests.add((session.id().clone(), number)));
        if let (JsonRpcMessage::Request(request), Some(running)) = (&mut message, &running) {
            request.request.extensions_mut().insert(SseStream {
                session: session.clone(),
                running: Arc::clone(running),
            });
        }
        let pending = PendingCall {
            incoming: receiver.inner,
            running,
        };
        session.push_message(message, number).await?;
        Ok(pending)
    }
}

/// The stream that carries the answer to one request.
#[derive(Clone)]
pub(crate) struct SseStream {
    session: LocalSessionHandle,
    running: Arc<RunningRequest>,
}

impl SseStream {
    /// Cancels `token` when the client leaves or its session ends.
    pub(crate) fn cancel_on_end(&self, token: &CancellationToken) {
        let mut stage = self.running.stage();
        match *stage {
            Stage::Stopped => token.cancel(),
            Stage::Waiting | Stage::Handled(_) => *stage = Stage::Handled(token.clone()),
        }
    }

    /// Ends the stream, tells the client to reconnect after `retry`, and waits until it does.
    pub(crate) async fn hang_up(&self, retry: Duration) {
        let (_, number) = self.running.key;
        let mut resumed = std::pin::pin!(self.running.resumed.notified());
        // The client may be back before the closing of the stream is noticed.
        resumed.as_mut().enable();
        match self.session.close_sse_stream(number, Some(retry)).await {
            Ok(()) => resumed.await,
            Err(error) => tracing::debug!(%error, "stream not closed"),
        }
    }
}

/// Parses the stream number of an event id; `None` for the session's common stream.
fn stream_of(event_id: &str) -> Option<StreamNumber> {
    event_id.split_once('/')?.1.parse().ok()
}

/// Whether a message belongs to a replayed handshake.
fn is_replayed(message: &ClientJsonRpcMessage) -> bool {
    match message {
        JsonRpcMessage::Notification(told) => {
            let extensions = told.notification.extensions();
            extensions.get::<SessionRestoreMarker>().is_some()
        }
        _ => false,
    }
}

impl SessionManager for SessionStreams {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let created = self.sessions.create_session().await?;
        // The client may be gone before it is answered.
        if let Ok(conversation) = CONVERSATION.try_with(Clone::clone) {
            self.owned
                .begin(created.0.clone(), Arc::clone(conversation.begin_session()));
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
        // Nothing may be sent in a session before its handshake; a request that comes meanwhile
        // waits.
        Ok(!self.restoring().contains(id) && self.sessions.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.restoring().remove(id);
        self.requests.stop(id);
        self.sessions.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.begin(id, message).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        let ends_handshake = is_replayed(&message);
        let accepted = self.sessions.accept_message(id, message).await;
        if ends_handshake {
            self.restoring().remove(id);
        }
        accepted
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
            running.resumed.notify_waiters();
        }
        Ok(PendingCall {
            incoming: resumed.inner,
            running,
        })
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.restoring().insert(id.clone());
        let restored = self.sessions.restore_session(id.clone()).await;
        if !matches!(restored, Ok(RestoreOutcome::Restored(_))) {
            self.restoring().remove(&id);
        }
        restored
    }

    fn event_store(&self) -> Option<Arc<dyn EventStore>> {
        self.sessions.event_store()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Caller, Identity, Registry, Server, caller_cell::CallerCell, conversation::Conversation,
        server::Shutdown,
    };

    #[tokio::test]
    async fn a_session_whose_client_left_before_it_was_told_counts_and_is_forgotten() {
        let owned = Arc::<Sessions>::default();
        let streams = SessionStreams::new(LocalSessionManager::default(), owned.clone());
        let server = Server::new(Registry::new(), Identity::new("test", "1.0.0"));
        let alice = CallerCell::new(Arc::new(Caller::new("alice")));
        let conversation = Conversation::new(server.0, &Shutdown::default(), alice);
        // The request ends without an answer, so its client never learns of the session.
        let creating = CONVERSATION.scope(conversation, streams.create_session());
        let (id, _transport) = creating.await.unwrap();
        assert_eq!(owned.count(), 1);
        assert_eq!(owned.reap(Duration::from_mins(1)), Vec::<Arc<str>>::new());
        assert_eq!(owned.reap(Duration::ZERO), vec![id.clone()]);
        streams.close_session(&id).await.unwrap();
        assert!(!streams.has_session(&id).await.unwrap());
    }
}
