//! Backups: taken while the project is in use, and restored only if complete.
//!
//! A run of the suite flips a share of the bytes; `WAYLEAVE_FULL=1` flips all.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Output,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use serde_json::json;
use wayleave_model::digest::Digest;
use wayleave_project::backup::{self, MANIFEST, RestoreError};
use wayleave_test::crash::{FaultTarget, copy_tree, fail_everywhere, kill_everywhere};

use crate::serving::{Serving, served};
use crate::session::{Session, program};

/// Creates an empty folder to restore into.
fn empty() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn restore(backup: &Path) -> Result<u64, RestoreError> {
    let target = empty();
    let restored = futures_run(backup::restore(backup, target.path(), None));
    let left = fs::read_dir(target.path()).unwrap().count();
    match &restored {
        Ok(_) => assert!(target.path().join("wayleave.toml").exists()),
        Err(_) => assert_eq!(left, 0, "a refused backup leaves nothing"),
    }
    restored.map(|it| it.entries)
}

fn futures_run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(work)
}

/// Creates a project with decisions and recorded calls, and a backup of it.
fn backed_up() -> (Session, PathBuf) {
    let (session, token, _) = served();
    let server = Serving::start(&session);
    for _ in 0..3 {
        let (status, _) = server.call("/mcp", Some(&token), "schema", &json!({}));
        assert_eq!(status, 200);
    }
    server.stop();
    let backup = session.home().join("backup");
    let words = ["backup", backup.to_str().unwrap()];
    session.run(&words).exits(0);
    (session, backup)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn write_anyway(path: &Path, bytes: &[u8]) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_backup_under_writes_restores_to_records_that_are_whole() {
    let (session, token, _) = served();
    let server = Serving::start(&session);
    let (stop, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    let decisions = AtomicUsize::new(0);
    let draft = session.read("mappings/music.toml");
    let backups: Vec<PathBuf> = (0..6)
        .map(|at| session.home().join(format!("backup-{at}")))
        .collect();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let (status, _) = server.call("/mcp", Some(&token), "schema", &json!({}));
                    assert_eq!(status, 200);
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            for round in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let words = ["grant", "create", "--dataset", "music"];
                session.run(&words).exits(0);
                decisions.fetch_add(1, Ordering::Relaxed);
                let text = format!("{draft}# round {round}\n");
                session.write("mappings/music.toml", text);
                session
                    .run(&["ratify", "music", "--yes", "--offline"])
                    .exits(0);
            }
        });
        for (at, backup) in backups.iter().enumerate() {
            // Each backup must have a later state: wait until further calls and a decision are
            // recorded.
            let (called, decided) = (
                calls.load(Ordering::Relaxed),
                decisions.load(Ordering::Relaxed),
            );
            while calls.load(Ordering::Relaxed) < called + 2
                || decisions.load(Ordering::Relaxed) == decided
            {
                thread::yield_now();
            }
            let made = session.run(&["backup", backup.to_str().unwrap(), "--json"]);
            assert_eq!(made.status, 0, "backup {at}: {}", made.all());
        }
        stop.store(true, Ordering::Relaxed);
    });
    server.stop();
    let mut entries = 0;
    for backup in &backups {
        let target = empty();
        let project = target.path().to_str().unwrap();
        let words = ["restore", backup.to_str().unwrap(), "--project", project];
        let restored = session.run(&[&words[..], &["--json"]].concat());
        let restored = restored.exits(0).document();
        assert!(restored["calls"].as_u64().unwrap() >= 2, "{restored}");
        let now = restored["entries"].as_u64().unwrap();
        assert!(now > entries, "{now} after {entries}");
        entries = now;
        session
            .run(&["audit", "--verify", "--project", project])
            .exits(0);
        session
            .run(&["audit", "verify", "--project", project])
            .exits(0);
        // The restored project is in working order: the next decision and the next call are
        // recorded.
        let words = [
            "grant",
            "create",
            "--dataset",
            "music",
            "--project",
            project,
        ];
        session.run(&words).exits(0);
        session
            .run(&["audit", "--verify", "--project", project])
            .exits(0);
    }
}

#[test]
fn a_backup_flipped_in_any_byte_is_refused() {
    let (_session, whole) = backed_up();
    assert!(restore(&whole).is_ok());
    let is_full = wayleave_test::is_full();
    let mut flips = 0;
    for path in files(&whole) {
        let bytes = fs::read(&path).unwrap();
        // A sample of each file's bytes, the first and the last included. The flipped bit varies.
        let share = if is_full {
            1
        } else {
            (bytes.len() / 12).max(1)
        };
        let drawn = (0..bytes.len())
            .step_by(share)
            .chain(bytes.len().checked_sub(1));
        for at in drawn {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            write_anyway(&path, &flipped);
            let refused = restore(&whole);
            assert!(refused.is_err(), "{} at {at}", path.display());
            flips += 1;
        }
        write_anyway(&path, &bytes);
    }
    assert!(restore(&whole).is_ok());
    assert!(flips > 60, "{flips}");
    eprintln!("{flips} flips refused");
}

