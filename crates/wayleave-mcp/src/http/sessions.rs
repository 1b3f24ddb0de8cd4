//! Sessions of clients of the older revisions: their owners, and when they are dropped.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{Caller, client_session::ClientSession};

/// Idle limit of a session that no request has entered yet: its client left before it was told the
/// id.
const UNUSED_SESSION_TIMEOUT: Duration = Duration::from_secs(30);

struct Session {
    client: Arc<ClientSession>,
    last_used: Instant,
    /// Whether its client has been told the id.
    is_id_delivered: bool,
    /// Running requests and open streams; a session with any is in use however long it is silent.
    busy: Arc<AtomicUsize>,
}

impl Session {
    fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire) > 0
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.client.close();
    }
}

/// All sessions of one listener.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<Arc<str>, Session>>);

/// Marks a session as in use until dropped.
pub(crate) struct SessionUse {
    pub(crate) id: Arc<str>,
    pub(crate) client: Arc<ClientSession>,
    busy: Arc<AtomicUsize>,
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        self.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Sessions {
    fn locked(&self) -> MutexGuard<'_, HashMap<Arc<str>, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.locked().len()
    }

    /// Makes room for one more session of a subject that may have `most`: drops and returns its
    /// least recently used idle ones. `None` if too few are idle.
    pub(crate) fn evict_of_subject(&self, subject: &str, most: usize) -> Option<Vec<Arc<str>>> {
        let mut sessions = self.locked();
        let own = sessions
            .iter()
            .filter(|(_, session)| session.client.caller_cell.caller().subject() == subject);
        let own: Vec<_> = own
            .map(|(id, session)| (session.last_used, session.is_busy(), id.clone()))
            .collect();
        let too_many = (own.len() + 1).saturating_sub(most);
        let mut idle: Vec<_> = own.into_iter().filter(|(_, busy, _)| !busy).collect();
        if idle.len() < too_many {
            return None;
        }
        idle.sort_unstable();
        idle.truncate(too_many);
        let ended: Vec<_> = idle.into_iter().map(|(_, _, id)| id).collect();
        sessions.retain(|id, _| !ended.contains(id));
        Some(ended)
    }

    /// Makes room for one more session, of at most `most` over all subjects: drops and returns the
    /// least recently used idle ones. If all are in use, the subject with the most sessions loses
    /// one.
    pub(crate) fn evict(&self, most: usize) -> Vec<Arc<str>> {
        let mut sessions = self.locked();
        let too_many = (sessions.len() + 1).saturating_sub(most.max(1));
        let mut ended = Vec::new();
        while ended.len() < too_many {
            let Some(id) = longest_idle(&sessions).or_else(|| lru_of_largest_subject(&sessions))
            else {
                break;
            };
            sessions.remove(&id);
            ended.push(id);
        }
        ended
    }

    /// Binds a new session to the subject that began it. From here on it counts and can expire,
    /// even if its client left before it was told the id.
    pub(crate) fn begin(&self, id: Arc<str>, client: Arc<ClientSession>) {
        let session = Session {
            client,
            last_used: Instant::now(),
            is_id_delivered: false,
            busy: Arc::default(),
        };
        self.locked().insert(id, session);
    }

    /// The session of that id, whatever its subject.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<ClientSession>> {
        self.locked().get(id).map(|session| session.client.clone())
    }

    /// Marks a session as in use, if it belongs to the caller's subject.
    pub(crate) fn enter(&self, id: &str, caller: &Arc<Caller>) -> Option<SessionUse> {
        let mut sessions = self.locked();
        let (id, _) = sessions.get_key_value(id)?;
        let id = Arc::clone(id);
        let session = sessions
            .get_mut(&id)
            .filter(|session| session.client.caller_cell.caller().subject() == caller.subject())?;
        session.client.caller_cell.replace(caller);
        session.is_id_delivered = true;
        session.last_used = Instant::now();
        session.busy.fetch_add(1, Ordering::AcqRel);
        Some(SessionUse {
            id,
            client: session.client.clone(),
            busy: session.busy.clone(),
        })
    }

    /// Drops and returns all of them.
    pub(crate) fn clear(&self) -> Vec<Arc<str>> {
        self.locked().drain().map(|(id, _)| id).collect()
    }

    pub(crate) fn end(&self, id: &str) {
        self.locked().remove(id);
    }

    /// Drops and returns the sessions nobody has used for `idle`, and those whose authorization has
    /// ended.
    pub(crate) fn reap(&self, idle: Duration) -> Vec<Arc<str>> {
        let mut sessions = self.locked();
        let mut reaped = Vec::new();
        sessions.retain(|id, session| {
            let busy = session.is_busy();
            if busy {
                session.last_used = Instant::now();
            }
            let idle = if session.is_id_delivered {
                idle
            } else {
                idle.min(UNUSED_SESSION_TIMEOUT)
            };
            let used = busy || session.last_used.elapsed() < idle;
            let keep = used && !session.client.caller_cell.caller().is_over();
            if !keep {
                reaped.push(id.clone());
            }
            keep
        });
        reaped
    }
}

