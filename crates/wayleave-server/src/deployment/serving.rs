//! The served datasets of a deployment, kept in line with the ledger.
//!
//! Every change takes the same path, whoever made it: the ledger's state, the datasets it makes
//! live, one snapshot of them for reads, one commit of the lists. Changes are made one at a time;
//! readers and callers hold snapshots and never wait for a change.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use wayleave_ledger::{Governance, LedgerError, State};
use wayleave_mcp::Registry;
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;
use wayleave_plan::active_datasets::ActiveDatasetsError;
use wayleave_project::Project;
use wayleave_surface::ReadService;
use wayleave_surface::datasets::DatasetPrimitives;

use super::change_limit::ChangeLimit;
use crate::active_settings::ActiveSettings;
use crate::stores::SourceStores;
use crate::watch::LedgerWatch;
use wayleave_project::activation::ActivationBackend;
use wayleave_project::datasets::{DatasetFault, ServedDatasets};
use wayleave_project::draft::ListDraftsError;
use wayleave_project::draft_cache::{DraftCache, DraftSummary};
use wayleave_project::explanation::with_causes;
use wayleave_project::meta::MetaRegistry;
use wayleave_project::source_probe::{ConnectionDrift, MappingComparison, SourceProbe};
use wayleave_project::suspension::Suspensions;

/// Interval at which a faulty dataset is loaded again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum time an act waits for clients to be notified.
const NOTICE_TIMEOUT: Duration = Duration::from_millis(500);

/// The served datasets, and everything needed to change them.
pub(crate) struct ServingContext {
    pub(super) project: Project,
    pub(super) probe: SourceProbe,
    pub(super) watch: LedgerWatch,
    pub(super) service: ReadService,
    pub(super) registry: Registry,
    pub(super) stores: Arc<SourceStores>,
    pub(super) now: ArcSwap<ServedDatasets>,
    /// The findings of the last comparison of each source. Changed while `primitives` is held, and
    /// sent with every change of them or of the served mappings.
    pub(super) suspensions: watch::Sender<Arc<Suspensions>>,
    pub(super) settings: Arc<ActiveSettings>,
    pub(super) drafts: DraftCache,
    pub(super) change_limit: ChangeLimit,
    /// Held while the served datasets are changed.
    pub(super) primitives: Mutex<DatasetPrimitives>,
    /// The registered authoring operations.
    pub(super) meta: std::sync::Mutex<MetaRegistry>,
}

impl ServingContext {
    /// The datasets served now.
    pub(crate) fn live(&self) -> Arc<ServedDatasets> {
        self.now.load_full()
    }

    /// Applies the latest snapshot of the ledger to the served datasets.
    pub(crate) async fn sync_with_ledger(&self) {
        let mut primitives = self.primitives.lock().await;
        // Read under the lock, so that no older state replaces a newer one.
        let state = self.watch.now();
        let before = self.live();
        let next = before.follow(&state, self.project.governance()).await;
        self.stores.set_sources(state.sources());
        log_changes(&before, &next);
        let next = Arc::new(next);
        if next.serves_as(&before) {
            self.now.store(next);
            return;
        }
        // No await below, so a caller that goes away leaves nothing half done.
        let suspensions = self.suspensions.borrow().clone();
        self.publish(&mut primitives, &next, suspensions);
    }

    /// Serves these datasets without the suspended streams, and commits the lists. Suspensions
    /// become visible only once they are in force.
    pub(super) fn publish(
        &self,
        primitives: &mut DatasetPrimitives,
        next: &Arc<ServedDatasets>,
        suspensions: Arc<Suspensions>,
    ) {
        match next.active_datasets() {
            Ok(active) => {
                let active = active.with_suspended(Arc::new(suspensions.streams(next)));
                let change = primitives.change(&active);
                self.service.replace_datasets(active);
                self.now.store(Arc::clone(next));
                self.suspensions.send_replace(suspensions);
                match change {
                    Ok(batch) => drop(self.registry.commit(batch)),
                    Err(error) => tracing::error!(%error, "a bug: a dataset cannot be offered"),
                }
            }
            Err(error) => tracing::error!(%error, "a bug: what is served contradicts itself"),
        }
    }

