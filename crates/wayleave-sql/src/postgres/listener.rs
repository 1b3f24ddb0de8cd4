//! Learns of changes from triggers that an operator has installed, without a query.
//!
//! One session of the source listens. It begins with the first request for a table and ends after a
//! while without requests. While it does not listen, nothing is known of a table and callers have
//! to read. Times are of the monotonic clock.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::Notification;
use tokio_util::sync::{CancellationToken, DropGuard};
use wayleave_store::Limits;

use super::connect::TIMEOUT_GRACE;
use super::pool::PgSession;
use super::triggers::{self, CHANNEL, Coverage};
use crate::adapter::TableName;
use crate::dsn::Server;

/// Time without requests after which the session is ended.
const IDLE_TIMEOUT: Duration = Duration::from_mins(2);
/// The first pause after a lost session. It doubles with each failure in a row, up to the check
/// interval.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Maximum number of tables that are listened for.
const MAX_TABLES: usize = 10_000;

/// Listens for the changes of a database.
pub(super) struct ChangeListener {
    shared: Arc<Shared>,
    /// Ends the session with the store.
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    server: Arc<Server>,
    limits: Limits,
    /// Interval between lookups of the triggers.
    check_interval: Duration,
    state: Mutex<ListenerState>,
    /// Notified when a table is requested whose triggers have not been looked up.
    wanted: Notify,
}

/// The requested tables and the notifications received.
#[derive(Default)]
struct ListenerState {
    /// The requested tables; `None` until their triggers have been looked up.
    tables: BTreeMap<TableName, Option<Coverage>>,
    /// Number of notifications of each covered table.
    counts: HashMap<u32, u64>,
    /// Number of sessions that have listened. Notifications sent between two of them are lost.
    sessions: u64,
    last_request: Option<Instant>,
    is_running: bool,
}

/// Why a session ended.
enum SessionEnd {
    /// There are no more requests.
    Idle,
    /// There is nothing to listen for, or no way to listen.
    NothingToListenFor,
    /// The connection was lost.
    Lost,
}

impl ChangeListener {
    pub(super) fn new(server: Arc<Server>, limits: Limits, check_interval: Duration) -> Self {
        let stop = CancellationToken::new();
        Self {
            shared: Arc::new(Shared {
                server,
                limits,
                check_interval,
                state: Mutex::default(),
                wanted: Notify::new(),
            }),
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
            task: Mutex::default(),
        }
    }

    /// A number that changes when any of these tables may have changed; `None` while that is not
    /// known without reading them.
    pub(super) fn token(&self, tables: Vec<TableName>) -> Option<u64> {
        let mut state = self.shared.state();
        state.last_request = Some(Instant::now());
        if !state.is_running && !self.stop.is_cancelled() {
            state.is_running = true;
            let listening = Arc::clone(&self.shared).run(self.stop.clone());
            let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
            *task = Some(tokio::spawn(listening));
        }
        let mut hasher = DefaultHasher::new();
        state.sessions.hash(&mut hasher);
        let mut is_covered = true;
        for table in tables {
            is_covered &= state.hash(&table, &mut hasher);
            if state.tables.len() < MAX_TABLES && !state.tables.contains_key(&table) {
                state.tables.insert(table, None);
                self.shared.wanted.notify_one();
            }
        }
        is_covered.then(|| hasher.finish())
    }

    /// Ends the session and waits for it.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        let task = {
            let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
            task.take()
        };
        if let Some(task) = task {
            // A panic has been reported where it happened.
            let _ = task.await;
        }
    }
}

impl ListenerState {
    /// Hashes what is known of a table; returns whether its changes are announced.
    fn hash(&self, table: &TableName, hasher: &mut DefaultHasher) -> bool {
        let Some(Some(coverage)) = self.tables.get(table) else {
            return false;
        };
        let Some(members) = &coverage.members else {
            return false;
        };
        coverage.definition.hash(hasher);
        for member in members {
            (member, self.counts.get(member)).hash(hasher);
        }
        true
    }

