//! Files that are replaced, removed or left behind while a ledger is open.

use std::fs;
use std::path::Path;
use std::process::Command;

use wayleave_ledger::{Ledger as _, LedgerError, Problem, Witness};

use crate::project::{NOW, ledger, ledger_of, source};

fn copy_folder(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

#[tokio::test]
async fn a_ledger_restored_from_a_backup_is_followed_from_then_on() {
    let (dir, ours) = ledger_of(3).await;
    let [folder, backup] = [".wayleave", "backup"].map(|name| dir.path().join(name));
    assert_eq!(ours.epoch().await.unwrap(), 3);
    ours.state().await.unwrap();
    copy_folder(&folder, &backup);
    fs::rename(&folder, dir.path().join("aside")).unwrap();
    assert!(matches!(
        ours.epoch().await,
        Err(LedgerError::Replaced { .. })
    ));
    assert!(matches!(
        ours.state().await,
        Err(LedgerError::Replaced { .. })
    ));
    fs::rename(&backup, &folder).unwrap();
    // Another process writes to the restored ledger, and leaves its write-ahead log behind.
    let other = ledger(&folder);
    other.append(NOW, source("theirs")).await.unwrap();
    assert_eq!(ours.epoch().await.unwrap(), 4);
    assert!(ours.state().await.unwrap().sources().contains_key("theirs"));
    // This handle writes to the same ledger.
    let entry = ours.append(NOW, source("ours")).await.unwrap();
    assert_eq!(entry.seq, 5);
    assert!(other.state().await.unwrap().sources().contains_key("ours"));
    drop((ours, other));
    let report = ledger(&folder).verify(None).await.unwrap();
    assert_eq!((report.good, report.problem), (5, None));
}

#[tokio::test]
async fn what_does_not_continue_what_was_served_is_refused_until_it_is_put_back() {
    let (dir, ours) = ledger_of(3).await;
    let [folder, older, aside] = [".wayleave", "older", "aside"].map(|name| dir.path().join(name));
    copy_folder(&folder, &older);
    ours.append(NOW, source("late")).await.unwrap();
    let state = ours.state().await.unwrap();
    fs::rename(&folder, &aside).unwrap();
    fs::rename(&older, &folder).unwrap();
    for refused in [
        ours.epoch().await.err(),
        ours.append(NOW, source("x")).await.err(),
    ] {
        let Some(LedgerError::Tampered { problem, .. }) = refused else {
            panic!("{refused:?}");
        };
        let witness = Witness::Memory;
        assert!(matches!(problem, Problem::Truncated { witness: it, .. } if it == witness));
    }
    // Another ledger of the same length.
    ledger(&folder).append(NOW, source("other")).await.unwrap();
    let refused = ours.state().await;
    assert!(
        matches!(
            &refused,
            Err(LedgerError::Tampered {
                problem: Problem::Rewritten { .. },
                ..
            })
        ),
        "{refused:?}"
    );
    fs::rename(&folder, &older).unwrap();
    fs::rename(&aside, &folder).unwrap();
    assert_eq!(ours.state().await.unwrap(), state);
}

#[tokio::test]
async fn a_head_file_that_is_removed_or_overwritten_is_noticed_without_a_new_entry() {
    let (dir, ours) = ledger_of(3).await;
    let head = dir.path().join(".wayleave/ledger.head");
    let text = fs::read(&head).unwrap();
    assert_eq!(ours.epoch().await.unwrap(), 3);
    fs::write(&head, "not a head, and longer than one by far").unwrap();
    assert!(ours.epoch().await.is_err());
    fs::remove_file(&head).unwrap();
    assert!(ours.epoch().await.is_err());
    fs::write(&head, text).unwrap();
    assert_eq!(ours.epoch().await.unwrap(), 3);
}

#[tokio::test]
async fn heads_that_killed_writers_left_are_removed_by_the_next_who_opens_to_write() {
    let (dir, ours) = ledger_of(2).await;
    let folder = dir.path().join(".wayleave");
    let [left, other, longer] = [
        format!(".tmp-head-{}", "ab".repeat(32)),
        ".tmp-head-notes".to_owned(),
        format!(".tmp-head-{}-mine", "ab".repeat(32)),
    ]
    .map(|name| folder.join(name));
    for file in [&left, &other, &longer] {
        fs::write(file, "x").unwrap();
    }
    // While another process may be writing, the file could be in use.
    let writing = fs::File::open(&folder).unwrap();
    writing.lock_shared().unwrap();
    drop(ledger(&folder));
    assert!(left.exists());
    drop(writing);
    drop(ledger(&folder));
    assert_eq!(
        [&left, &other, &longer].map(|it| it.exists()),
        [false, true, true]
    );
    drop(ours);
}

#[tokio::test]
async fn the_time_that_counts_is_never_before_the_latest_entry() {
    let (_dir, ours) = ledger_of(1).await;
    for (at, source_name) in [(NOW + 9, "a"), (NOW - 9, "b"), (NOW + 5, "c")] {
        ours.append(at, source(source_name)).await.unwrap();
    }
    let state = ours.state().await.unwrap();
    assert_eq!(state.now(NOW), NOW + 9);
    assert_eq!(state.now(NOW + 10), NOW + 10);
}
