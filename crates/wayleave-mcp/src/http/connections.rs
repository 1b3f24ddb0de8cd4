//! The open connections: how many there may be, and which one is closed to make room for another.
//!
//! A connection is unauthenticated until a request with a good credential has come on it.
//! Unauthenticated connections have a small share of all connections, so that any number of them
//! only displace each other.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::Limits;

/// How long a connection may take to authenticate before it can be closed for another. A client
/// that connects at the same moment as many others is not cut off while its request is on its way.
const UNAUTHENTICATED_GRACE: Duration = Duration::from_millis(250);
/// How long a new connection waits for another to close.
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct Connections {
    table: Mutex<Table>,
    /// Notified when a connection has closed or authenticated.
    changed: Notify,
    max_open: usize,
    max_unauthenticated: usize,
    began: Instant,
}

#[derive(Default)]
struct Table {
    next_id: u64,
    open: HashMap<u64, Arc<Connection>>,
    unauthenticated: usize,
}

/// An open connection, as the service sees it.
pub struct Connection {
    id: u64,
    among: Arc<Connections>,
    opened: Instant,
    /// When its last request ended, or else when it was opened, in milliseconds since the listener
    /// began.
    idle_since: AtomicU64,
    /// Requests whose response has not been sent yet.
    in_flight: AtomicUsize,
    /// Of these, requests that have not been received in full.
    receiving: AtomicUsize,
    has_carried_request: AtomicBool,
    is_unauthenticated: AtomicBool,
    /// Cancelled when the connection must make room for another.
    pub(super) evicted: CancellationToken,
}

/// An open connection, until dropped.
pub(super) struct OpenConnection(Arc<Connection>);

/// A request on a connection, until its response has been sent.
pub(super) struct InFlight(Arc<Connection>);

/// A request whose body is being received.
pub(super) struct ReceiveGuard<'c>(&'c Connection);

/// The outcome of trying to admit a connection.
enum Admission {
    Admitted(OpenConnection),
    /// Another connection is closing, or can be closed at that time.
    Soon(Option<Instant>),
    None,
}

impl Connections {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        let max_open = limits.connections.max(1);
        Arc::new(Self {
            table: Mutex::default(),
            changed: Notify::new(),
            max_open,
            max_unauthenticated: limits.unauthenticated.min(max_open / 4).max(1),
            began: Instant::now(),
        })
    }

    fn locked(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Waits for room for one more connection, closing another for it. `None` if none can be closed
    /// in time.
    pub(super) async fn admit(self: &Arc<Self>) -> Option<OpenConnection> {
        let deadline = Instant::now() + ADMISSION_TIMEOUT;
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before looking, so that a connection closing in between is not missed.
            changed.as_mut().enable();
            let wake = match self.try_admit() {
                Admission::Admitted(open) => return Some(open),
                Admission::Soon(wake) => wake.map_or(deadline, |wake| wake.min(deadline)),
                Admission::None => return None,
            };
            let _ = timeout_at(wake, changed).await;
            if Instant::now() >= deadline {
                return None;
            }
        }
    }

    fn try_admit(self: &Arc<Self>) -> Admission {
        let mut table = self.locked();
        let crowded = table.unauthenticated >= self.max_unauthenticated;
        if !crowded && table.open.len() < self.max_open {
            return Admission::Admitted(table.open(self));
        }
        if table.open.values().any(|one| one.evicted.is_cancelled()) {
            return Admission::Soon(None);
        }
        if crowded {
            let Some(oldest) = table.oldest_unauthenticated() else {
                return Admission::None;
            };
            let ripe = oldest.opened + UNAUTHENTICATED_GRACE;
            if ripe > Instant::now() {
                return Admission::Soon(Some(ripe));
            }
            oldest.evicted.cancel();
            return Admission::Soon(None);
        }
        match table.longest_idle() {
            Some(idle) => {
                idle.evicted.cancel();
                Admission::Soon(None)
            }
            None => Admission::None,
        }
    }

    /// Closes the connection that was idle longest, if there is one.
    pub(super) fn close_longest_idle(&self) {
        if let Some(idle) = self.locked().longest_idle() {
            idle.evicted.cancel();
        }
    }
}