#[test]
fn a_backup_with_a_file_less_or_more_or_in_anothers_place_is_refused() {
    let (session, whole) = backed_up();
    let all = files(&whole);
    let copy = |name: &str| {
        let to = session.home().join(name);
        fs::create_dir(&to).unwrap();
        copy_tree(&whole, &to);
        to
    };
    let shown = |path: &Path| path.strip_prefix(&whole).unwrap().to_owned();
    for (at, path) in all.iter().enumerate() {
        let dropped = copy(&format!("dropped-{at}"));
        fs::remove_file(dropped.join(shown(path))).unwrap();
        assert!(restore(&dropped).is_err(), "{}", path.display());
        for other in &all {
            if fs::read(path).unwrap() == fs::read(other).unwrap() {
                continue;
            }
            let swapped = copy("swapped");
            let (one, two) = (swapped.join(shown(path)), swapped.join(shown(other)));
            fs::rename(&one, swapped.join("aside")).unwrap();
            fs::rename(&two, &one).unwrap();
            fs::rename(swapped.join("aside"), &two).unwrap();
            assert!(restore(&swapped).is_err(), "{}", path.display());
            fs::remove_dir_all(swapped).unwrap();
        }
        let linked = copy("linked");
        fs::remove_file(linked.join(shown(path))).unwrap();
        std::os::unix::fs::symlink(path, linked.join(shown(path))).unwrap();
        assert!(restore(&linked).is_err(), "{}", path.display());
        fs::remove_dir_all(linked).unwrap();
    }
    for more in ["more", ".wayleave/more", "mappings/more.toml"] {
        let added = copy("added");
        fs::write(added.join(more), "").unwrap();
        let refused = restore(&added);
        assert!(
            matches!(refused, Err(RestoreError::Unlisted { .. })),
            "{more}"
        );
        fs::remove_dir_all(added).unwrap();
    }
}

/// Replaces the digest in the last line of a manifest, as anyone with the backup can.
fn with_own_digest(lines: &str) -> String {
    format!("{lines}end {}\n", Digest::from_bytes(lines.as_bytes()))
}

/// The line of a manifest that names the head of the ledger.
fn head_of(lines: &str) -> &str {
    lines.lines().find(|it| it.starts_with("head ")).unwrap()
}

#[test]
fn a_manifest_made_anew_reaches_nothing_outside_and_cannot_hide_a_shorter_ledger() {
    let (session, whole) = backed_up();
    let manifest = whole.join(MANIFEST);
    let text = fs::read_to_string(&manifest).unwrap();
    let (lines, _) = text.rsplit_once("end ").unwrap();
    write_anyway(&manifest, with_own_digest(lines).as_bytes());
    assert!(restore(&whole).is_ok(), "the helper makes what it should");
    let nothing = Digest::from_bytes(b"");
    for path in [
        "../outside",
        "/outside",
        ".wayleave/../../outside",
        ".profile",
    ] {
        let more = format!("{lines}file {nothing} 0 {path}\n");
        write_anyway(&manifest, with_own_digest(&more).as_bytes());
        let refused = restore(&whole);
        assert!(matches!(refused, Err(RestoreError::Manifest(_))), "{path}");
    }
    assert!(!session.home().join("outside").exists());
    // A head that the ledger never had, one that it had earlier, and one that it had only later.
    let words = ["grant", "create", "--dataset", "music"];
    session.run(&words).exits(0);
    let later = session.home().join("later");
    session.run(&["backup", later.to_str().unwrap()]).exits(0);
    let later_manifest = later.join(MANIFEST);
    let later_text = fs::read_to_string(&later_manifest).unwrap();
    let (later_lines, _) = later_text.rsplit_once("end ").unwrap();
    let (head, later_head) = (head_of(lines), head_of(later_lines));
    assert_ne!(head, later_head);
    let never = format!("head 1:{}", "ab".repeat(32));
    for (backup, lines, head, other) in [
        (&whole, lines, head, never.as_str()),
        (&whole, lines, head, later_head),
        (&later, later_lines, later_head, head),
    ] {
        let other = lines.replace(head, other);
        write_anyway(&backup.join(MANIFEST), with_own_digest(&other).as_bytes());
        let refused = restore(backup);
        assert!(
            matches!(refused, Err(RestoreError::Damaged { .. })),
            "{refused:?}"
        );
    }
    // The printed digest exposes even a manifest that is consistent with itself.
    write_anyway(&manifest, text.as_bytes());
    let digest = Digest::from_bytes(text.as_bytes()).to_string();
    write_anyway(
        &manifest,
        with_own_digest(&lines.replacen("made ", "made 1", 1)).as_bytes(),
    );
    let target = empty();
    let project = target.path().to_str().unwrap();
    let backup = whole.to_str().unwrap();
    let words = ["restore", backup, "--digest", &digest, "--project", project];
    session
        .run(&words)
        .exits(1)
        .says("the manifest has the digest");
    write_anyway(&manifest, text.as_bytes());
    session.run(&words).exits(0).says("intact");
    session.run(&words).exits(2).says("is not empty");
}

