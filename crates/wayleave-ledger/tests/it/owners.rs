//! Owners: the acts they must sign, and ledgers with unsigned acts.
#![allow(
    clippy::disallowed_methods,
    reason = "tests open the ledger's file themselves"
)]

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, params};
use wayleave_ledger::{
    EntryHash, FixedClock, Governance, GovernanceError, LedgerError, NewSource, OwnerKeyFile,
    Problem, Refusal, SecretString, TrustAnchor, UnlockedKey, Witness,
};
use wayleave_model::mapping::SourceKind;

use crate::project::{NOW, governance, mapping, ratify_request, tamper};

/// Creates a key.
fn key(folder: &Path, name: &str) -> Arc<UnlockedKey> {
    let passphrase = SecretString::from("four plain words here".to_owned());
    Arc::new(OwnerKeyFile::create(&folder.join(name), &passphrase).unwrap())
}

/// Creates a project with one owner, and returns the owner's key.
async fn owned(folder: &Path) -> (Governance, Arc<UnlockedKey>) {
    let ana = key(folder, "ana.key");
    let governance = governance(folder).with_signer(ana.clone());
    let added = governance.add_owner("ana", ana.key().clone(), "ana");
    assert!(added.await.unwrap().signature.is_some());
    (governance, ana)
}

fn source(name: &str) -> NewSource {
    NewSource {
        name: name.to_owned(),
        kind: SourceKind::Sqlite,
        env: "CRM_DSN".to_owned(),
    }
}

