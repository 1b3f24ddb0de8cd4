//! What a deployment serves, kept in line with the ledger while it serves.
//!
//! Every change, whoever made it, goes the same way: the ledger's state, the datasets it makes
//! live, one world for reads, one commit of the lists. One change is made at a time; readers and
//! callers hold snapshots and never wait for it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use wayleave_ledger::{Governance, LedgerError, State};
use wayleave_mcp::Registry;
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;
use wayleave_plan::world::WorldError;
use wayleave_surface::ReadService;
use wayleave_surface::datasets::Offer;

use super::drafts::Drafts;
use super::pace::Pace;
use crate::Project;
use crate::activation::Seams;
use crate::datasets::{Live, Trouble};
use crate::live::{Asking, Compared, Comparison};
use crate::overview::with_causes;
use crate::stores::SourceStores;
use crate::watch::LedgerWatch;

/// How long to wait before a dataset in trouble is looked at again.
const RETRY: Duration = Duration::from_secs(5);
/// How long an act waits for clients to be told of it.
const PATIENCE: Duration = Duration::from_millis(500);

/// What is served, and all that it takes to change it.
pub(crate) struct Serving {
    pub(super) project: Project,
    pub(super) asking: Asking,
    pub(super) watch: LedgerWatch,
    pub(super) service: ReadService,
    pub(super) registry: Registry,
    pub(super) stores: Arc<SourceStores>,
    pub(super) now: ArcSwap<Live>,
    pub(super) drafts: Drafts,
    pub(super) pace: Pace,
    /// Held while what is served is changed.
    pub(super) offer: Mutex<Offer>,
}

impl Serving {
    /// What is served now.
    pub(crate) fn live(&self) -> Arc<Live> {
        self.now.load_full()
    }

    /// Brings what is served in line with the ledger as it was last seen.
    pub(crate) async fn bring(&self) {
        let mut offer = self.offer.lock().await;
        // Looked at under the lock, so that no older state follows a newer.
        let state = self.watch.now();
        let before = self.live();
        let next = before.follow(&state, self.project.governance()).await;
        self.stores.follow(state.sources());
        tell(&before, &next);
        if next.serves_as(&before) {
            self.now.store(Arc::new(next));
            return;
        }
        // From here on nothing waits, so a caller that goes away leaves nothing half done.
        match next.world() {
            Ok(world) => {
                let change = offer.change(&world);
                self.service.replace_world(world);
                self.now.store(Arc::new(next));
                match change {
                    Ok(batch) => drop(self.registry.commit(batch)),
                    Err(error) => tracing::error!(%error, "a bug: a dataset cannot be offered"),
                }
            }
            Err(error) => tracing::error!(%error, "a bug: what is served contradicts itself"),
        }
    }

    /// Follows the ledger until told to stop.
    pub(crate) async fn follow(self: Arc<Self>, stop: CancellationToken) {
        let mut moved = self.watch.subscribe();
        // What moved before it began to listen is taken up at once.
        moved.mark_changed();
        loop {
            let troubled = self.live().troubles().next().is_some();
            tokio::select! {
                () = stop.cancelled() => return,
                told = moved.changed() => if told.is_err() { return },
                () = tokio::time::sleep(RETRY), if troubled => {}
            }
            self.bring().await;
        }
    }

    async fn settle(&self) {
        let revision = self.registry.revision();
        self.registry.settled(revision, PATIENCE).await;
    }
}

/// Tells the operator what began to go wrong, once, and what goes well again.
fn tell(before: &Live, next: &Live) {
    let same = |one: &Trouble, other: &Trouble| {
        one.digest == other.digest && one.reason.to_string() == other.reason.to_string()
    };
    for trouble in next.troubles() {
        let known = before.trouble(&trouble.dataset);
        if !known.is_some_and(|known| same(known, trouble)) {
            tracing::warn!(
                dataset = trouble.dataset,
                digest = trouble.digest.short(),
                served = trouble.kept.map(|kept| kept.short()),
                reason = with_causes(&trouble.reason),
                hint = trouble.reason.hint(),
                "an active dataset is not served as it was activated"
            );
        }
    }
    for trouble in before.troubles() {
        if next.trouble(&trouble.dataset).is_none() {
            tracing::info!(dataset = trouble.dataset, "nothing is wrong any more");
        }
    }
}

#[async_trait]
impl Seams for Serving {
    fn governance(&self) -> &Governance {
        self.project.governance()
    }

    async fn state(&self) -> Result<Arc<State>, LedgerError> {
        let state = self.watch.fresh().await?;
        self.bring().await;
        Ok(state)
    }

    async fn is_drafted(&self, dataset: &str) -> bool {
        let drafts = self.drafts.of(&self.project).await.unwrap_or_default();
        drafts.iter().any(|draft| draft.name == dataset)
    }

    async fn fits(&self, _: &State, mapping: &Ratified<Mapping>) -> Result<(), WorldError> {
        self.live().fits(mapping)
    }

    async fn compare(&self, state: &State, mapping: &Ratified<Mapping>) -> Vec<Compared> {
        let text = String::from_utf8_lossy(mapping.bytes());
        let mut comparison = Comparison::new(&self.asking, state);
        comparison.of(mapping, &text, &|_| {}).await
    }

    fn may_act(&self, who: &str) -> Result<(), Duration> {
        self.pace.take(who)
    }

    async fn apply(&self) -> Result<(), LedgerError> {
        self.watch.fresh().await?;
        self.bring().await;
        // Whoever committed it, here or in the task that follows the ledger, clients are told
        // before the act is answered.
        self.settle().await;
        Ok(())
    }
}