#[test]
fn keys_of_arguments_stay_unless_asked_for_and_nothing_is_open_to_others() {
    let (session, backup) = backed_up();
    let private = backup.join(".wayleave");
    assert!(session.here().join(".wayleave/activity.keys").exists());
    assert!(!private.join("activity.keys").exists());
    assert!(!private.join("index").exists());
    for path in files(&backup) {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
    let mode = fs::metadata(&backup).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let with_keys = session.home().join("with-keys");
    let words = ["backup", with_keys.to_str().unwrap(), "--argument-keys"];
    session.run(&words).exits(0);
    assert!(with_keys.join(".wayleave/activity.keys").exists());
    assert!(restore(&with_keys).is_ok());
}

#[test]
fn a_folder_with_something_in_it_a_dsn_and_a_damaged_project_are_refused() {
    let (session, backup) = backed_up();
    let path = backup.to_str().unwrap();
    session.run(&["backup", path]).exits(2).says("is not empty");
    let inside = session.run(&["backup", ".wayleave/copy"]);
    inside.exits(2).says("inside the project's private folder");
    let draft = session.read("mappings/music.toml");
    session.write(
        "mappings/music.toml",
        format!("{draft}# postgres://ana:hunter2@db/crm\n"),
    );
    let refused = session.run(&["backup", "../other"]).exits(2);
    let refused = refused.says("holds what looks like a connection string");
    assert!(!refused.all().contains("hunter2"));
    session.write("mappings/music.toml", draft);
    let frozen = session.frozen();
    let bytes = fs::read(&frozen).unwrap();
    write_anyway(&frozen, b"x");
    session
        .run(&["backup", "../other"])
        .exits(2)
        .says("is refused");
    write_anyway(&frozen, &bytes);
    assert!(!session.home().join("other").exists());
    let left = fs::read_dir(session.home()).unwrap().map(|it| it.unwrap());
    let left = left.filter(|it| it.path().extension().is_some_and(|it| it == "tmp"));
    assert_eq!(left.count(), 0, "a refused backup leaves nothing");
}

/// A project whose backup is written into a folder inside it.
struct Case(Session);

impl FaultTarget for Case {
    const REFUSES: i32 = 2;

    fn project(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir_in(self.0.home()).unwrap();
        copy_tree(self.0.here(), copy.path());
        copy
    }

    fn run(&self, project: &Path, under: &[&str]) -> io::Result<Output> {
        let program = program();
        let line = [under, &[program.to_str().unwrap()]].concat();
        let mut command = self.0.command(line[0]);
        command
            .args(&line[1..])
            .arg("backup")
            .arg(project.join("out"));
        command.arg("--project").arg(project).output()
    }

    /// Checks that the backup is complete or missing, and that the project is unchanged.
    async fn assert_sound(&self, project: &Path, succeeded: bool, point: &str) {
        let out = project.join("out");
        assert!(
            out.exists() || !succeeded,
            "{point}: it said so, and did not"
        );
        for entry in fs::read_dir(project).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_left = name
                .strip_prefix(".out.")
                .is_some_and(|it| it.contains(".tmp"));
            if name == "out" || is_left {
                let target = tempfile::tempdir().unwrap();
                let restored = backup::restore(&path, target.path(), None).await;
                let is_unfinished = is_left && matches!(restored, Err(RestoreError::Manifest(_)));
                assert!(restored.is_ok() || is_unfinished, "{point}: {restored:?}");
            }
        }
        let verified = self
            .0
            .run(&["audit", "--verify", "--project", project.to_str().unwrap()]);
        verified.exits(0);
        if !out.exists() {
            let again = self.run(project, &[]).unwrap();
            assert!(again.status.success(), "{point}: {again:?}");
        }
    }
}

#[tokio::test]
async fn a_backup_killed_at_any_call_is_whole_or_not_there() {
    kill_everywhere(&Case(Session::with_dataset()), 17).await;
}

#[tokio::test]
async fn a_backup_on_a_full_disk_says_so_and_is_whole_or_not_there() {
    fail_everywhere(&Case(Session::with_dataset()), "ENOSPC", 5).await;
}