fn refusal<T: std::fmt::Debug>(result: Result<T, GovernanceError>) -> Refusal {
    match result.unwrap_err() {
        GovernanceError::Ledger(LedgerError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn once_there_is_an_owner_no_decision_goes_unsigned() {
    let dir = tempfile::tempdir().unwrap();
    let unsigned = governance(dir.path());
    unsigned.add_source(source("before"), "ana").await.unwrap();
    let (signed, ana) = owned(dir.path()).await;
    for refused in [
        unsigned.add_source(source("crm"), "ana").await.map(drop),
        unsigned.remove_source("before", "ana").await.map(drop),
        unsigned.remove_owner("ana", "ana", "").await.map(drop),
        unsigned
            .ratify(ratify_request(&mapping("one"), None))
            .await
            .map(drop),
    ] {
        assert!(matches!(
            refused,
            Err(GovernanceError::Unsigned
                | GovernanceError::Ledger(LedgerError::Refused(Refusal::LastOwner { .. })))
        ));
    }
    // The ledger itself refuses too, whoever calls it.
    let event = wayleave_ledger::Event::SourceRemoved {
        name: "before".into(),
        who: "ana".into(),
    };
    let appended = unsigned.ledger().append(NOW, event).await;
    assert!(matches!(
        appended,
        Err(LedgerError::Refused(Refusal::Unsigned))
    ));
    // The refused ratification left no file.
    let frozen = std::fs::read_dir(dir.path().join(".wayleave/mappings")).unwrap();
    assert_eq!(frozen.count(), 0);
    let ratified = signed.ratify(ratify_request(&mapping("one"), None)).await;
    let ratified = ratified.unwrap();
    // Activations need no signature.
    unsigned.activate(&ratified, "bob").await.unwrap();
    let report = unsigned.audit(None).await.unwrap();
    assert!(report.is_ok(), "{report:?}");
    assert_eq!(report.ledger.signed, 2);
    assert_eq!(report.ledger.owner, Some(ana.key().fingerprint()));
}

#[tokio::test]
async fn the_first_owner_signs_with_the_key_that_is_added() {
    let dir = tempfile::tempdir().unwrap();
    let (ana, ben) = (key(dir.path(), "ana.key"), key(dir.path(), "ben.key"));
    let governance = governance(dir.path());
    let unsigned = governance.add_owner("ana", ana.key().clone(), "ana").await;
    assert!(matches!(unsigned, Err(GovernanceError::Unsigned)));
    let by_ben = governance.with_signer(ben.clone());
    let foreign = by_ben.add_owner("ana", ana.key().clone(), "ana").await;
    assert!(matches!(foreign, Err(GovernanceError::NoOwnerKey)));
    by_ben
        .add_owner("ben", ben.key().clone(), "ben")
        .await
        .unwrap();
}

#[tokio::test]
async fn a_removed_owner_signs_nothing_more_and_the_last_one_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (by_ana, ana) = owned(dir.path()).await;
    let ben = key(dir.path(), "ben.key");
    let by_ben = by_ana.with_signer(ben.clone());
    let stranger = by_ben.add_source(source("crm"), "ben").await;
    assert!(matches!(stranger, Err(GovernanceError::NoOwnerKey)));
    by_ana
        .add_owner("ben", ben.key().clone(), "ana")
        .await
        .unwrap();
    by_ben.add_source(source("crm"), "ben").await.unwrap();
    by_ana.remove_owner("ben", "ana", "left").await.unwrap();
    let gone = by_ben.add_source(source("erp"), "ben").await;
    assert!(matches!(gone, Err(GovernanceError::NoOwnerKey)));
    let again = refusal(by_ana.add_owner("ben", ben.key().clone(), "ana").await);
    assert!(matches!(again, Refusal::OwnerExists { .. }));
    let under_another = refusal(by_ana.add_owner("b", ben.key().clone(), "ana").await);
    assert!(matches!(under_another, Refusal::KeyExists { .. }));
    let last = refusal(by_ana.remove_owner("ana", "ana", "").await);
    assert!(matches!(last, Refusal::LastOwner { .. }));
    let state = by_ana.ledger().state().await.unwrap();
    assert_eq!(state.first_owner(), Some(ana.key().fingerprint()));
    // What Ben signed while he was an owner still verifies.
    assert!(by_ana.audit(None).await.unwrap().is_ok());
}

#[tokio::test]
async fn every_flipped_byte_of_a_signed_entry_is_found_at_its_entry() {
    let dir = tempfile::tempdir().unwrap();
    let (governance, _) = owned(dir.path()).await;
    governance.add_source(source("crm"), "ana").await.unwrap();
    let folder = dir.path().join(".wayleave");
    let conn = Connection::open(folder.join("ledger.db")).unwrap();
    for seq in 2..=3_i64 {
        for column in ["kind", "body", "signature"] {
            let sql = format!("SELECT {column} FROM entries WHERE seq = ?1");
            let whole: String = conn.query_row(&sql, [seq], |row| row.get(0)).unwrap();
            let put = |text: &[u8]| {
                tamper(&folder, |conn| {
                    let sql =
                        format!("UPDATE entries SET {column} = CAST(?1 AS TEXT) WHERE seq = ?2");
                    conn.execute(&sql, params![text, seq]).unwrap();
                });
            };
            for place in (0..whole.len()).step_by(3) {
                let mut bytes = whole.clone().into_bytes();
                bytes[place] ^= 1 << (place % 7);
                put(&bytes);
                let report = governance.ledger().verify(None).await.unwrap();
                let found = report.problem.and_then(|it| it.seq());
                assert_eq!(found, u64::try_from(seq).ok(), "{column}, byte {place}");
            }
            put(whole.as_bytes());
        }
    }
    assert!(governance.audit(None).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_ledger_of_the_older_schema_verifies_and_takes_owners() {
    let dir = tempfile::tempdir().unwrap();
    let before = governance(dir.path());
    before.add_source(source("crm"), "ana").await.unwrap();
    drop(before);
    let conn = Connection::open(dir.path().join(".wayleave/ledger.db")).unwrap();
    conn.execute_batch("ALTER TABLE entries DROP COLUMN signature; PRAGMA user_version = 3;")
        .unwrap();
    drop(conn);
    let after = governance(dir.path());
    assert!(after.audit(None).await.unwrap().is_ok());
    drop(after);
    let (after, _) = owned(dir.path()).await;
    assert!(after.audit(None).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_version_that_is_set_back_is_no_ledger() {
    let dir = tempfile::tempdir().unwrap();
    drop(owned(dir.path()).await);
    let conn = Connection::open(dir.path().join(".wayleave/ledger.db")).unwrap();
    conn.pragma_update(None, "user_version", 3).unwrap();
    drop(conn);
    let opened = Governance::open(dir.path(), Arc::new(FixedClock(NOW)));
    let error = opened.unwrap_err().to_string();
    assert!(error.contains("schema was altered"), "{error}");
}

#[tokio::test]
async fn two_who_decide_at_once_both_sign_over_the_head_they_follow() {
    let dir = tempfile::tempdir().unwrap();
    let (one, ana) = owned(dir.path()).await;
    let other = governance(dir.path()).with_signer(ana);
    let add = |governance: Governance, prefix: &'static str| async move {
        for number in 0..5 {
            let source = source(&format!("{prefix}{number}"));
            governance.add_source(source, "ana").await.unwrap();
        }
    };
    tokio::join!(add(one.clone(), "a"), add(other, "b"));
    let report = one.audit(None).await.unwrap();
    assert!(report.is_ok(), "{report:?}");
    assert_eq!(report.ledger.signed, 11);
}

#[tokio::test]
async fn a_ledger_that_does_not_fit_what_is_trusted_is_neither_read_nor_added_to() {
    let dir = tempfile::tempdir().unwrap();
    let (governance, ana) = owned(dir.path()).await;
    let ben = key(dir.path(), "ben.key");
    let head = governance.ledger().state().await.unwrap().head();
    let open = |anchor| {
        Governance::open_with_anchor(dir.path(), Arc::new(FixedClock(NOW)), anchor).unwrap()
    };
    let trusted = |key: &UnlockedKey| TrustAnchor {
        owner: Some(key.key().fingerprint()),
        head,
    };
    open(trusted(&ana)).ledger().state().await.unwrap();
    let foreign = open(trusted(&ben));
    let Err(LedgerError::Tampered { problem, .. }) = foreign.ledger().state().await else {
        panic!("it is read");
    };
    assert!(matches!(problem, Problem::Owner { .. }));
    let report = foreign.audit(None).await.unwrap();
    assert!(matches!(report.ledger.problem, Some(Problem::Owner { .. })));
    // A head that the chain has not reached.
    let mut beyond = head.unwrap();
    beyond.seq += 1;
    let cut = open(TrustAnchor {
        owner: None,
        head: Some(beyond),
    });
    let report = cut.audit(None).await.unwrap();
    assert!(matches!(
        report.ledger.problem,
        Some(Problem::Truncated {
            witness: Witness::Record,
            ..
        })
    ));
    // A head that the chain does not pass through.
    let mut beside = head.unwrap();
    beside.hash = EntryHash::from_bytes([7; 32]);
    let rewritten = open(TrustAnchor {
        owner: None,
        head: Some(beside),
    });
    let report = rewritten.audit(None).await.unwrap();
    assert!(matches!(
        report.ledger.problem,
        Some(Problem::Rewritten {
            witness: Witness::Record,
            ..
        })
    ));
    for untrusted in [foreign, cut, rewritten] {
        let read = untrusted.ledger().state().await;
        assert!(matches!(read, Err(LedgerError::Tampered { .. })));
        let signed = untrusted.with_signer(ana.clone());
        assert!(signed.add_source(source("crm"), "ana").await.is_err());
    }
    assert_eq!(governance.ledger().state().await.unwrap().head(), head);
    let unowned = tempfile::tempdir().unwrap();
    let none = Governance::open_with_anchor(
        unowned.path(),
        Arc::new(FixedClock(NOW)),
        trusted_owner(&ana),
    );
    let report = none.unwrap().audit(None).await.unwrap();
    let said = report.ledger.problem.unwrap().to_string();
    assert!(said.contains("has no owner"), "{said}");
}

fn trusted_owner(key: &UnlockedKey) -> TrustAnchor {
    TrustAnchor {
        owner: Some(key.key().fingerprint()),
        head: None,
    }
}
