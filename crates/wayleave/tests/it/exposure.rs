//! Exposure: listening beyond this machine, the lifetime of tokens, and access to the private
//! folder.

use std::fs::{self, Permissions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use jiff::{SignedDuration, Timestamp};

use crate::serving::{Serving, issue, served};
use crate::session::{CommandOutput, Session, program};

fn with_serve(session: &Session, lines: &str) {
    let text = format!("[project]\nname = \"project\"\n[serve]\n{lines}\n");
    session.write("wayleave.toml", text);
}

/// Runs the server, for at most the time in which it must refuse to start.
fn serve(session: &Session, more: &[&str]) -> CommandOutput {
    let mut command = session.command("timeout");
    command.arg("20").arg(program()).arg("serve").args(more);
    CommandOutput::from_output(&command.output().unwrap())
}

#[test]
fn listening_beyond_this_machine_in_clear_text_is_refused_and_doctor_says_so() {
    let (session, ..) = served();
    let given = serve(&session, &["--http", "0.0.0.0:0"]).exits(2);
    let given = given.says("clear text").says("serve.tls").says("tls_proxy");
    assert_eq!(given.stdout, "");
    for (lines, status) in [
        ("http = \"0.0.0.0:0\"", 1),
        (
            "http = \"0.0.0.0:0\"\nurl = \"http://localhost:7411/mcp\"",
            1,
        ),
        (
            "http = \"0.0.0.0:0\"\nurl = \"https://data.example.org/mcp\"",
            0,
        ),
        ("http = \"0.0.0.0:0\"\ntls_proxy = true", 0),
        ("http = \"127.0.0.1:0\"", 0),
    ] {
        with_serve(&session, lines);
        let examined = session.run(&["doctor"]).exits(status);
        assert_eq!(
            examined.all().contains("clear text"),
            status == 1,
            "{lines}"
        );
        if status == 1 {
            serve(&session, &[]).exits(2).says("clear text");
        }
    }
}

fn ends(session: &Session, more: &[&str]) -> Option<Timestamp> {
    let words = [&["token", "create", "--json"], more].concat();
    let document = session.run(&words).exits(0).document();
    let ends = document["token"]["expires"].as_str()?;
    Some(ends.parse().unwrap())
}

#[test]
fn a_token_ends_after_ninety_days_unless_somebody_says_otherwise() {
    let session = Session::with_dataset();
    let day = SignedDuration::from_hours(24);
    let around = |at: Timestamp, days: i32| {
        let off = at.duration_since(Timestamp::now()) - day * days;
        off.abs() < SignedDuration::from_mins(10)
    };
    assert!(around(ends(&session, &[]).unwrap(), 90));
    assert!(around(ends(&session, &["--kind", "owner"]).unwrap(), 90));
    assert!(around(ends(&session, &["--expires", "7d"]).unwrap(), 7));
    assert_eq!(ends(&session, &["--expires", "never"]), None);
    // The grants created for a token expire with it.
    let made = session
        .run(&["token", "create", "--all-of", "music"])
        .exits(0);
    let date = (Timestamp::now() + day * 90).to_string()[..8].to_owned();
    assert!(
        made.stderr.contains(&format!("it ends {date}")),
        "{}",
        made.stderr
    );
    let never = session
        .run(&["token", "create", "--expires", "never"])
        .exits(0);
    assert!(never.stderr.contains("it never ends"), "{}", never.stderr);
    let grants = session.run(&["grant", "list"]).exits(0).stdout;
    assert!(grants.contains(&date), "{grants}");
}

#[test]
fn a_time_beyond_the_year_9999_is_told_as_a_time() {
    let session = Session::with_dataset();
    let words = ["token", "create", "--expires", "4294967295d", "--json"];
    let document = session.run(&words).exits(0).document();
    let told = document["token"]["expires"].as_str().unwrap().to_owned();
    assert!(told.starts_with("+1176") && told.ends_with('Z'), "{told}");
    session.run(&["token", "list"]).exits(0).says(&told);
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn doctor_looks_at_every_private_file_and_at_the_keys_of_cursors() {
    let (session, token, _) = served();
    let keys = session.here().join(".wayleave/cursor.keys");
    let head = session.here().join(".wayleave/ledger.head");
    let arguments = session.here().join(".wayleave/activity.keys");
    let log = session.here().join(".wayleave/activity/00/head");
    let proposal = session.here().join(".wayleave/inbox/1.json");
    // The first read creates the file.
    session.run(&["query", "artist", "--limit", "1"]).exits(0);
    // A call creates the log and its keys.
    let server = Serving::start(&session);
    server.call("/mcp", Some(&token), "schema", &serde_json::json!({}));
    server.stop();
    fs::create_dir(proposal.parent().unwrap()).unwrap();
    fs::write(&proposal, "{}").unwrap();
    mode(&proposal, 0o600);
    session.run(&["doctor"]).exits(0).says("private to you");
    for file in [&keys, &head, &arguments, &log, &proposal] {
        mode(file, 0o644);
        let name = file.strip_prefix(session.here().join(".wayleave"));
        let name = name.unwrap().to_str().unwrap();
        let examined = session.run(&["doctor"]).exits(0);
        let examined = examined.says(&format!("other users could read `{name}`"));
        assert!(!examined.all().contains("private to you"));
        mode(file, 0o600);
    }
    fs::write(&keys, "1 hush-hush\n").unwrap();
    let examined = session
        .run(&["doctor"])
        .exits(1)
        .says("cursor.keys")
        .says("line 1");
    assert!(!examined.all().contains("hush-hush"), "{}", examined.all());
    session.run(&["serve", "--http", "127.0.0.1:0"]).exits(2);
}

/// Runs `wayleave` as a user who can only read, because permissions do not stop root.
fn run_as_reader(session: &Session, project: &Path, words: &[&str]) -> CommandOutput {
    let binary = fs::File::open(program()).unwrap();
    let mut command = session.command(format!("/proc/self/fd/{}", binary.as_raw_fd()));
    command
        .current_dir("/")
        .arg("--project")
        .arg(project)
        .args(words);
    if is_root() {
        command.uid(NOBODY);
    }
    CommandOutput::from_output(&command.output().unwrap())
}

const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}

/// Makes a tree read-only, and gives it to the user who will read it.
fn seal(path: &Path) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            seal(&entry.unwrap().path());
        }
    }
    mode(path, if path.is_dir() { 0o500 } else { 0o400 });
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn unseal(path: &Path) {
    mode(path, 0o700);
    for entry in fs::read_dir(path).unwrap().map(|it| it.unwrap().path()) {
        if entry.is_dir() {
            unseal(&entry);
        }
    }
}

