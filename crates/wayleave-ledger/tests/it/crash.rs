//! Kills a ratification, and makes it fail, at each of its system calls.
//!
//! A run of the suite takes every seventh point of the kills and every third of the faults;
//! `WAYLEAVE_FULL=1` takes all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::project::{act_path, governance, mapping, ratify_request};
use wayleave_ledger::Event;
use wayleave_model::digest::Digest;
use wayleave_test::crash::{FaultTarget, copy_tree, fail_everywhere, kill_everywhere, strace};

/// A project, and a ratification to make in it.
struct Case {
    dir: tempfile::TempDir,
    old: Option<String>,
    new: String,
}

impl Case {
    /// The first ratification of a new project, which also creates the folder and the ledger.
    fn first() -> Self {
        Self::with(None)
    }

    /// A ratification that replaces another.
    async fn second() -> Self {
        let case = Self::with(Some(mapping("old")));
        let before = governance(&case.dir.path().join("before"));
        before
            .ratify(ratify_request(&mapping("old"), None))
            .await
            .unwrap();
        case
    }

    fn with(old: Option<String>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let new = mapping("new");
        fs::create_dir(dir.path().join("before")).unwrap();
        fs::write(dir.path().join("new.toml"), &new).unwrap();
        Self { dir, old, new }
    }
}

impl FaultTarget for Case {
    const REFUSES: i32 = 1;

    fn project(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir_in(self.dir.path()).unwrap();
        copy_tree(&self.dir.path().join("before"), copy.path());
        copy
    }

    fn run(&self, project: &Path, under: &[&str]) -> io::Result<Output> {
        let path = act_path();
        let under = [under, &[path.to_str().unwrap()]].concat();
        let replaces = self
            .old
            .as_ref()
            .map(|text| Digest::from_bytes(text.as_bytes()).to_string());
        Command::new(under[0])
            .args(&under[1..])
            .arg("freeze")
            .arg(project)
            .arg(self.dir.path().join("new.toml"))
            .arg(replaces.as_deref().unwrap_or("none"))
            .output()
    }

    /// Checks that the project is in the old state or the new one, complete, with ledger and files
    /// in agreement; and that a second run leads to the new state, recorded once.
    async fn assert_sound(&self, project: &Path, succeeded: bool, point: &str) {
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
        assert!(!succeeded || found.as_ref() == Some(&self.new), "{point}");
        for file in frozen(project) {
            let name = file.file_stem().unwrap().to_str().unwrap();
            assert_eq!(
                Digest::from_bytes(&fs::read(&file).unwrap()).hex(),
                name,
                "{point}"
            );
        }
        drop(after);

        let retry = self.run(project, &[]).unwrap();
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
        let expected = Digest::from_bytes(self.new.as_bytes());
        let times = entries.iter().filter(
            |entry| matches!(&entry.event, Event::DatasetRatified(act) if act.digest == expected),
        );
        assert_eq!(times.count(), 1, "{point}: recorded once");
        let leftover = walk(project).into_iter().find(|path| is_temporary(path));
        assert_eq!(leftover, None, "{point}");
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

fn is_temporary(path: &Path) -> bool {
    path.file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .starts_with(".tmp-")
}

/// The frozen mappings under their final names.
fn frozen(project: &Path) -> Vec<PathBuf> {
    walk(&project.join(".wayleave/mappings"))
        .into_iter()
        .filter(|path| !is_temporary(path))
        .collect()
}

#[tokio::test]
async fn a_first_freeze_killed_at_any_call_leaves_old_or_new() {
    kill_everywhere(&Case::first(), 7).await;
}

#[tokio::test]
async fn a_second_freeze_killed_at_any_call_leaves_old_or_new() {
    kill_everywhere(&Case::second().await, 7).await;
}

#[tokio::test]
async fn a_first_freeze_that_meets_a_failing_disk_says_so_and_leaves_old_or_new() {
    fail_everywhere(&Case::first(), "EIO", 3).await;
}

#[tokio::test]
async fn a_second_freeze_that_meets_a_failing_disk_says_so_and_leaves_old_or_new() {
    fail_everywhere(&Case::second().await, "EIO", 3).await;
}

#[tokio::test]
async fn a_first_freeze_that_meets_a_full_disk_says_so_and_leaves_old_or_new() {
    fail_everywhere(&Case::first(), "ENOSPC", 3).await;
}

#[tokio::test]
async fn a_second_freeze_that_meets_a_full_disk_says_so_and_leaves_old_or_new() {
    fail_everywhere(&Case::second().await, "ENOSPC", 3).await;
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
            // A sync whose failure SQLite tolerates, or a number beyond the program's last sync.
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
    // Three appends before the last; each syncs a head, a log and a folder.
    assert!(halted >= 9, "only {halted} syncs were reached");
}
