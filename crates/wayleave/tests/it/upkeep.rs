//! Maintenance by an operator: new keys, removing leftovers, and checking the state.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use wayleave_test::fixture::{Dialect, Fixture};

use crate::serving::{Serving, served};
use crate::session::Session;

/// Time limit for a loaded machine; only a broken server exceeds it.
const PATIENCE: Duration = Duration::from_mins(1);

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

/// Runs `doctor` until its output contains these words.
fn doctor_says(session: &Session, words: &str) {
    let began = Instant::now();
    loop {
        let told = session.run(&["doctor"]).all();
        if told.contains(words) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "not {words:?} in: {told}");
    }
}

#[test]
fn doctor_tells_what_a_running_server_says_of_itself() {
    let (session, ..) = served();
    let settings = session.read("wayleave.toml") + "\n[drift]\nevery_seconds = 1\n";
    session.write("wayleave.toml", &settings);
    let server = Serving::start(&session);
    doctor_says(&session, "runs with the settings in the file");
    session.write(
        "wayleave.toml",
        format!("{settings}[audit]\nkeep_days = 7\n"),
    );
    doctor_says(&session, "`audit.keep_days` is changed but not in force");
    session.write("wayleave.toml", format!("{settings}[audit]\nkeep = 7\n"));
    doctor_says(&session, "unknown field `keep`");
    session.write("wayleave.toml", &settings);
    doctor_says(&session, "runs with the settings in the file");
    let replace = |title: &str| {
        let sql = Fixture::Music.sql(Dialect::Sqlite);
        let sql = sql.replacen("[Name] NVARCHAR(120) UNIQUE", title, 1);
        let next = session.keep_sqlite("next.db", &sql);
        fs::rename(&next, next.with_file_name("music.db")).unwrap();
    };
    replace("[Label] NVARCHAR(120) UNIQUE");
    doctor_says(&session, "has suspended music/");
    replace("[Name] NVARCHAR(120) UNIQUE");
    doctor_says(&session, "runs with the settings in the file");
    server.stop();
}
