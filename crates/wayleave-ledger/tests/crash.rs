//! Killing and starving a freeze at every one of its system calls.
//!
//! Each point is one system call, by its name and its number among the calls of that name; the
//! program has one thread, so these are all its calls. A run of the suite takes every seventh
//! point of the kills and every third of the faults; `WAYLEAVE_FULL=1` takes all, and
//! `WAYLEAVE_SHOW=1` with `--nocapture` prints what the program said at each fault.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests"
)]

mod project;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use project::{act_path, freeze, governance, mapping};
use wayleave_ledger::Event;
use wayleave_model::digest::Digest;

/// The calls that can meet a full or failing disk. `writev` is how the program reports errors.
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

/// A project before the freeze, and the freeze.
struct Case {
    dir: tempfile::TempDir,
    old: Option<String>,
    new: String,
}

impl Case {
    /// The first freeze of a new project: makes folder and ledger too.
    fn first() -> Self {
        Self::with(None)
    }

    /// A freeze that replaces another.
    async fn second() -> Self {
        let case = Self::with(Some(mapping("old")));
        let before = governance(&case.dir.path().join("before"));
        before.freeze(freeze(&mapping("old"), None)).await.unwrap();
        case
    }

    fn with(old: Option<String>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let new = mapping("new");
        fs::create_dir(dir.path().join("before")).unwrap();
        fs::write(dir.path().join("new.toml"), &new).unwrap();
        Self { dir, old, new }
    }

    /// A fresh copy of the project.
    fn project(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir_in(self.dir.path()).unwrap();
        copy_tree(&self.dir.path().join("before"), copy.path());
        copy
    }

    /// Runs the freeze under another program, or by itself.
    fn freeze(&self, project: &Path, under: &[&str]) -> Output {
        let path = act_path();
        let under = [under, &[path.to_str().unwrap()]].concat();
        let replaces = self
            .old
            .as_ref()
            .map(|text| Digest::of(text.as_bytes()).to_string());
        Command::new(under[0])
            .args(&under[1..])
            .arg("freeze")
            .arg(project)
            .arg(self.dir.path().join("new.toml"))
            .arg(replaces.as_deref().unwrap_or("none"))
            .output()
            .unwrap_or_else(|error| panic!("`{}`: {error}; install the package `strace`", under[0]))
    }

    /// The system calls of an undisturbed freeze, each with how often it is made.
    fn calls(&self) -> BTreeMap<String, u32> {
        let project = self.project();
        let log = self.dir.path().join("log");
        let under = ["strace", "-f", "-qq", "-o", log.to_str().unwrap()];
        let output = self.freeze(project.path(), &under);
        assert!(output.status.success(), "{output:?}");
        let mut calls: BTreeMap<String, u32> = BTreeMap::new();
        let mut threads = BTreeSet::new();
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
        assert_eq!(threads.len(), 1, "the program must have one thread");
        calls
    }

    /// Old or new and nothing else, whole, agreed upon by ledger and files; and a second try
    /// leads to new, recorded once.
    async fn assert_sound(&self, project: &Path, must: Option<&str>, point: &str) {
        let after = governance(project);
        let report = after.audit(None).await.unwrap();
        assert!(report.is_ok(), "{point}: {report:?}");
        let found = after.load("crm").await.ok();
        let found = found
            .as_ref()
            .map(|it| str::from_utf8(it.bytes()).unwrap().to_owned());
        assert!(
            found == self.old || found.as_ref() == Some(&self.new),
            "{point}: {found:?}"
        );
        assert!(
            must.is_none_or(|must| found.as_deref() == Some(must)),
            "{point}"
        );
        for file in frozen(project) {
            let name = file.file_stem().unwrap().to_str().unwrap();
            assert_eq!(Digest::of(&fs::read(&file).unwrap()).hex(), name, "{point}");
        }
        drop(after);

        let retry = self.freeze(project, &[]);
        assert!(retry.status.success(), "{point}: {retry:?}");
        let after = governance(project);
        after.gc().await.unwrap();
        assert_eq!(
            after.load("crm").await.unwrap().bytes(),
            self.new.as_bytes(),
            "{point}"
        );
        assert!(after.audit(None).await.unwrap().is_ok(), "{point}");
        let entries = after.ledger().entries(0, 99).await.unwrap();
        let expected = Digest::of(self.new.as_bytes());
        let times = entries.iter().filter(|entry| {
            matches!(&entry.event, Event::DatasetRatified { digest, .. } if *digest == expected)
        });
        assert_eq!(times.count(), 1, "{point}: recorded once");
        let leftover = walk(project).into_iter().find(|path| is_passing(path));
        assert_eq!(leftover, None, "{point}");
    }
}