fn longest_idle(sessions: &HashMap<Arc<str>, Session>) -> Option<Arc<str>> {
    let idle = sessions.iter().filter(|(_, session)| !session.is_busy());
    let longest = idle.min_by_key(|(_, session)| session.last_used);
    longest.map(|(id, _)| id.clone())
}

/// The least recently used session of the subject with the most sessions.
fn lru_of_largest_subject(sessions: &HashMap<Arc<str>, Session>) -> Option<Arc<str>> {
    let mut counts = HashMap::<String, (usize, Instant, &Arc<str>)>::new();
    for (id, session) in sessions {
        let subject = session.client.caller_cell.caller().subject().to_owned();
        let entry = counts.entry(subject).or_insert((0, session.last_used, id));
        entry.0 += 1;
        if session.last_used < entry.1 {
            (entry.1, entry.2) = (session.last_used, id);
        }
    }
    let heaviest = counts
        .into_values()
        .max_by_key(|(count, used, _)| (*count, std::cmp::Reverse(*used)));
    heaviest.map(|(_, _, id)| id.clone())
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{Identity, Registry, Server, caller_cell::CallerCell, server::Shutdown};

    fn caller(subject: &str) -> Arc<Caller> {
        Arc::new(Caller::new(subject))
    }

    fn begin(sessions: &Sessions, id: &str, caller: Arc<Caller>) {
        let server = Server::new(Registry::new(), Identity::new("test", "1.0.0"));
        let caller_cell = CallerCell::new(caller);
        let client = ClientSession::new(&server.0, caller_cell, &Shutdown::default());
        sessions.begin(id.into(), Arc::new(client));
    }

    #[test]
    fn a_session_is_used_only_by_the_subject_that_began_it() {
        let sessions = Sessions::default();
        begin(&sessions, "s1", caller("alice"));
        assert!(sessions.enter("s1", &caller("alice")).is_some());
        assert!(sessions.enter("s1", &caller("mallory")).is_none());
        assert!(sessions.enter("s2", &caller("alice")).is_none());
        sessions.end("s1");
        assert!(sessions.enter("s1", &caller("alice")).is_none());
    }

    #[test]
    fn only_idle_sessions_are_forgotten() {
        let sessions = Sessions::default();
        begin(&sessions, "busy", caller("alice"));
        let busy = sessions.enter("busy", &caller("alice"));
        begin(&sessions, "idle", caller("alice"));
        assert_eq!(
            sessions.reap(Duration::from_mins(1)),
            Vec::<Arc<str>>::new()
        );
        assert_eq!(sessions.reap(Duration::ZERO), vec![Arc::from("idle")]);
        drop(busy);
        assert_eq!(sessions.reap(Duration::ZERO), vec![Arc::from("busy")]);
    }

    #[test]
    fn a_session_ends_with_its_authorization_however_busy() {
        let sessions = Sessions::default();
        let revoked = CancellationToken::new();
        let alice = Arc::new(Caller::new("alice").with_revocation(revoked.clone()));
        begin(&sessions, "s1", alice.clone());
        let _busy = sessions.enter("s1", &alice);
        let long = Duration::from_mins(1);
        assert_eq!(sessions.reap(long), Vec::<Arc<str>>::new());
        revoked.cancel();
        // Her next token keeps the session.
        drop(sessions.enter("s1", &caller("alice")));
        assert_eq!(sessions.reap(long), Vec::<Arc<str>>::new());
        drop(sessions.enter("s1", &alice));
        assert_eq!(sessions.reap(long), vec![Arc::from("s1")]);
    }
}
