//! The current state of the ledger, whichever process wrote to it.
//!
//! One task polls the ledger's epoch, which is cheap, and reads its state only if the epoch has
//! changed, or if its files were replaced. This module must not know what a change means.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::{
    sync::{Mutex, watch},
    time::MissedTickBehavior,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use wayleave_ledger::{FileStamp, Governance, LedgerError, State};

use wayleave_project::explanation::with_causes;

/// Interval at which a served project polls its ledger.
pub const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Follows a ledger. Cheap to clone; every clone follows the same one.
#[derive(Clone)]
pub struct LedgerWatch {
    shared: Arc<Shared>,
    tasks: TaskTracker,
}

struct Shared {
    governance: Governance,
    snapshot: ArcSwap<LedgerSnapshot>,
    moved: watch::Sender<u64>,
    /// Held while the state is read, so that an older one never replaces a newer one.
    reading: Mutex<()>,
}

/// The ledger at one time.
///
/// The state has at least the entries up to the epoch, and perhaps more, which the next poll finds.
#[derive(Debug)]
pub struct LedgerSnapshot {
    epoch: u64,
    revision: u64,
    state: Arc<State>,
    /// The folder with the frozen mappings of the active datasets.
    frozen: Option<FileStamp>,
}

impl LedgerSnapshot {
    /// The number of this snapshot in this process: a later one has a higher number, even if the
    /// ledger was restored to an earlier epoch.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The state.
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }
}

impl std::fmt::Debug for LedgerWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LedgerWatch")
            .field("epoch", &self.shared.snapshot.load().epoch)
            .finish_non_exhaustive()
    }
}

impl LedgerWatch {
    /// Reads the state, then polls for changes at the interval `every`, until `stop`.
    pub async fn start(
        governance: Governance,
        every: Duration,
        stop: CancellationToken,
    ) -> Result<Self, LedgerError> {
        let epoch = governance.ledger().epoch().await?;
        let state = governance.ledger().state().await?;
        // The code that loads the mappings withholds and reports bad ones.
        let frozen = governance.frozen_folder()?;
        let shared = Arc::new(Shared {
            governance,
            snapshot: ArcSwap::from_pointee(LedgerSnapshot {
                epoch,
                revision: 0,
                state,
                frozen,
            }),
            moved: watch::Sender::new(epoch),
            reading: Mutex::new(()),
        });
        let tasks = TaskTracker::new();
        tasks.spawn(Arc::clone(&shared).follow(every, stop));
        tasks.close();
        Ok(Self { shared, tasks })
    }

    /// The last known state, without a poll.
    pub fn now(&self) -> Arc<State> {
        Arc::clone(&self.shared.snapshot.load().state)
    }

    /// The same, with its revision.
    pub fn snapshot(&self) -> Arc<LedgerSnapshot> {
        self.shared.snapshot.load_full()
    }

    /// The state including everything that any process recorded before this call.
    ///
    /// Costs one read of the ledger's end when nothing has changed.
    pub async fn fresh(&self) -> Result<Arc<State>, LedgerError> {
        let snapshot = self.shared.refresh().await?;
        Ok(Arc::clone(&snapshot.state))
    }

    /// The same as [`fresh`](Self::fresh), with its revision.
    pub async fn refresh(&self) -> Result<Arc<LedgerSnapshot>, LedgerError> {
        self.shared.refresh().await
    }

    /// Signals every new epoch; of several in quick succession perhaps only the last. When it
    /// signals, [`now`](Self::now) has the state.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.shared.moved.subscribe()
    }

    /// Waits until the polling task has stopped.
    pub async fn closed(&self) {
        self.tasks.wait().await;
    }
}

impl Shared {
    async fn follow(self: Arc<Self>, every: Duration, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failing = false;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let refreshed = self.refresh().await;
            // Logged when the failure begins and when it ends, not four times a second.
            match (&refreshed, failing) {
                (Err(error), false) => {
                    let reason = with_causes(error);
                    tracing::error!(
                        reason,
                        hint = error.hint(),
                        "the ledger cannot be read; all requests are refused"
                    );
                }
                (Ok(_), true) => tracing::info!("the ledger can be read again"),
                _ => {}
            }
            failing = refreshed.is_err();
        }
    }

    async fn refresh(&self) -> Result<Arc<LedgerSnapshot>, LedgerError> {
        let ledger = self.governance.ledger();
        let asked = ledger.epoch().await?;
        if let Some(snapshot) = self.known_at(asked, self.governance.frozen_folder()?) {
            return Ok(snapshot);
        }
        let _reading = self.reading.lock().await;
        // Read in this order, so that the state is never older than its epoch.
        let epoch = ledger.epoch().await?;
        let frozen = self.governance.frozen_folder()?;
        if let Some(snapshot) = self.known_at(epoch, frozen) {
            return Ok(snapshot);
        }
        let state = ledger.state().await?;
        let before = self.snapshot.load_full();
        if !is_same_folder(before.frozen, frozen) {
            let checked = self.governance.check_active(&state).await;
            checked.map_err(|error| LedgerError::Frozen {
                source: Box::new(error),
            })?;
        }
        let revision = before.revision.saturating_add(1);
        let snapshot = Arc::new(LedgerSnapshot {
            epoch,
            revision,
            state,
            frozen,
        });
        self.snapshot.store(Arc::clone(&snapshot));
        self.moved.send_if_modified(|told| {
            let moved = *told != epoch;
            *told = epoch;
            moved
        });
        Ok(snapshot)
    }

    fn known_at(&self, epoch: u64, frozen: Option<FileStamp>) -> Option<Arc<LedgerSnapshot>> {
        let snapshot = self.snapshot.load();
        let is_known = snapshot.epoch == epoch && is_same_folder(snapshot.frozen, frozen);
        is_known.then(|| Arc::clone(&snapshot))
    }
}

fn is_same_folder(one: Option<FileStamp>, other: Option<FileStamp>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_same_file(&other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

#[cfg(test)]
mod tests;
