//! A ledger in a file: what it records and refuses, and what it leaves unchanged.
#![allow(
    clippy::disallowed_methods,
    reason = "tests open the ledger's file themselves"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::project::{NOW, ledger, ledger_of, source, tamper};
use rusqlite::Connection;
use serde_json::json;
use wayleave_ledger::{
    Event, FixedClock, Ledger as _, LedgerError, OpenError, Problem, Refusal, SqliteLedger,
};
use wayleave_model::digest::Digest;
use wayleave_model::ratify::Ratification;

fn reopen(folder: &Path) -> OpenError {
    SqliteLedger::open(folder, &FixedClock(NOW)).expect_err("it must not open")
}

fn ratified(text: &str, replaces: Option<&str>) -> Event {
    Event::DatasetRatified(Ratification {
        dataset: "crm".into(),
        digest: Digest::from_bytes(text.as_bytes()),
        replaces: replaces.map(|text| Digest::from_bytes(text.as_bytes())),
        who: "ana".into(),
        note: String::new(),
    })
}

fn activated(text: &str, revision: u64) -> Event {
    let (dataset, digest) = ("crm".into(), Digest::from_bytes(text.as_bytes()));
    Event::DatasetActivated {
        dataset,
        digest,
        revision,
        who: "ana".into(),
    }
}

#[tokio::test]
async fn what_is_recorded_is_found_again_after_reopening() {
    let (dir, first) = ledger_of(3).await;
    let state = first.state().await.unwrap();
    drop(first);
    let again = ledger(&dir.path().join(".wayleave"));
    assert_eq!(again.state().await.unwrap(), state);
    assert_eq!(again.epoch().await.unwrap(), 3);
    assert_eq!(state.sources().keys().collect::<Vec<_>>(), ["s2", "s3"]);
    let report = again.verify(None).await.unwrap();
    assert!(report.is_ok() && report.good == 3, "{report:?}");
}

