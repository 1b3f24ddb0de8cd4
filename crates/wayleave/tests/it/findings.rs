//! The texts that people see when something is wrong, as complete sessions.

use std::fs;
use std::path::Path;

use wayleave_test::assert_golden;

use crate::session::Session;

/// Types these lines and compares the session with its golden file.
fn check(name: &str, session: &mut Session, lines: &[&str]) {
    for line in lines {
        session.type_line(line);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    assert_golden(folder.join(name), &session.take_transcript());
}

fn staff() -> Session {
    let mut session = Session::in_project();
    let sql = "CREATE TABLE people (id integer PRIMARY KEY, full_name text NOT NULL, badge text, \
               boss integer REFERENCES people (id));";
    let path = session.keep_sqlite("staff.db", sql);
    session.set("STAFF_DSN", path.to_str().unwrap());
    for words in [
        &[
            "source",
            "add",
            "staff",
            "--kind",
            "sqlite",
            "--env",
            "STAFF_DSN",
        ][..],
        &["propose", "staff"],
    ] {
        session.run(words).exits(0);
    }
    session
}

#[test]
fn a_draft_with_slips_is_told_where_and_what_each_is() {
    let mut session = staff();
    let draft = session.read("mappings/staff.toml");
    let slips = draft
        .replace("title = \"full_name\"", "titel = \"full_name\"")
        .replace("to = \"people\"", "to = \"peple\"")
        .replace(
            "badge = { datatype = \"string\"",
            "badge = { datatype = \"strng\"",
        );
    session.write("mappings/staff.toml", slips);
    session.write("mappings/empty.toml", "");
    let lines = [
        "wayleave check",
        "wayleave ratify staff",
        "wayleave datasets",
    ];
    check("slips.txt", &mut session, &lines);
}

#[test]
fn a_source_that_drifted_is_told_wherever_it_matters() {
    let mut session = staff();
    session.run(&["ratify", "staff"]).exits(0);
    let sql = "CREATE TABLE people (id integer PRIMARY KEY, full_name text, badge_no text, \
               boss text);";
    fs::remove_file(session.home().join("staff.db")).unwrap();
    session.keep_sqlite("staff.db", sql);
    let lines = [
        "wayleave check --live",
        "wayleave connect staff",
        "wayleave doctor",
        "wayleave propose staff",
    ];
    check("drift.txt", &mut session, &lines);
}

#[test]
fn what_is_missing_is_told_with_what_to_do_next() {
    let mut session = staff();
    session.unset("STAFF_DSN");
    let lines = [
        "wayleave source test staff",
        "wayleave ratify staff",
        "wayleave connect staff",
        "wayleave source add staff --kind sqlite --env STAFF_DSN",
        "wayleave source add shop --kind sqlite --env /data/shop.db",
        "wayleave diff shop",
        "wayleave retire staff",
        "wayleave disconnect staff",
        "wayleave ratfy staff",
        "wayleave doctor",
    ];
    check("missing.txt", &mut session, &lines);
}
