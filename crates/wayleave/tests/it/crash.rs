//! Killing and starving `wayleave ratify` at its system calls.
//!
//! Each point is one system call, by its name and its number among the calls of that name.
//! Offline the command has one thread, so these are all its calls. A run of the suite takes a
//! share of the points; `WAYLEAVE_FULL=1` takes all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use wayleave_ledger::{Event, Governance, SystemClock};
use wayleave_model::digest::Digest;

use crate::session::{Session, program};

/// The calls that can meet a full or failing disk.
const WRITING: &[&str] = &[
    "fallocate",
    "fchmod",
    "fdatasync",
    "fsync",
    "ftruncate",
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "pwrite64",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "write",
];

/// A project with one mapping ratified and another drafted.
struct Case {
    /// Whether the live source is asked first, which takes a runtime and its threads.
    live: bool,
    session: Session,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Case {
    fn offline() -> Self {
        Self::new(false)
    }

    fn new(live: bool) -> Self {
        let session = Session::with_dataset();
        let old = session.read("mappings/music.toml");
        let new = format!("{old}# and one line more\n");
        session.write("mappings/music.toml", &new);
        Self {
            live,
            session,
            old: old.into_bytes(),
            new: new.into_bytes(),
        }
    }

    /// A fresh copy of the project.
    fn project(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir_in(self.session.home()).unwrap();
        copy_tree(self.session.here(), copy.path());
        copy
    }

    fn ratify(&self, project: &Path, under: &[&str]) -> Output {
        let program = program();
        let line = [under, &[program.to_str().unwrap()]].concat();
        self.session
            .command(line[0])
            .args(&line[1..])
            .args(["ratify", "music", "--yes", "--project"])
            .arg(project)
            .args((!self.live).then_some("--offline"))
            .output()
            .expect("`strace` runs; else install the package `strace`")
    }

    /// The system calls of an undisturbed run, each with how often it is made.
    fn calls(&self) -> BTreeMap<String, u32> {
        let project = self.project();
        let log = self.session.home().join("log");
        let under = ["strace", "-f", "-qq", "-o", log.to_str().unwrap()];
        let output = self.ratify(project.path(), &under);
        assert!(output.status.success(), "{output:?}");
        let (mut calls, mut threads) = (BTreeMap::new(), BTreeSet::new());
        for line in fs::read_to_string(&log).unwrap().lines() {
            let Some((thread, call)) = line.split_once(' ') else {
                continue;
            };
            threads.insert(thread.to_owned());
            let Some((name, _)) = call.trim_start().split_once('(') else {
                continue;
            };
            if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                *calls.entry(name.to_owned()).or_default() += 1;
            }
        }
        // strace counts by thread: with a second one, its first calls would never be reached.
        assert!(
            self.live || threads.len() == 1,
            "offline the program must have one thread"
        );
        calls
    }

    /// Old or new and nothing else, agreed upon by ledger and files; and a second try leads to
    /// new, recorded once.
    async fn assert_sound(&self, project: &Path, must_be_new: bool, point: &str) {
        let after = governance(project);
        let report = after.audit(None).await.unwrap();
        assert!(report.is_ok(), "{point}: {report:?}");
        let found = after.load("music").await.unwrap();
        let is_new = found.bytes() == self.new;
        assert!(is_new || found.bytes() == self.old, "{point}: torn");
        assert!(is_new || !must_be_new, "{point}: it said so, and did not");
        drop((found, after));

        let retry = self.ratify(project, &[]);
        assert!(retry.status.success(), "{point}: {retry:?}");
        let after = governance(project);
        assert_eq!(
            after.load("music").await.unwrap().bytes(),
            self.new,
            "{point}"
        );
        let entries = after.ledger().entries(0, 99).await.unwrap();
        let expected = Digest::of(&self.new);
        let times = entries.iter().filter(|entry| {
            matches!(&entry.event, Event::DatasetRatified { digest, .. } if *digest == expected)
        });
        assert_eq!(times.count(), 1, "{point}: recorded once");
    }
}

