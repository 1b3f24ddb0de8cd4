//! What an operator does now and then: new keys, and removing leftovers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::session::Session;

#[test]
fn keys_are_rotated_and_the_file_stays_private() {
    let session = Session::with_dataset();
    let rotated = session.run(&["keys", "rotate", "--json"]).exits(0);
    assert_eq!(rotated.document()["key"], 2);
    assert_eq!(rotated.document()["older"], 1);
    let file = session.here().join(".wayleave/cursor.keys");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    session
        .run(&["keys", "rotate", "--drop-older"])
        .exits(0)
        .says("no older key is left");
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
    fs::write(&file, "1 xyz\n").unwrap();
    session
        .run(&["keys", "rotate"])
        .exits(2)
        .says("is damaged at line 1");
}

#[test]
fn leftovers_are_removed_and_what_is_ratified_stays() {
    let session = Session::with_dataset();
    session
        .run(&["gc"])
        .exits(0)
        .says("nothing was left behind");
    let frozen = session.frozen();
    let orphan = frozen.with_file_name(format!("{}.toml", "ab".repeat(32)));
    fs::write(&orphan, "x").unwrap();
    let removed = session.run(&["gc", "--json"]).exits(0).document();
    assert_eq!(removed["removed"].as_array().unwrap().len(), 1);
    assert!(!orphan.exists() && frozen.exists());
    session.run(&["audit", "--verify"]).exits(0);
}
