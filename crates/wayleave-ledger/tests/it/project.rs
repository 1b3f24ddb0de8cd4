//! A project folder, sample mappings, and helpers to change it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rusqlite::Connection;
use wayleave_ledger::{
    Event, FixedClock, Governance, Ledger as _, Millis, RatifyRequest, SqliteLedger,
};
use wayleave_model::digest::Digest;
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::{Draft, Proposed};

/// 2023-11-14T22:13:20Z.
pub(crate) const NOW: Millis = 1_700_000_000_000;

/// A mapping of the dataset `crm`; each note makes another version.
pub(crate) fn mapping(note: &str) -> String {
    format!(
        r#"# {note}
[dataset]
name = "crm"
kind = "sqlite"

[[connections]]
id = "crm"
source = "crm"

[streams.people]
type = "Person"
table = "people"
key = ["id"]

[streams.people.fields.id]
datatype = "integer"
"#
    )
}

pub(crate) fn proposed(text: &str) -> Proposed {
    Draft::new(text)
        .propose(None)
        .expect("the mapping of these tests checks")
}

pub(crate) fn ratify_request(text: &str, replaces: Option<Digest>) -> RatifyRequest {
    RatifyRequest {
        proposed: proposed(text),
        replaces,
        who: "ana".into(),
        note: "because".into(),
    }
}

pub(crate) fn governance(project: &Path) -> Governance {
    Governance::open(project, Arc::new(FixedClock(NOW))).expect("the project opens")
}

pub(crate) fn ledger(folder: &Path) -> SqliteLedger {
    SqliteLedger::open(folder, &FixedClock(NOW)).expect("the ledger opens")
}

pub(crate) fn source(name: &str) -> Event {
    let (name, env, who) = (name.to_owned(), "CRM_DSN".to_owned(), "ana".to_owned());
    Event::SourceAdded {
        name,
        kind: SourceKind::Sqlite,
        env,
        who,
    }
}

/// Creates a ledger of `entries` entries, including the entry of its creation.
pub(crate) async fn ledger_of(entries: usize) -> (tempfile::TempDir, SqliteLedger) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = ledger(&dir.path().join(".wayleave"));
    for place in 2..=entries {
        ledger
            .append(NOW, source(&format!("s{place}")))
            .await
            .unwrap();
    }
    (dir, ledger)
}

/// Changes a ledger despite its triggers, and restores the triggers.
pub(crate) fn tamper(folder: &Path, deed: impl FnOnce(&Connection)) {
    let conn = Connection::open(folder.join("ledger.db")).unwrap();
    conn.pragma_update(None, "synchronous", "OFF").unwrap();
    conn.pragma_update(None, "ignore_check_constraints", "ON")
        .unwrap();
    let triggers: Vec<(String, String)> = conn
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (name, _) in &triggers {
        conn.execute(&format!("DROP TRIGGER {name}"), []).unwrap();
    }
    deed(&conn);
    for (_, sql) in &triggers {
        conn.execute(sql, []).unwrap();
    }
}

/// The program of `examples/act.rs`, which changes a project from another process.
pub(crate) fn act() -> Command {
    Command::new(act_path())
}

pub(crate) fn act_path() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let path = here
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("examples/act");
    assert!(
        path.exists(),
        "`{}` is missing: run all tests of the crate, or first `cargo build --examples`",
        path.display()
    );
    path
}