    /// Follows the ledger until `stop`.
    pub(crate) async fn follow(self: Arc<Self>, stop: CancellationToken) {
        let mut moved = self.watch.subscribe();
        // Apply changes made before this task subscribed.
        moved.mark_changed();
        loop {
            let has_faults = self.live().faults().next().is_some();
            tokio::select! {
                () = stop.cancelled() => return,
                told = moved.changed() => if told.is_err() { return },
                () = tokio::time::sleep(RETRY_INTERVAL), if has_faults => {}
            }
            self.sync_with_ledger().await;
        }
    }

    /// The drafts of the project. An error is logged here, and hides only drafts, never served
    /// datasets.
    pub(super) async fn drafts(&self) -> Result<Vec<Arc<DraftSummary>>, ListDraftsError> {
        let drafts = self.drafts.list(&self.project).await;
        if let Err(error) = &drafts {
            tracing::warn!(error = with_causes(error), "the drafts cannot be listed");
        }
        drafts
    }

    pub(crate) fn project(&self) -> &Project {
        &self.project
    }

    pub(crate) fn probe(&self) -> &SourceProbe {
        &self.probe
    }

    pub(crate) fn service(&self) -> &ReadService {
        &self.service
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn stores(&self) -> Arc<SourceStores> {
        Arc::clone(&self.stores)
    }

    async fn wait_for_notices(&self) {
        let revision = self.registry.revision();
        self.registry.settled(revision, NOTICE_TIMEOUT).await;
    }
}

/// Logs new faults, once, and faults that are gone.
fn log_changes(before: &ServedDatasets, next: &ServedDatasets) {
    let same = |one: &DatasetFault, other: &DatasetFault| {
        one.digest == other.digest && one.reason.to_string() == other.reason.to_string()
    };
    for fault in next.faults() {
        let known = before.fault(&fault.dataset);
        if !known.is_some_and(|known| same(known, fault)) {
            tracing::warn!(
                dataset = fault.dataset,
                digest = fault.digest.short(),
                served = fault.fallback.map(|kept| kept.short()),
                reason = with_causes(&fault.reason),
                hint = fault.reason.hint(),
                "an active dataset is not served as it was activated"
            );
        }
    }
    for fault in before.faults() {
        if next.fault(&fault.dataset).is_none() {
            tracing::info!(dataset = fault.dataset, "nothing is wrong any more");
        }
    }
}

#[async_trait]
impl ActivationBackend for ServingContext {
    fn governance(&self) -> &Governance {
        self.project.governance()
    }

    async fn state(&self) -> Result<Arc<State>, LedgerError> {
        let state = self.watch.fresh().await?;
        self.sync_with_ledger().await;
        Ok(state)
    }

    /// A folder that cannot be listed counts as having no draft.
    async fn is_drafted(&self, dataset: &str) -> bool {
        let drafts = self.drafts().await;
        drafts.is_ok_and(|drafts| drafts.iter().any(|draft| draft.name == dataset))
    }

    async fn fits(
        &self,
        _: &State,
        mapping: &Ratified<Mapping>,
    ) -> Result<(), ActiveDatasetsError> {
        self.live().fits(mapping)
    }

    async fn compare(&self, state: &State, mapping: &Ratified<Mapping>) -> Vec<ConnectionDrift> {
        let text = String::from_utf8_lossy(mapping.bytes());
        let mut comparison = MappingComparison::new(&self.probe, state);
        comparison.compare(mapping, &text, &|_| {}).await
    }

    fn may_act(&self, who: &str) -> Result<(), Duration> {
        self.change_limit.take(who)
    }

    async fn apply(&self) -> Result<(), LedgerError> {
        self.watch.fresh().await?;
        self.sync_with_ledger().await;
        // Notify clients before the act is answered, whether this task or the one that follows the
        // ledger committed the lists.
        self.wait_for_notices().await;
        Ok(())
    }
}