fn governance(project: &Path) -> Governance {
    Governance::open(project, Arc::new(SystemClock)).unwrap()
}

fn copy_tree(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            fs::create_dir(&to).unwrap();
            fs::set_permissions(&to, fs::metadata(&path).unwrap().permissions()).unwrap();
            copy_tree(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// Every point of these calls, or the share of them that this run takes.
fn points(calls: &BTreeMap<String, u32>, share: usize) -> Vec<(String, u32)> {
    let full = std::env::var_os("WAYLEAVE_FULL").is_some();
    calls
        .iter()
        .flat_map(|(name, count)| (1..=*count).map(move |nth| (name.clone(), nth)))
        .step_by(if full { 1 } else { share })
        .collect()
}

fn strace(inject: &str) -> [&str; 7] {
    ["strace", "-f", "-qq", "-o", "/dev/null", "-e", inject]
}

#[tokio::test]
async fn ratify_killed_at_any_call_leaves_old_or_new() {
    let case = Case::offline();
    let calls = case.calls();
    let points = points(&calls, 11);
    let mut spared = 0;
    for (name, nth) in &points {
        let project = case.project();
        let inject = format!("inject={name}:signal=KILL:when={nth}");
        let output = case.ratify(project.path(), &strace(&inject));
        let point = format!("killed at {name} {nth}");
        let survived = output.status.success();
        assert!(
            survived || output.status.signal() == Some(9),
            "{point}: {output:?}"
        );
        spared += usize::from(survived);
        case.assert_sound(project.path(), survived, &point).await;
    }
    let all: u32 = calls.values().sum();
    eprintln!(
        "{} kills at {} of {all} points",
        points.len() - spared,
        points.len()
    );
    // Nothing comes after `exit_group`, and what came before `execve` was not yet the program.
    assert!(spared <= 2, "{spared} points were not reached");
}

#[tokio::test]
async fn ratify_after_asking_the_source_and_killed_while_it_writes_leaves_old_or_new() {
    let case = Case::new(true);
    let mut calls = case.calls();
    calls.retain(|name, _| WRITING.contains(&name.as_str()));
    let mut killed = 0;
    for (name, nth) in points(&calls, 3) {
        let project = case.project();
        let inject = format!("inject={name}:signal=KILL:when={nth}");
        let output = case.ratify(project.path(), &strace(&inject));
        let point = format!("killed at {name} {nth} of a thread");
        // Calls are counted by thread, and which thread makes which is not ours to say.
        let survived = output.status.success();
        killed += u32::from(!survived);
        case.assert_sound(project.path(), survived, &point).await;
    }
    eprintln!("{killed} kills while writing");
    assert!(killed > 0);
}

async fn fail_everywhere(error: &str) {
    let case = Case::offline();
    let mut calls = case.calls();
    calls.retain(|name, _| WRITING.contains(&name.as_str()));
    let points = points(&calls, 3);
    let mut refused = 0;
    for (name, nth) in &points {
        let project = case.project();
        let inject = format!("inject={name}:error={error}:when={nth}");
        let output = case.ratify(project.path(), &strace(&inject));
        let message = String::from_utf8_lossy(&output.stderr);
        let point = format!("{error} at {name} {nth} ({})", message.trim());
        // Some calls may fail without harm, such as the removal of a passing name.
        let succeeded = output.status.success();
        assert!(
            succeeded || output.status.code() == Some(2),
            "{point}: {output:?}"
        );
        assert!(succeeded || message.starts_with("error: "), "{point}");
        refused += u32::from(!succeeded);
        case.assert_sound(project.path(), succeeded, &point).await;
    }
    let all: u32 = calls.values().sum();
    eprintln!("{refused} refusals at {} of {all} points", points.len());
    assert!(refused > 0);
}

#[tokio::test]
async fn ratify_on_a_failing_disk_says_so_and_leaves_old_or_new() {
    fail_everywhere("EIO").await;
}

#[tokio::test]
async fn ratify_on_a_full_disk_says_so_and_leaves_old_or_new() {
    fail_everywhere("ENOSPC").await;
}
