//! The SDK's HTTP service, its configuration, and the conversation it serves.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Full, combinators::BoxBody};
use rmcp::transport::streamable_http_server::{
    SessionManager as _, StreamableHttpServerConfig, StreamableHttpService,
    session::{SessionState, SessionStore, SessionStoreError, local::LocalSessionManager},
};
use tokio_util::sync::CancellationToken;

use super::{handler::SdkHandler, session_streams::SessionStreams};
use crate::{conversation::Conversation, dispatch::ConcurrencyPolicy, http::sessions::Sessions};

tokio::task_local! {
    /// The conversation of the request being handed over; the SDK makes a handler without saying
    /// for which request.
    pub(super) static CONVERSATION: Conversation;
}

/// Our own reaper ends idle sessions; the SDK's timer also ends those that only listen.
const SDK_KEEP_ALIVE: Duration = Duration::from_hours(365 * 24);

pub(crate) struct SdkHttp {
    service: StreamableHttpService<SdkHandler, SessionStreams>,
    streams: Arc<SessionStreams>,
}

impl SdkHttp {
    /// Cancelling `cut` ends every stream.
    pub(crate) fn new(
        sessions: Arc<Sessions>,
        max_body_bytes: usize,
        cut: CancellationToken,
    ) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(SDK_KEEP_ALIVE);
        let streams = Arc::new(SessionStreams::new(manager, sessions.clone()));
        let mut config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            // The endpoint checks hosts on every route.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(max_body_bytes)
            .with_cancellation_token(cut);
        config.session_store = Some(Arc::new(Handshakes(sessions)));
        let factory = || {
            let conversation = CONVERSATION
                .try_with(Clone::clone)
                .map_err(|_| std::io::Error::other("no caller for this request"))?;
            Ok(SdkHandler::new(
                conversation,
                ConcurrencyPolicy::AlreadyAcquired,
            ))
        };
        Self {
            service: StreamableHttpService::new(factory, streams.clone(), config),
            streams,
        }
    }

    /// Lets the SDK answer a request.
    pub(crate) async fn handle(
        &self,
        request: Request<Full<Bytes>>,
        conversation: Conversation,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        CONVERSATION
            .scope(conversation, self.service.handle(request))
            .await
    }

    /// Whether the SDK holds state for a session, or is about to.
    pub(crate) async fn has_session_state(&self, id: &Arc<str>) -> bool {
        self.streams.has_session_state(id).await
    }

    /// Drops the SDK's state of a session.
    pub(crate) async fn close_session(&self, id: &Arc<str>) {
        if let Err(error) = self.streams.close_session(id).await {
            tracing::debug!(%error, "session not closed");
        }
    }
}

/// The handshakes of our sessions. For a session it does not know, the SDK loads the handshake from
/// here and replays it, so an idle session needs no state there.
struct Handshakes(Arc<Sessions>);

#[async_trait::async_trait]
impl SessionStore for Handshakes {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let session = self.0.get(id);
        let client = session.as_ref().and_then(|session| session.client());
        Ok(client.cloned().map(SessionState::new))
    }

    /// A no-op: the session itself stores its handshake.
    async fn store(&self, _: &str, _: &SessionState) -> Result<(), SessionStoreError> {
        Ok(())
    }

    /// A no-op: the handshake ends with the session.
    async fn delete(&self, _: &str) -> Result<(), SessionStoreError> {
        Ok(())
    }
}
