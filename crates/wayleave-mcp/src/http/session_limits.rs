//! Finds the session of a request, limits the number of sessions, and ends unused ones.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use tokio::time::{Duration, interval};
use tokio_util::sync::CancellationToken;

use super::{
    endpoint::HttpEndpoint,
    headers::{SESSION_ID, text},
    reply::HttpRefusal,
    sessions::SessionUse,
};
use crate::{Caller, Era};

/// Longest period of the reaper. Well below every deadline of a connection.
const MAX_REAP_INTERVAL: Duration = Duration::from_secs(2);

impl HttpEndpoint {
    /// Enters the session that a request names, if it names one. A session of another subject
    /// counts as unknown.
    pub(super) fn enter_session(
        &self,
        headers: &HeaderMap,
        era: Era,
        caller: &Arc<Caller>,
    ) -> Result<Option<SessionUse>, HttpRefusal> {
        if era == Era::Stateless {
            return Ok(None);
        }
        let Some(id) = text(headers, &SESSION_ID) else {
            return Ok(None);
        };
        match self.sessions.enter(id, caller) {
            Some(busy) => Ok(Some(busy)),
            None => Err(HttpRefusal::new(StatusCode::NOT_FOUND, "unknown session")),
        }
    }

    /// Makes room for one more session: drops sessions of the caller if it has too many, and of
    /// anyone if there are too many in all.
    pub(super) async fn make_session_room(&self, caller: &Caller) -> Result<(), HttpRefusal> {
        let limits = &self.options.limits;
        if caller.budget().is_some() {
            let ended =
                (self.sessions).evict_of_subject(caller.subject(), limits.sessions_per_caller);
            let ended = ended.ok_or_else(|| {
                HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many sessions")
            })?;
            self.close(ended).await;
        }
        self.close(self.sessions.evict(limits.sessions)).await;
        Ok(())
    }

    /// Drops idle sessions until stopped.
    pub(crate) async fn reap(&self, stop: CancellationToken) {
        let idle = self.options.limits.session_idle;
        // Also keeps a timer due before any header deadline; without one, the runtime wakes itself
        // to register each deadline.
        let period = (idle / 4).clamp(Duration::from_millis(100), MAX_REAP_INTERVAL);
        let mut ticks = interval(period);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            self.close(self.sessions.reap(idle)).await;
        }
    }

    pub(crate) async fn close_all(&self) {
        self.close(self.sessions.clear()).await;
    }

    async fn close(&self, sessions: Vec<Arc<str>>) {
        for id in sessions {
            self.sdk.close_session(&id).await;
        }
    }
}