    fn forget(&mut self) {
        self.counts.clear();
        for coverage in self.tables.values_mut() {
            *coverage = None;
        }
    }

    fn is_idle(&self) -> bool {
        self.last_request
            .is_none_or(|it| it.elapsed() > IDLE_TIMEOUT)
    }
}

/// Resets the state when the task ends, however it ends: the next request starts anew.
struct RunningGuard<'a>(&'a Shared);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        *state = ListenerState {
            sessions: state.sessions,
            ..ListenerState::default()
        };
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, ListenerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens until stopped or unwanted.
    async fn run(self: Arc<Self>, stop: CancellationToken) {
        let _running = RunningGuard(&self);
        let mut retry_pause = FIRST_PAUSE;
        loop {
            let sessions = self.state().sessions;
            let end = tokio::select! {
                () = stop.cancelled() => break,
                end = self.listen() => end,
            };
            self.state().forget();
            if self.state().sessions > sessions {
                retry_pause = FIRST_PAUSE;
            }
            let pause = match end {
                SessionEnd::Idle => break,
                SessionEnd::NothingToListenFor => self.check_interval,
                SessionEnd::Lost => {
                    let pause = retry_pause.min(self.check_interval);
                    retry_pause = pause * 2;
                    pause
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.wanted.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            if self.state().is_idle() {
                break;
            }
        }
    }

    /// Opens a session and counts its notifications, until it ends.
    async fn listen(self: &Arc<Self>) -> SessionEnd {
        let shared = Arc::clone(self);
        let on_notification = Arc::new(move |it: &Notification| shared.count(it));
        let opened = PgSession::open_listening(&self.server, self.limits, on_notification).await;
        let Ok(mut session) = opened else {
            return SessionEnd::Lost;
        };
        // A pooler would hand the session, and its notifications, to another client.
        if session.pooled {
            session.close().await;
            return SessionEnd::NothingToListenFor;
        }
        let end = self.listen_on(&mut session).await;
        session.close().await;
        end
    }

    async fn listen_on(&self, session: &mut PgSession) -> SessionEnd {
        // A standby cannot listen.
        if let Err(error) = session.query(&format!("LISTEN {CHANNEL}"), &[]).await {
            return if error.is_closed() {
                SessionEnd::Lost
            } else {
                SessionEnd::NothingToListenFor
            };
        }
        self.state().sessions += 1;
        loop {
            match self.look_for_triggers(session).await {
                Some(true) => {}
                Some(false) => return SessionEnd::NothingToListenFor,
                None => return SessionEnd::Lost,
            }
            tokio::select! {
                () = session.ended() => return SessionEnd::Lost,
                () = self.wanted.notified() => {}
                // Also detects a connection that was lost silently.
                () = tokio::time::sleep(self.check_interval) => {}
            }
            if self.state().is_idle() {
                return SessionEnd::Idle;
            }
        }
    }

    /// Looks up the triggers of the requested tables. Returns whether there are any; `None` if the
    /// server does not answer.
    async fn look_for_triggers(&self, session: &PgSession) -> Option<bool> {
        let tables: Vec<TableName> = self.state().tables.keys().cloned().collect();
        let looking = triggers::coverage(&session.client, &tables);
        let looked = timeout(self.limits.statement + TIMEOUT_GRACE, looking).await;
        let found = looked.ok()?.ok()?;
        let mut state = self.state();
        let members: Vec<u32> = found
            .iter()
            .filter_map(|it| it.members.clone())
            .flatten()
            .collect();
        state.counts.retain(|oid, _| members.contains(oid));
        for member in &members {
            state.counts.entry(*member).or_default();
        }
        for (table, coverage) in tables.into_iter().zip(found) {
            state.tables.insert(table, Some(coverage));
        }
        Some(!members.is_empty())
    }

    fn count(&self, notification: &Notification) {
        // Any role may send a notification, so only covered tables are counted.
        if let Ok(oid) = notification.payload().parse::<u32>()
            && let Some(count) = self.state().counts.get_mut(&oid)
        {
            *count += 1;
        }
    }
}
