use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use wayleave_ledger::{Event, Governance};
use wayleave_store::{Detail, StoreError};

use super::*;
use crate::datasets::ServedDatasets;
use crate::datasets::fixture::{declare, governance, live, mapping, ratify, tamper};
use crate::source_probe::ProbeError;

/// A real ledger, with a source and clients that only record calls.
struct TestBackend {
    governance: Governance,
    drafts: Vec<&'static str>,
    source_is_dead: bool,
    /// Whether another actor acts once during the comparison with the source.
    overtaken: AtomicBool,
    asked: AtomicUsize,
    applied: AtomicUsize,
}

impl TestBackend {
    async fn new(folder: &tempfile::TempDir) -> Self {
        let governance = governance(folder.path());
        declare(&governance).await;
        Self {
            governance,
            drafts: Vec::new(),
            source_is_dead: false,
            overtaken: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
            applied: AtomicUsize::new(0),
        }
    }

    async fn epoch(&self) -> u64 {
        self.governance.ledger().epoch().await.unwrap()
    }

    async fn last(&self) -> Event {
        let epoch = self.epoch().await;
        let entries = self.governance.ledger().entries(epoch - 1, 1).await;
        entries.unwrap().remove(0).event
    }

    /// Connects, expects a refusal, and checks that nothing was recorded or applied.
    async fn refuses(&self, name: &str) -> ActivationError {
        let before = self.epoch().await;
        let error = connect(self, name, "tok_1").await.unwrap_err();
        assert_eq!(self.epoch().await, before);
        assert_eq!(self.applied.load(Ordering::Relaxed), 0);
        error
    }
}

#[async_trait]
impl ActivationBackend for TestBackend {
    fn governance(&self) -> &Governance {
        &self.governance
    }

    async fn state(&self) -> Result<Arc<State>, LedgerError> {
        self.governance.ledger().state().await
    }

    async fn is_drafted(&self, dataset: &str) -> bool {
        self.drafts.contains(&dataset)
    }

    async fn fits(
        &self,
        state: &State,
        mapping: &Ratified<Mapping>,
    ) -> Result<(), ActiveDatasetsError> {
        let live = ServedDatasets::default()
            .follow(state, &self.governance)
            .await;
        live.fits(mapping)
    }

