//! Ratification: the frozen copy, the entry, and failures between them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::project::{NOW, governance, mapping, ratify_request};
use wayleave_ledger::{GovernanceError, LedgerError, NewSource, Refusal, rfc3339};
use wayleave_model::digest::Digest;
use wayleave_model::mapping::SourceKind;

fn refusal(error: GovernanceError) -> Refusal {
    match error {
        GovernanceError::Ledger(LedgerError::Refused(refusal)) => refusal,
        other => panic!("{other}"),
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files
}

/// Writes to a frozen file in spite of its permissions.
fn overwrite(path: &Path, bytes: &[u8]) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn what_was_ratified_is_loaded_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let text = mapping("first");
    let frozen = governance(dir.path())
        .ratify(ratify_request(&text, None))
        .await
        .unwrap();
    let again = governance(dir.path());
    let loaded = again.load("crm").await.unwrap();
    assert_eq!(loaded.bytes(), text.as_bytes());
    assert_eq!(loaded.ratification(), frozen.ratification());
    let state = again.ledger().state().await.unwrap();
    let entry = state.ratified("crm").unwrap();
    assert_eq!(&entry.act, frozen.ratification());
    assert_eq!(rfc3339(entry.at), "2023-11-14T22:13:20Z");
    assert!(again.audit(None).await.unwrap().is_ok());

    let path = again.frozen_path(loaded.digest());
    assert!(path.ends_with(format!(".wayleave/mappings/{}.toml", loaded.digest().hex())));
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o400
    );
    assert_eq!(files(&dir.path().join(".wayleave/mappings")), [path]);
}

#[tokio::test]
async fn every_flipped_bit_of_a_frozen_mapping_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let governance = governance(dir.path());
    let frozen = governance
        .ratify(ratify_request(&mapping("first"), None))
        .await
        .unwrap();
    let path = governance.frozen_path(frozen.digest());
    for bit in 0..frozen.bytes().len() * 8 {
        let mut bytes = frozen.bytes().to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        overwrite(&path, &bytes);
        let error = governance
            .load("crm")
            .await
            .expect_err("it must be refused");
        assert!(
            matches!(error, GovernanceError::Altered { .. }),
            "bit {bit}: {error}"
        );
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
    }
    let report = governance.audit(None).await.unwrap();
    assert!(report.ledger.is_ok() && report.mappings.len() == 1);
    overwrite(&path, frozen.bytes());
    governance.load("crm").await.unwrap();
}

#[tokio::test]
async fn a_missing_frozen_mapping_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let governance = governance(dir.path());
    let frozen = governance
        .ratify(ratify_request(&mapping("first"), None))
        .await
        .unwrap();
    let path = governance.frozen_path(frozen.digest());
    fs::remove_file(&path).unwrap();
    let error = governance.load("crm").await.unwrap_err();
    assert!(matches!(error, GovernanceError::Missing { .. }), "{error}");
    assert!(
        error.to_string().contains(&path.display().to_string()),
        "{error}"
    );
    assert!(!governance.audit(None).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_damaged_frozen_file_is_not_adopted_by_a_new_ratification() {
    let dir = tempfile::tempdir().unwrap();
    let governance = governance(dir.path());
    let text = mapping("first");
    let path = governance.frozen_path(Digest::from_bytes(text.as_bytes()));
    fs::write(&path, "something else").unwrap();
    let error = governance
        .ratify(ratify_request(&text, None))
        .await
        .unwrap_err();
    assert!(matches!(error, GovernanceError::Altered { .. }), "{error}");
    assert!(
        governance
            .ledger()
            .state()
            .await
            .unwrap()
            .ratified("crm")
            .is_none()
    );
}

#[tokio::test]
async fn of_two_who_replace_the_same_mapping_one_is_superseded() {
    let dir = tempfile::tempdir().unwrap();
    let (ana, ben) = (governance(dir.path()), governance(dir.path()));
    let first = ana
        .ratify(ratify_request(&mapping("first"), None))
        .await
        .unwrap()
        .digest();
    let (one, other) = tokio::join!(
        ana.ratify(ratify_request(&mapping("ana's"), Some(first))),
        ben.ratify(ratify_request(&mapping("ben's"), Some(first))),
    );
    let (won, lost) = match (one, other) {
        (Ok(won), Err(lost)) | (Err(lost), Ok(won)) => (won, lost),
        both => panic!("one must win: {both:?}"),
    };
    let expected = Refusal::Superseded {
        dataset: "crm".into(),
        expected: Some(first),
        current: Some(won.digest()),
    };
    assert_eq!(refusal(lost), expected);
    assert_eq!(ana.load("crm").await.unwrap().digest(), won.digest());
    assert!(ben.audit(None).await.unwrap().is_ok());
}

#[tokio::test]
async fn ratifying_the_same_bytes_again_records_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let governance = governance(dir.path());
    let first = governance
        .ratify(ratify_request(&mapping("first"), None))
        .await
        .unwrap();
    let epoch = governance.ledger().epoch().await.unwrap();
    let mut again = ratify_request(&mapping("first"), None);
    again.who = "ben".into();
    let again = governance.ratify(again).await.unwrap();
    assert_eq!(again.ratification(), first.ratification());
    assert_eq!(governance.ledger().epoch().await.unwrap(), epoch);
}