#[tokio::test]
async fn entries_are_read_in_pages() {
    let (_dir, ledger) = ledger_of(5).await;
    let page = ledger.entries(1, 2).await.unwrap();
    assert_eq!(
        page.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
        [2, 3]
    );
    assert_eq!(page[0].event, source("s2"));
    assert_eq!(page[0].at, NOW);
    assert!(ledger.entries(5, 2).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_entry_and_a_report_print_as_json() {
    let (dir, ledger) = ledger_of(2).await;
    let entry = ledger.entries(1, 1).await.unwrap().remove(0);
    let hash = entry.hash;
    let body = json!({"name": "s2", "kind": "sqlite", "env": "CRM_DSN", "who": "ana"});
    assert_eq!(
        serde_json::to_value(&entry).unwrap(),
        json!({"seq": 2, "at": NOW, "kind": "source_added", "body": body, "hash": hash})
    );
    fs::remove_file(dir.path().join(".wayleave/ledger.head")).unwrap();
    let report = ledger.verify(None).await.unwrap();
    assert_eq!(
        serde_json::to_value(&report).unwrap(),
        json!({"good": 2, "head": format!("2:{hash}"), "problem": {"kind": "head_missing"}})
    );
}

#[tokio::test]
async fn one_handle_sees_what_another_recorded() {
    let (dir, ledger_a) = ledger_of(1).await;
    let ledger_b = ledger(&dir.path().join(".wayleave"));
    ledger_a.state().await.unwrap();
    ledger_b.append(NOW, source("b")).await.unwrap();
    assert_eq!(ledger_a.epoch().await.unwrap(), 2);
    assert!(ledger_a.state().await.unwrap().sources().contains_key("b"));
    ledger_a.append(NOW, source("a")).await.unwrap();
    assert!(ledger_b.verify(None).await.unwrap().is_ok());
}

#[tokio::test]
async fn an_act_that_does_not_fit_is_refused_and_leaves_no_entry() {
    let (_dir, ledger) = ledger_of(2).await;
    ledger.append(NOW, ratified("one", None)).await.unwrap();
    let epoch = ledger.epoch().await.unwrap();
    let retired = Event::DatasetRetired {
        dataset: "hr".into(),
        digest: Digest::from_bytes(b"one"),
        who: "ana".into(),
        note: String::new(),
    };
    let created = Event::LedgerCreated {
        ledger: "another".into(),
    };
    let off = Event::DatasetDeactivated {
        dataset: "crm".into(),
        revision: 1,
        who: "ana".into(),
    };
    let gone = Event::SourceRemoved {
        name: "s9".into(),
        who: "ana".into(),
    };
    let dsn = Event::SourceRemoved {
        name: "s2".into(),
        who: "pg://a:hunter2@h/d".into(),
    };
    let text = "`crm` changed meanwhile";
    for (event, expected) in [
        (ratified("two", None), text),
        (ratified("two", Some("zero")), text),
        (ratified("one", Some("one")), "is already ratified"),
        (activated("two", 1), text),
        (activated("one", 2), "revision 1 comes next"),
        (off, "`crm` is not active"),
        (retired, "no dataset `hr` is ratified"),
        (source("s2"), "a source `s2` is already declared"),
        (gone, "no source `s9` is declared"),
        (created, "created once"),
        (dsn, "must not hold a DSN"),
    ] {
        let error = ledger.append(NOW, event.clone()).await.unwrap_err();
        assert!(
            matches!(error, LedgerError::Refused(_)),
            "{event:?}: {error}"
        );
        assert!(error.to_string().contains(expected), "{event:?}: {error}");
        assert!(!error.to_string().contains("hunter2"));
    }
    assert_eq!(ledger.epoch().await.unwrap(), epoch);
}

#[tokio::test]
async fn a_revision_counts_every_activation_and_deactivation() {
    let (_dir, ledger) = ledger_of(1).await;
    ledger.append(NOW, ratified("one", None)).await.unwrap();
    ledger.append(NOW, activated("one", 1)).await.unwrap();
    let off = Event::DatasetDeactivated {
        dataset: "crm".into(),
        revision: 2,
        who: "ana".into(),
    };
    ledger.append(NOW, off).await.unwrap();
    ledger.append(NOW, activated("one", 3)).await.unwrap();
    let state = ledger.state().await.unwrap();
    assert_eq!(
        state
            .active()
            .map(|(name, it)| (name, it.revision))
            .collect::<Vec<_>>(),
        [("crm", 3)]
    );
    let late = ledger.append(NOW, activated("one", 3)).await.unwrap_err();
    assert!(matches!(
        late,
        LedgerError::Refused(Refusal::StaleRevision { current: 4, .. })
    ));
}

#[tokio::test]
async fn what_was_made_live_stays_so_when_another_is_ratified() {
    let (_dir, ledger) = ledger_of(1).await;
    ledger.append(NOW, ratified("one", None)).await.unwrap();
    ledger.append(NOW, activated("one", 1)).await.unwrap();
    let again = ratified("two", Some("one"));
    ledger.append(NOW, again).await.unwrap();
    let state = ledger.state().await.unwrap();
    let (_, live) = state.active().next().unwrap();
    assert_eq!(live.ratified.act.digest, Digest::from_bytes(b"one"));
    assert_eq!(
        state.ratified("crm").unwrap().act.digest,
        Digest::from_bytes(b"two")
    );
}

#[tokio::test]
async fn a_retired_dataset_is_neither_ratified_nor_active() {
    let (_dir, ledger) = ledger_of(1).await;
    ledger.append(NOW, ratified("one", None)).await.unwrap();
    ledger.append(NOW, activated("one", 1)).await.unwrap();
    let (dataset, digest) = ("crm".to_owned(), Digest::from_bytes(b"one"));
    let retired = Event::DatasetRetired {
        dataset,
        digest,
        who: "ana".into(),
        note: "old".into(),
    };
    ledger.append(NOW, retired).await.unwrap();
    let state = ledger.state().await.unwrap();
    assert!(state.ratified("crm").is_none() && state.active().next().is_none());
    ledger.append(NOW, activated("one", 2)).await.unwrap_err();
    ledger.append(NOW, ratified("one", None)).await.unwrap();
    ledger.append(NOW, activated("one", 2)).await.unwrap();
}

#[tokio::test]
async fn the_database_itself_refuses_to_change_remove_or_replace_entries() {
    let (dir, _ledger) = ledger_of(3).await;
    let conn = Connection::open(dir.path().join(".wayleave/ledger.db")).unwrap();
    for sql in [
        "UPDATE entries SET at = 0",
        "DELETE FROM entries",
        "DELETE FROM entries WHERE seq = 3",
        "INSERT OR REPLACE INTO entries SELECT 3, 0, kind, body, prev_hash, hash FROM entries WHERE seq = 3",
        "INSERT INTO entries SELECT 5, 0, kind, body, prev_hash, hash FROM entries WHERE seq = 3",
    ] {
        let error = conn.execute(sql, []).unwrap_err();
        assert!(error.to_string().contains("entries"), "{sql}: {error}");
    }
}

#[tokio::test]
async fn only_the_owner_can_enter_the_folder_or_read_its_files() {
    let (dir, _ledger) = ledger_of(2).await;
    let folder = dir.path().join(".wayleave");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let mut seen = 0;
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        seen += 1;
    }
    // The database, its log and shared memory, and the head file.
    assert_eq!(seen, 4);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
    let error = reopen(&folder);
    assert!(
        matches!(error, OpenError::Exposed { mode: 0o750, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_that_is_no_ledger_is_refused_and_left_as_it_is() {
    let other = {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.db");
        let conn = Connection::open(&path).unwrap();
        conn.execute("CREATE TABLE accounts (id)", []).unwrap();
        conn.close().unwrap();
        fs::read(path).unwrap()
    };
    for (bytes, is_database) in [
        (b"".to_vec(), false),
        (b"SQLite".to_vec(), false),
        (b"a poem".repeat(999), false),
        (other, true),
    ] {
        let (dir, ledger) = ledger_of(1).await;
        drop(ledger);
        let folder = dir.path().join(".wayleave");
        fs::write(folder.join("ledger.db"), &bytes).unwrap();
        let error = reopen(&folder);
        match error {
            OpenError::NotADatabase { .. } => assert!(!is_database),
            OpenError::Foreign { .. } => assert!(is_database),
            other => panic!("{other}"),
        }
        assert!(error.hint().is_some());
        assert_eq!(fs::read(folder.join("ledger.db")).unwrap(), bytes);
    }
}

#[tokio::test]
async fn a_ledger_of_a_newer_program_is_refused_and_left_as_it_is() {
    let (dir, open) = ledger_of(2).await;
    let folder = dir.path().join(".wayleave");
    tamper(&folder, |conn| {
        conn.pragma_update(None, "user_version", 99).unwrap();
    });
    let error = open.append(NOW, source("s")).await.unwrap_err();
    assert!(
        matches!(error, LedgerError::Newer { found: 99, .. }),
        "{error}"
    );
    drop(open);
    let before = fs::read(folder.join("ledger.db")).unwrap();
    assert!(matches!(
        reopen(&folder),
        OpenError::Newer { found: 99, .. }
    ));
    assert_eq!(fs::read(folder.join("ledger.db")).unwrap(), before);
}

#[tokio::test]
async fn a_vanished_ledger_is_not_begun_anew() {
    let (dir, ledger) = ledger_of(2).await;
    drop(ledger);
    let folder = dir.path().join(".wayleave");
    fs::remove_file(folder.join("ledger.db")).unwrap();
    assert!(matches!(reopen(&folder), OpenError::Missing { .. }));
    assert!(!folder.join("ledger.db").exists());
}

#[tokio::test]
async fn a_damaged_database_is_a_typed_error_or_a_named_problem() {
    let (dir, ledger) = ledger_of(30).await;
    drop(ledger);
    let folder = dir.path().join(".wayleave");
    let path = folder.join("ledger.db");
    let whole = fs::read(&path).unwrap();
    let reference = crate::project::ledger(&folder)
        .entries(0, 99)
        .await
        .unwrap();
    // Every 61st byte, in every page of the file.
    let mut found = 0;
    for place in (0..whole.len()).step_by(61) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x10;
        for beside in ["ledger.db-wal", "ledger.db-shm"] {
            let _ = fs::remove_file(folder.join(beside));
        }
        fs::write(&path, &bytes).unwrap();
        let Ok(ledger) = SqliteLedger::open(&folder, &FixedClock(NOW)) else {
            found += 1;
            continue;
        };
        let verified = ledger.verify(None).await;
        if verified.is_ok_and(|report| report.is_ok()) {
            // Unused bytes of the file contain no data.
            assert_eq!(
                ledger.entries(0, 99).await.unwrap(),
                reference,
                "byte {place}"
            );
        } else {
            found += 1;
        }
    }
    assert!(found > 50, "only {found} of the damages touched anything");
}

#[tokio::test]
async fn a_head_that_a_crash_left_behind_is_accepted_and_brought_up_to_date() {
    let (dir, open) = ledger_of(2).await;
    let folder = dir.path().join(".wayleave");
    let head = folder.join("ledger.head");
    let behind = fs::read(&head).unwrap();
    open.append(NOW, source("later")).await.unwrap();
    let ahead = fs::read(&head).unwrap();
    fs::write(&head, &behind).unwrap();
    assert!(open.verify(None).await.unwrap().is_ok());
    drop(open);
    let again = ledger(&folder);
    assert_eq!(fs::read(&head).unwrap(), ahead);
    assert!(again.verify(None).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_head_file_lost_before_the_second_entry_is_made_again_and_later_is_a_problem() {
    let (dir, open) = ledger_of(1).await;
    let folder = dir.path().join(".wayleave");
    let head = folder.join("ledger.head");
    fs::remove_file(&head).unwrap();
    drop(open);
    let again = ledger(&folder);
    assert!(head.exists());
    again.append(NOW, source("s")).await.unwrap();
    fs::remove_file(&head).unwrap();
    assert_eq!(
        again.verify(None).await.unwrap().problem,
        Some(Problem::HeadMissing)
    );
    drop(again);
    let refusing = ledger(&folder);
    assert!(!head.exists(), "evidence must not be papered over");
    assert!(matches!(
        refusing.state().await.unwrap_err(),
        LedgerError::Tampered { .. }
    ));
    let error = refusing.append(NOW, source("t")).await.unwrap_err();
    assert!(matches!(error, LedgerError::Tampered { .. }), "{error}");
}

#[tokio::test]
async fn a_lock_held_too_long_is_reported_as_busy() {
    let (dir, ledger) = ledger_of(1).await;
    let holder = Connection::open(dir.path().join(".wayleave/ledger.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = ledger.append(NOW, source("s")).await.unwrap_err();
    assert!(matches!(error, LedgerError::Busy { .. }), "{error}");
    holder.execute_batch("ROLLBACK").unwrap();
    ledger.append(NOW, source("s")).await.unwrap();
}