fn copy_tree(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (
            entry.as_ref().unwrap().path(),
            to.join(entry.unwrap().file_name()),
        );
        if path.is_dir() {
            fs::create_dir(&to).unwrap();
            fs::set_permissions(&to, fs::metadata(&path).unwrap().permissions()).unwrap();
            copy_tree(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn is_passing(path: &Path) -> bool {
    path.file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .starts_with(".tmp-")
}

/// The frozen mappings under their lasting names.
fn frozen(project: &Path) -> Vec<PathBuf> {
    walk(&project.join(".wayleave/mappings"))
        .into_iter()
        .filter(|path| !is_passing(path))
        .collect()
}

fn step(share: usize) -> usize {
    if std::env::var_os("WAYLEAVE_FULL").is_some() {
        1
    } else {
        share
    }
}

/// Every point of these calls, or the share of them that this run takes.
fn points(calls: &BTreeMap<String, u32>, share: usize) -> Vec<(String, u32)> {
    calls
        .iter()
        .flat_map(|(name, count)| (1..=*count).map(move |nth| (name.clone(), nth)))
        .step_by(step(share))
        .collect()
}

fn strace(inject: &str) -> [&str; 7] {
    ["strace", "-f", "-qq", "-o", "/dev/null", "-e", inject]
}

async fn kill_everywhere(case: &Case) {
    let calls = case.calls();
    let points = points(&calls, 7);
    let mut killed = 0;
    for (name, nth) in &points {
        let project = case.project();
        let inject = format!("inject={name}:signal=KILL:when={nth}");
        let output = case.freeze(project.path(), &strace(&inject));
        let point = format!("killed at {name} {nth}");
        let survived = output.status.success();
        assert!(
            survived || output.status.signal() == Some(9),
            "{point}: {output:?}"
        );
        killed += u32::from(!survived);
        let must = survived.then_some(case.new.as_str());
        case.assert_sound(project.path(), must, &point).await;
    }
    eprintln!(
        "{killed} kills at {} of {} points",
        points.len(),
        calls.values().sum::<u32>()
    );
    // Nothing comes after `exit_group`, and what came before `execve` was not yet the program.
    let spared = points.len() - usize::try_from(killed).unwrap();
    assert!(spared <= 2, "{spared} points were not reached");
}

#[tokio::test]
async fn a_first_freeze_killed_at_any_call_leaves_old_or_new() {
    kill_everywhere(&Case::first()).await;
}

#[tokio::test]
async fn a_second_freeze_killed_at_any_call_leaves_old_or_new() {
    kill_everywhere(&Case::second().await).await;
}

async fn fail_everywhere(case: &Case, error: &str) {
    let mut calls = case.calls();
    calls.retain(|name, _| WRITING.contains(&name.as_str()));
    let points = points(&calls, 3);
    let mut refused = 0;
    for (name, nth) in &points {
        let project = case.project();
        let inject = format!("inject={name}:error={error}:when={nth}");
        let output = case.freeze(project.path(), &strace(&inject));
        let message = String::from_utf8_lossy(&output.stderr);
        let point = format!("{error} at {name} {nth} ({})", message.trim());
        // Some calls may fail without harm, such as the removal of a passing name.
        let succeeded = output.status.success();
        assert!(
            succeeded || output.status.code() == Some(1),
            "{point}: {output:?}"
        );
        assert!(succeeded || message.starts_with("error: "), "{point}");
        refused += u32::from(!succeeded);
        if std::env::var_os("WAYLEAVE_SHOW").is_some() {
            eprintln!("{point}");
        }
        let must = succeeded.then_some(case.new.as_str());
        case.assert_sound(project.path(), must, &point).await;
    }
    eprintln!(
        "{refused} refusals at {} of {} points",
        points.len(),
        calls.values().sum::<u32>()
    );
    assert!(refused > 0);
}

#[tokio::test]
async fn a_first_freeze_that_meets_a_failing_disk_says_so_and_leaves_old_or_new() {
    fail_everywhere(&Case::first(), "EIO").await;
}

#[tokio::test]
async fn a_second_freeze_that_meets_a_failing_disk_says_so_and_leaves_old_or_new() {
    fail_everywhere(&Case::second().await, "EIO").await;
}

#[tokio::test]
async fn a_first_freeze_that_meets_a_full_disk_says_so_and_leaves_old_or_new() {
    fail_everywhere(&Case::first(), "ENOSPC").await;
}

#[tokio::test]
async fn a_second_freeze_that_meets_a_full_disk_says_so_and_leaves_old_or_new() {
    fail_everywhere(&Case::second().await, "ENOSPC").await;
}

#[tokio::test]
async fn after_a_failed_sync_a_process_writes_no_more() {
    let (mut halted, most) = (0, 24);
    for nth in 1..=most {
        let dir = tempfile::tempdir().unwrap();
        governance(dir.path());
        let inject = format!("inject=fsync:error=EIO:when={nth}");
        let output = Command::new("strace")
            .args(&strace(&inject)[1..])
            .arg(act_path())
            .arg("insist")
            .arg(dir.path())
            .args(["s", "4"])
            .output()
            .expect("`strace` runs; else install the package `strace`");
        let message = String::from_utf8(output.stderr).unwrap();
        let told: Vec<_> = message.lines().collect();
        let point = format!("fsync {nth}: {message}");
        let governance = governance(dir.path());
        let report = governance.audit(None).await.unwrap();
        assert!(report.is_ok(), "{point}: {report:?}");
        let sources = governance.ledger().state().await.unwrap().sources().len();
        let Some((first, later)) = told.split_first() else {
            // A sync that SQLite can do without, or past the last one of the program.
            assert_eq!(sources, 4, "{point}");
            continue;
        };
        assert!(
            nth < most,
            "{point}: the program has more syncs than were tried"
        );
        assert!(!first.contains("writes no more"), "{point}");
        assert!(
            later.iter().all(|line| line.contains("writes no more")),
            "{point}"
        );
        assert!(sources + told.len() <= 5, "{point}: {sources} recorded");
        halted += u32::from(!later.is_empty());
    }
    // Three appends before the last, each with a head, a log and a folder to sync.
    assert!(halted >= 9, "only {halted} syncs were reached");
}