    async fn compare(&self, _: &State, mapping: &Ratified<Mapping>) -> Vec<ConnectionDrift> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.overtaken.swap(false, Ordering::Relaxed) {
            self.governance.activate(mapping, "bob").await.unwrap();
            let name = mapping.dataset.name.as_str();
            ratify(
                &self.governance,
                &super::tests::mapping(name, name, "since"),
            )
            .await;
        }
        let dead = || ProbeError::Store {
            name: "store".to_owned(),
            cause: StoreError::Unreachable {
                detail: Detail::from_static("gone"),
            },
        };
        vec![ConnectionDrift {
            connection: "boats".to_owned(),
            source: "store".to_owned(),
            drift: if self.source_is_dead {
                Err(dead())
            } else {
                Ok(Vec::new())
            },
        }]
    }

    async fn apply(&self) -> Result<(), LedgerError> {
        self.applied.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[tokio::test]
async fn connecting_asks_the_source_records_who_and_applies() {
    let folder = tempfile::tempdir().unwrap();
    let backend = TestBackend::new(&folder).await;
    let ratified = ratify(&backend.governance, &mapping("boats", "boats", "")).await;
    let connected = connect(&backend, "boats", "tok_1").await.unwrap();
    assert_eq!((connected.revision, connected.was_active), (1, false));
    assert_eq!(
        backend.last().await,
        Event::DatasetActivated {
            dataset: "boats".to_owned(),
            digest: ratified.digest(),
            revision: 1,
            who: "tok_1".to_owned(),
        }
    );
    assert_eq!(backend.asked.load(Ordering::Relaxed), 1);
    assert_eq!(backend.applied.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn connecting_what_is_live_records_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let backend = TestBackend::new(&folder).await;
    live(&backend.governance, &mapping("boats", "boats", "")).await;
    let before = backend.epoch().await;
    let again = connect(&backend, "boats", "tok_1").await.unwrap();
    assert_eq!((again.revision, again.was_active), (1, true));
    assert_eq!(backend.epoch().await, before);
    // The source is still compared: connecting reports whether it fits.
    assert_eq!(backend.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn connecting_serves_what_was_ratified_since() {
    let folder = tempfile::tempdir().unwrap();
    let backend = TestBackend::new(&folder).await;
    live(&backend.governance, &mapping("boats", "boats", "one")).await;
    let since = ratify(&backend.governance, &mapping("boats", "boats", "two")).await;
    let connected = connect(&backend, "boats", "tok_1").await.unwrap();
    assert_eq!(connected.mapping.digest(), since.digest());
    assert_eq!((connected.revision, connected.was_active), (2, false));
}

#[tokio::test]
async fn an_unknown_name_is_refused_with_those_that_are_known_and_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let backend = TestBackend::new(&folder).await;
    ratify(&backend.governance, &mapping("boats", "boats", "")).await;
    let error = backend.refuses("postgres://u:hunter2@h/db").await;
    assert!(!format!("{error} {error:?}").contains("hunter2"));
    let ActivationError::Unknown { ratified } = error else {
        panic!("{error:?}");
    };
    assert_eq!(ratified, ["boats"]);
}

#[tokio::test]
async fn a_draft_and_a_retired_dataset_are_told_apart_from_the_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let mut backend = TestBackend::new(&folder).await;
    backend.drafts.push("cats");
    ratify(&backend.governance, &mapping("boats", "boats", "")).await;
    backend.governance.retire("boats", "ana", "").await.unwrap();
    let draft = backend.refuses("cats").await;
    assert!(matches!(draft, ActivationError::Draft { .. }), "{draft:?}");
    let retired = backend.refuses("boats").await;
    assert!(matches!(retired, ActivationError::Retired { .. }));
}

#[tokio::test]
async fn a_tampered_mapping_is_refused_before_its_source_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let backend = TestBackend::new(&folder).await;
    let ratified = ratify(&backend.governance, &mapping("boats", "boats", "")).await;
    tamper(&backend.governance, ratified.digest());
    let error = backend.refuses("boats").await;
    assert!(
        matches!(error, ActivationError::Mapping { .. }),
        "{error:?}"
    );
    assert_eq!(backend.asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_dead_source_is_not_connected() {
    let folder = tempfile::tempdir().unwrap();
    let mut backend = TestBackend::new(&folder).await;
    backend.source_is_dead = true;
    ratify(&backend.governance, &mapping("boats", "boats", "")).await;
    let error = backend.refuses("boats").await;
    assert!(
        matches!(error, ActivationError::Unmatched { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_connection_that_another_live_dataset_has_is_not_connected_twice() {
    let folder = tempfile::tempdir().unwrap();
    let backend = TestBackend::new(&folder).await;
    live(&backend.governance, &mapping("boats", "shared", "")).await;
    ratify(&backend.governance, &mapping("cats", "shared", "")).await;
    let error = backend.refuses("cats").await;
    assert!(
        matches!(error, ActivationError::Contradiction(_)),
        "{error:?}"
    );
}

#[tokio::test]
async fn whoever_is_overtaken_by_another_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let backend = TestBackend::new(&folder).await;
    ratify(&backend.governance, &mapping("boats", "boats", "")).await;
    backend.overtaken.store(true, Ordering::Relaxed);
    let connected = connect(&backend, "boats", "tok_1").await.unwrap();
    // The activation by `bob` is counted, and the mapping he ratified is compared and connected.
    assert_eq!((connected.revision, connected.was_active), (2, false));
    assert!(connected.mapping.bytes().starts_with(b"# since"));
    assert_eq!(backend.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn disconnecting_records_once_and_the_second_time_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let backend = TestBackend::new(&folder).await;
    live(&backend.governance, &mapping("boats", "boats", "")).await;
    let first = disconnect(&backend, "boats", "tok_1").await.unwrap();
    assert_eq!((first.revision, first.was_active), (2, true));
    let before = backend.epoch().await;
    let second = disconnect(&backend, "boats", "tok_1").await.unwrap();
    assert_eq!((second.revision, second.was_active), (2, false));
    assert_eq!(backend.epoch().await, before);
    assert_eq!(backend.applied.load(Ordering::Relaxed), 1);
    let unknown = disconnect(&backend, "ghosts", "tok_1").await.unwrap_err();
    assert!(matches!(unknown, ActivationError::Unknown { .. }));
}