#[tokio::test]
async fn a_retired_dataset_is_not_loaded_and_can_be_ratified_anew() {
    let dir = tempfile::tempdir().unwrap();
    let governance = governance(dir.path());
    let first = governance
        .ratify(ratify_request(&mapping("first"), None))
        .await
        .unwrap()
        .digest();
    governance
        .retire("crm", "ana", "no longer needed")
        .await
        .unwrap();
    let not_ratified = Refusal::NotRatified {
        dataset: "crm".into(),
    };
    assert_eq!(
        refusal(governance.load("crm").await.unwrap_err()),
        not_ratified
    );
    let again = governance.retire("crm", "ana", "").await.unwrap_err();
    assert_eq!(refusal(again), not_ratified);
    let stale = governance
        .ratify(ratify_request(&mapping("second"), Some(first)))
        .await
        .unwrap_err();
    assert!(matches!(
        refusal(stale),
        Refusal::Superseded { current: None, .. }
    ));
    governance
        .ratify(ratify_request(&mapping("first"), None))
        .await
        .unwrap();
    governance.load("crm").await.unwrap();
}

#[tokio::test]
async fn a_dataset_is_activated_only_as_it_is_ratified_now() {
    let dir = tempfile::tempdir().unwrap();
    let governance = governance(dir.path());
    let first = governance
        .ratify(ratify_request(&mapping("first"), None))
        .await
        .unwrap();
    governance.activate(&first, "ana").await.unwrap();
    let second = ratify_request(&mapping("second"), Some(first.digest()));
    let second = governance.ratify(second).await.unwrap();
    let late = governance.activate(&first, "ana").await.unwrap_err();
    assert!(matches!(refusal(late), Refusal::Superseded { .. }));
    governance.activate(&second, "ana").await.unwrap();
    governance.deactivate("crm", "ana").await.unwrap();
    let state = governance.ledger().state().await.unwrap();
    let crm = &state.datasets()["crm"];
    assert!(crm.active.is_none() && crm.revision == 3);
}

#[tokio::test]
async fn a_source_is_recorded_by_the_name_of_its_variable_only() {
    let dir = tempfile::tempdir().unwrap();
    let governance = governance(dir.path());
    let source = |env: &str| NewSource {
        name: "crm".into(),
        kind: SourceKind::Postgres,
        env: env.into(),
    };
    let dsn = "postgres://ana:hunter2@db/crm";
    let error = governance.add_source(source(dsn), "ana").await.unwrap_err();
    assert!(
        error.to_string().contains("environment variable"),
        "{error}"
    );
    assert!(!format!("{error} {error:?}").contains("hunter2"));
    governance
        .add_source(source("CRM_DSN"), "ana")
        .await
        .unwrap();
    let state = governance.ledger().state().await.unwrap();
    let crm = &state.sources()["crm"];
    assert_eq!(
        (crm.env.as_str(), crm.who.as_str(), crm.at),
        ("CRM_DSN", "ana", NOW)
    );
    governance.remove_source("crm", "ben").await.unwrap();
    assert!(
        governance
            .ledger()
            .state()
            .await
            .unwrap()
            .sources()
            .is_empty()
    );
    for file in files(&dir.path().join(".wayleave")) {
        let bytes = fs::read(&file).unwrap_or_default();
        assert!(
            !String::from_utf8_lossy(&bytes).contains("hunter2"),
            "{}",
            file.display()
        );
    }
}

#[tokio::test]
async fn gc_removes_what_no_entry_names_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let governance = governance(dir.path());
    let first = governance
        .ratify(ratify_request(&mapping("first"), None))
        .await
        .unwrap()
        .digest();
    let second = ratify_request(&mapping("second"), Some(first));
    governance.ratify(second).await.unwrap();
    governance.retire("crm", "ana", "").await.unwrap();
    let folder = dir.path().join(".wayleave");
    let before = files(&folder.join("mappings"));

    let orphan = governance.frozen_path(Digest::from_bytes(b"orphan"));
    let mine = folder.join("mappings/notes.txt");
    let passing = [folder.join(".tmp-head-0"), folder.join("mappings/.tmp-0")];
    for path in passing.iter().chain([&orphan, &mine]) {
        fs::write(path, "orphan").unwrap();
    }
    let mut expected = vec![passing[0].clone(), passing[1].clone(), orphan];
    let mut removed = governance.gc().await.unwrap();
    expected.sort();
    removed.sort();
    assert_eq!(removed, expected);
    fs::remove_file(mine).unwrap();
    assert_eq!(files(&folder.join("mappings")), before);
    assert!(governance.audit(None).await.unwrap().is_ok());
}

#[tokio::test]
async fn gc_waits_for_nobody_who_is_writing() {
    let dir = tempfile::tempdir().unwrap();
    let governance = governance(dir.path());
    let writer = fs::File::open(dir.path().join(".wayleave")).unwrap();
    writer.lock_shared().unwrap();
    let error = governance.gc().await.unwrap_err();
    assert!(
        matches!(error, GovernanceError::Ledger(LedgerError::Busy { .. })),
        "{error}"
    );
    drop(writer);
    governance.gc().await.unwrap();
}