impl Table {
    fn open(&mut self, among: &Arc<Connections>) -> OpenConnection {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let connection = Arc::new(Connection {
            id,
            among: Arc::clone(among),
            opened: Instant::now(),
            idle_since: AtomicU64::new(among.millis()),
            in_flight: AtomicUsize::new(0),
            receiving: AtomicUsize::new(0),
            has_carried_request: AtomicBool::new(false),
            is_unauthenticated: AtomicBool::new(true),
            evicted: CancellationToken::new(),
        });
        self.open.insert(id, Arc::clone(&connection));
        self.unauthenticated += 1;
        OpenConnection(connection)
    }

    /// The oldest by opening time, not by last use: failed requests do not keep a connection's
    /// place.
    fn oldest_unauthenticated(&self) -> Option<&Arc<Connection>> {
        let unauthenticated = self.open.values().filter(|one| one.is_unauthenticated());
        unauthenticated.min_by_key(|one| one.opened)
    }

    fn longest_idle(&self) -> Option<&Arc<Connection>> {
        let idle = self.open.values().filter(|one| !one.is_working());
        idle.filter(|one| !one.evicted.is_cancelled())
            .min_by_key(|one| one.idle_since.load(Ordering::Relaxed))
    }
}

impl std::ops::Deref for OpenConnection {
    type Target = Arc<Connection>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let among = &self.0.among;
        let mut table = among.locked();
        table.open.remove(&self.0.id);
        if self.0.is_unauthenticated() {
            table.unauthenticated = table.unauthenticated.saturating_sub(1);
        }
        drop(table);
        among.changed.notify_waiters();
    }
}

impl Connection {
    fn is_unauthenticated(&self) -> bool {
        self.is_unauthenticated.load(Ordering::Acquire)
    }

    /// Whether it is doing work that its caller's budget counts. Receiving a slow request is not.
    fn is_working(&self) -> bool {
        let received = self.in_flight.load(Ordering::Acquire);
        received > self.receiving.load(Ordering::Acquire)
    }

    /// Whether it has carried a request.
    pub(super) fn has_carried_request(&self) -> bool {
        self.has_carried_request.load(Ordering::Relaxed)
    }

    /// Records the arrival of a request.
    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        self.has_carried_request.store(true, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlight(Arc::clone(self))
    }

    /// Marks the body of a request as being received.
    pub(super) fn receive(&self) -> ReceiveGuard<'_> {
        self.receiving.fetch_add(1, Ordering::AcqRel);
        ReceiveGuard(self)
    }

    /// Records that a request came with a good credential, so that the connection is not closed for
    /// newcomers without one.
    pub fn authenticated(&self) {
        if !self.is_unauthenticated() {
            return;
        }
        // Under the lock, so that the count of unauthenticated connections is exact.
        let mut table = self.among.locked();
        if self.is_unauthenticated.swap(false, Ordering::AcqRel) {
            table.unauthenticated = table.unauthenticated.saturating_sub(1);
            drop(table);
            self.among.changed.notify_waiters();
        }
    }

    /// The time at which it will have been idle for `limit`; `None` if it already has.
    pub(super) fn idle_until(&self, limit: Duration) -> Option<Instant> {
        let now = Instant::now();
        if self.in_flight.load(Ordering::Acquire) > 0 {
            return Some(now + limit);
        }
        let since = Duration::from_millis(self.idle_since.load(Ordering::Relaxed));
        let until = self.among.began + since + limit;
        (until > now).then_some(until)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Self(connection) = self;
        let now = connection.among.millis();
        connection.idle_since.store(now, Ordering::Relaxed);
        connection.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for ReceiveGuard<'_> {
    fn drop(&mut self) {
        self.0.receiving.fetch_sub(1, Ordering::AcqRel);
    }
}