#[test]
fn a_copy_that_cannot_be_written_is_verified_and_examined() {
    let (mut session, ..) = served();
    issue(&session, &[]);
    session.set("WAYLEAVE_LOG", "error");
    let whole = session
        .run(&["audit", "--verify", "--json"])
        .exits(0)
        .document();
    let place = tempfile::tempdir_in("/tmp").unwrap();
    mode(place.path(), 0o755);
    let copy = place.path().join("copy");
    let copied = Command::new("cp")
        .arg("-a")
        .args([session.here(), &copy])
        .status();
    assert!(copied.unwrap().success());
    seal(&copy);

    let verified = run_as_reader(&session, &copy, &["audit", "--verify", "--json"]).exits(0);
    assert_eq!(verified.document()["ledger"], whole["ledger"]);
    let listed = run_as_reader(&session, &copy, &["audit"]).exits(0);
    assert!(listed.stdout.contains("ratified music"), "{}", listed.all());
    let examined = run_as_reader(&session, &copy, &["doctor"]);
    assert!(
        examined.stdout.contains("entries, intact"),
        "{}",
        examined.all()
    );
    assert!(
        examined.stdout.contains("is read-only"),
        "{}",
        examined.all()
    );
    // Changes and serving need a writable folder.
    for words in [&["serve", "--stdio"][..], &["token", "create"]] {
        let refused = run_as_reader(&session, &copy, words).exits(2);
        refused.says("cannot be written");
    }

    // Damage to the copy is found.
    unseal(&copy);
    let ledger = copy.join(".wayleave/ledger.db");
    mode(&ledger, 0o600);
    let mut bytes = fs::read(&ledger).unwrap();
    let at = bytes
        .windows(14)
        .position(|it| it == b"dataset_ratifi")
        .unwrap();
    bytes[at] = b'x';
    fs::write(&ledger, bytes).unwrap();
    seal(&copy);
    let verified = run_as_reader(&session, &copy, &["audit", "--verify"]).exits(1);
    verified.says("was altered");
    unseal(&copy);
}
