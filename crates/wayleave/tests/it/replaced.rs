//! The private folder or a part of it, replaced, removed or restored under a running server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::serving::{Serving, issue, served};
use crate::session::Session;

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

fn inside(session: &Session, name: &str) -> PathBuf {
    session.here().join(".wayleave").join(name)
}

#[test]
fn a_token_revoked_after_the_folder_was_restored_is_refused_on_the_next_call() {
    let (session, token, id) = served();
    // Built first, so that no index is being built while the folder is copied.
    session.run(&["index", "rebuild"]).exits(0);
    let server = Serving::start(&session);
    let schema = |token| server.call("/mcp", Some(token), "schema", &json!({})).0;
    assert_eq!(schema(&token), 200);
    let [folder, backup, aside] =
        [".wayleave", "backup", "aside"].map(|name| session.here().join(name));
    copy(&folder, &backup);
    fs::rename(&folder, &aside).unwrap();
    assert_eq!(schema(&token), 503);
    fs::rename(&backup, &folder).unwrap();
    assert_eq!(schema(&token), 200);
    session.run(&["token", "revoke", &id]).exits(0);
    assert_eq!(schema(&token), 401);
    // Later acts take effect, and the restored ledger is complete.
    let (late, _) = issue(&session, &[]);
    assert_eq!(schema(&late), 200);
    session.run(&["audit", "--verify"]).exits(0);
    server.stop();
    session.run(&["audit", "--verify"]).exits(0);
    assert!(
        session
            .run(&["token", "list", "--all"])
            .stdout
            .contains("revoked")
    );
}

#[test]
fn a_part_of_the_folder_that_is_removed_is_noticed_on_the_next_call() {
    let (session, token, _) = served();
    let server = Serving::start(&session);
    let schema = || server.call("/mcp", Some(&token), "schema", &json!({})).0;
    for part in ["ledger.db", "ledger.head", "mappings"] {
        let (there, aside) = (inside(&session, part), session.here().join("aside"));
        assert_eq!(schema(), 200, "{part}");
        fs::rename(&there, &aside).unwrap();
        assert_eq!(schema(), 503, "{part}");
        fs::rename(&aside, &there).unwrap();
        assert_eq!(schema(), 200, "{part}");
    }
    let printed = server.stop();
    for part in ["ledger.db", "head file", "mappings"] {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}

#[test]
fn a_ledger_that_does_not_continue_what_was_served_is_refused() {
    let (session, token, _) = served();
    let [folder, older, other, aside] =
        [".wayleave", "older", "other", "aside"].map(|name| session.here().join(name));
    copy(&folder, &older);
    // Another history of the same length, valid by itself.
    copy(&folder, &other);
    issue(&session, &["--label", "ours"]);
    fs::rename(&folder, &aside).unwrap();
    fs::rename(&other, &folder).unwrap();
    issue(&session, &["--label", "theirs"]);
    fs::rename(&folder, &other).unwrap();
    fs::rename(&aside, &folder).unwrap();

    let server = Serving::start(&session);
    let schema = || server.call("/mcp", Some(&token), "schema", &json!({})).0;
    for wrong in [&older, &other] {
        assert_eq!(schema(), 200);
        fs::rename(&folder, &aside).unwrap();
        fs::rename(wrong, &folder).unwrap();
        assert_eq!(schema(), 503);
        fs::rename(&folder, wrong).unwrap();
        fs::rename(&aside, &folder).unwrap();
        assert_eq!(schema(), 200);
    }
    let printed = server.stop();
    assert!(printed.contains("it was truncated"), "{printed}");
    assert!(printed.contains("was rewritten"), "{printed}");
}

#[test]
fn frozen_mappings_that_are_altered_together_are_refused() {
    let (session, token, _) = served();
    let server = Serving::start(&session);
    let schema = || server.call("/mcp", Some(&token), "schema", &json!({})).0;
    assert_eq!(schema(), 200);
    let (mappings, aside) = (inside(&session, "mappings"), session.here().join("aside"));
    let frozen = session.frozen();
    fs::rename(&mappings, &aside).unwrap();
    copy(&aside, &mappings);
    // An identical copy is accepted.
    assert_eq!(schema(), 200);
    let altered = format!("{}\n# more", fs::read_to_string(&frozen).unwrap());
    fs::remove_file(&frozen).unwrap();
    fs::write(&frozen, altered).unwrap();
    let other = session.here().join("other");
    copy(&mappings, &other);
    fs::remove_dir_all(&mappings).unwrap();
    fs::rename(&other, &mappings).unwrap();
    assert_eq!(schema(), 503);
    server.stop();
}
