use std::path::Path;

use wayleave_ledger::{NewSource, SystemClock};
use wayleave_model::mapping::SourceKind;

use super::*;

const TEST_TIMEOUT: Duration = Duration::from_secs(20);
const NEVER: Duration = Duration::from_hours(1);

fn governance(folder: &Path) -> Governance {
    Governance::open(folder, Arc::new(SystemClock)).unwrap()
}

async fn declare(other: &Governance, name: &str) {
    let source = NewSource {
        name: name.to_owned(),
        kind: SourceKind::Sqlite,
        env: "CRM_DSN".to_owned(),
    };
    other.add_source(source, "ana").await.unwrap();
}

#[tokio::test]
async fn what_another_did_is_seen_without_asking() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (governance(folder.path()), governance(folder.path()));
    let stop = CancellationToken::new();
    let watch = LedgerWatch::start(ours, Duration::from_millis(5), stop.clone())
        .await
        .unwrap();
    let mut moved = watch.subscribe();
    declare(&other, "crm").await;
    tokio::time::timeout(TEST_TIMEOUT, moved.changed())
        .await
        .unwrap()
        .unwrap();
    assert!(watch.now().sources().contains_key("crm"));
    stop.cancel();
    watch.closed().await;
}

#[tokio::test]
async fn a_fresh_state_holds_all_that_was_done_before_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (governance(folder.path()), governance(folder.path()));
    let watch = LedgerWatch::start(ours, NEVER, CancellationToken::new())
        .await
        .unwrap();
    // The first poll starts at once and may still be running.
    let before = watch.fresh().await.unwrap();
    for number in 0..20 {
        let name = format!("crm_{number}");
        declare(&other, &name).await;
        let fresh = watch.fresh().await.unwrap();
        assert!(fresh.sources().contains_key(&name));
        assert!(Arc::ptr_eq(&fresh, &watch.now()));
    }
    assert!(before.sources().is_empty());
}

#[tokio::test]
async fn while_nothing_moves_nobody_is_told_and_nothing_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let watch = LedgerWatch::start(
        governance(folder.path()),
        Duration::from_millis(1),
        CancellationToken::new(),
    )
    .await
    .unwrap();
    let mut moved = watch.subscribe();
    moved.mark_unchanged();
    let state = watch.now();
    for _ in 0..50 {
        assert!(Arc::ptr_eq(&state, &watch.fresh().await.unwrap()));
    }
    assert!(!moved.has_changed().unwrap());
}

#[tokio::test]
async fn many_who_ask_at_once_all_see_what_was_done_before() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (governance(folder.path()), governance(folder.path()));
    let watch = LedgerWatch::start(ours, Duration::from_millis(1), CancellationToken::new())
        .await
        .unwrap();
    for number in 0..10 {
        let name = format!("crm_{number}");
        declare(&other, &name).await;
        let asking: Vec<_> = (0..16)
            .map(|_| {
                let (watch, name) = (watch.clone(), name.clone());
                tokio::spawn(async move {
                    let state = watch.fresh().await.unwrap();
                    state.sources().contains_key(&name)
                })
            })
            .collect();
        for asked in asking {
            assert!(asked.await.unwrap(), "{name}");
        }
    }
}

#[tokio::test]
async fn a_damaged_ledger_is_told_and_the_last_good_state_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (governance(folder.path()), governance(folder.path()));
    let watch = LedgerWatch::start(ours, NEVER, CancellationToken::new())
        .await
        .unwrap();
    declare(&other, "crm").await;
    let good = watch.fresh().await.unwrap();
    declare(&other, "erp").await;
    std::fs::write(folder.path().join(".wayleave/ledger.head"), "not a head").unwrap();
    assert!(watch.fresh().await.is_err());
    assert!(Arc::ptr_eq(&good, &watch.now()));
}
