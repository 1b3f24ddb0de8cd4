//! Kills a program at its system calls, or makes them fail, with `strace`.
//!
//! Each point is one system call, by its name and its number among the calls of that name. A run
//! takes a share of the points; `WAYLEAVE_FULL=1` takes all, and `WAYLEAVE_SHOW=1` with
//! `--nocapture` prints the program's output at each fault. Must not know the program's purpose.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a harness fails as its test does, and tells how much it did"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

/// Calls that can fail on a full or broken disk. Not `writev`, by which programs report errors.
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

/// Further calls that change a disk. A program could not even start if they failed.
const SETUP_CALLS: &[&str] = &["openat", "rmdir"];

/// Calls that put data or a name in place. A program may survive the failure of a later one, such as
/// in a checkpoint, but not that of its first.
const PLACING_CALLS: &[&str] = &["fsync", "linkat", "pwrite64"];

/// Maximum number of runs for a point that a program survives.
const MAX_KILL_ATTEMPTS: usize = 4;
/// Number of undisturbed runs whose calls are recorded.
const RECORDED_RUNS: usize = 3;

/// A program that changes a project, run with faults injected.
pub trait FaultTarget {
    /// The exit code of a refusal.
    const REFUSES: i32;

    /// A fresh copy of the project.
    fn project(&self) -> TempDir;

    /// Runs the program on a project, wrapped in the command `under` unless that is empty.
    fn run(&self, project: &Path, under: &[&str]) -> io::Result<Output>;

    /// Checks that the project is exactly as before or exactly as after the change, and as after if
    /// the program `succeeded`.
    fn assert_sound(
        &self,
        project: &Path,
        succeeded: bool,
        point: &str,
    ) -> impl Future<Output = ()>;
}

/// The command that runs a program under `strace` with one fault or signal injected.
pub fn strace(inject: &str) -> [&str; 7] {
    ["strace", "-f", "-qq", "-o", "/dev/null", "-e", inject]
}

/// Copies a folder, with the modes of its folders.
pub fn copy_tree(from: &Path, to: &Path) {
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

/// The system calls of an undisturbed run.
struct Calls {
    /// The largest number of calls of each name in one thread: `strace` counts by thread.
    counts: BTreeMap<String, u32>,
    threads: usize,
}

impl Calls {
    fn from_run(case: &impl FaultTarget) -> Self {
        let project = case.project();
        let beside = tempfile::tempdir().unwrap();
        let log = beside.path().join("log");
        let under = ["strace", "-f", "-qq", "-o", log.to_str().unwrap()];
        let output = ran(case, project.path(), &under);
        assert!(output.status.success(), "{output:?}");
        let mut by_thread: BTreeMap<(String, String), u32> = BTreeMap::new();
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
                let call = (thread.to_owned(), name.to_owned());
                *by_thread.entry(call).or_default() += 1;
            }
        }
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for ((_, name), count) in by_thread {
            let most = counts.entry(name).or_default();
            *most = count.max(*most);
        }
        Self {
            counts,
            threads: threads.len(),
        }
    }

    /// Records the calls that each of several single-threaded runs makes: the number of memory calls
    /// differs from run to run. `strace` counts by thread: with a second thread, some points would
    /// never be reached.
    fn from_single_threaded_runs(case: &impl FaultTarget) -> Self {
        let mut calls = Self::from_run(case);
        for _ in 1..RECORDED_RUNS {
            let other = Self::from_run(case);
            calls.threads = calls.threads.max(other.threads);
            calls.counts.retain(|name, count| {
                *count = other.counts.get(name).map_or(0, |it| *it.min(count));
                *count > 0
            });
        }
        assert_eq!(calls.threads, 1, "the program must have one thread");
        calls
    }

    fn that_write(mut self) -> Self {
        self.counts
            .retain(|name, _| WRITING.contains(&name.as_str()));
        self
    }

    fn that_change(mut self) -> Self {
        let changing = [WRITING, SETUP_CALLS].concat();
        self.counts
            .retain(|name, _| changing.contains(&name.as_str()));
        self
    }

    fn total(&self) -> u32 {
        self.counts.values().sum()
    }

    /// Every point of these calls, or one in `share` of them.
    fn points(&self, share: usize) -> Vec<(&str, u32)> {
        let step = if crate::is_full() { 1 } else { share };
        self.counts
            .iter()
            .flat_map(|(name, count)| (1..=*count).map(move |nth| (name.as_str(), nth)))
            .step_by(step)
            .collect()
    }
}

fn ran(case: &impl FaultTarget, project: &Path, under: &[&str]) -> Output {
    case.run(project, under)
        .unwrap_or_else(|error| panic!("{error}; is the package `strace` installed?"))
}

/// Kills a program of one thread at one in `share` of all its calls.
pub async fn kill_everywhere(case: &impl FaultTarget, share: usize) {
    let calls = Calls::from_single_threaded_runs(case);
    let points = calls.points(share);
    let mut spared = Vec::new();
    for (name, nth) in &points {
        let inject = format!("inject={name}:signal=KILL:when={nth}");
        let point = format!("killed at {name} {nth}");
        let mut survived = true;
        // The last few memory calls depend on where the kernel places memory.
        for _ in 0..MAX_KILL_ATTEMPTS {
            let project = case.project();
            let output = ran(case, project.path(), &strace(&inject));
            survived = output.status.success();
            assert!(
                survived || output.status.signal() == Some(9),
                "{point}: {output:?}"
            );
            case.assert_sound(project.path(), survived, &point).await;
            if !survived {
                break;
            }
        }
        if survived {
            spared.push(format!("{name} {nth}"));
        }
    }
    let (kills, all) = (points.len() - spared.len(), calls.total());
    eprintln!("{kills} kills at {} of {all} points", points.len());
    // A kill at `exit_group` comes too late, and one at `execve` precedes the program.
    assert!(spared.len() <= 2, "not reached: {spared:?}");
}

/// Kills a program of several threads at one in `share` of the calls that change a disk. Calls are
/// counted by thread, and the test does not control which thread makes which call.
pub async fn kill_while_it_writes(case: &impl FaultTarget, share: usize) {
    let calls = Calls::from_run(case).that_change();
    let points = calls.points(share);
    let mut killed = 0;
    for (name, nth) in &points {
        let project = case.project();
        let inject = format!("inject={name}:signal=KILL:when={nth}");
        let output = ran(case, project.path(), &strace(&inject));
        let point = format!("killed at {name} {nth} of a thread");
        let survived = output.status.success();
        assert!(
            survived || output.status.signal() == Some(9),
            "{point}: {output:?}"
        );
        killed += usize::from(!survived);
        case.assert_sound(project.path(), survived, &point).await;
    }
    let all = calls.total();
    eprintln!("{killed} kills at {} of {all} points", points.len());
    // Work is distributed to threads at random, so some points are not reached.
    assert!(killed * 10 >= points.len() * 8, "too few were reached");
}

/// Fails one in `share` of the calls that write with an error, such as `ENOSPC`, in a program of
/// one thread; and the first of each that puts data or a name in place, which it must report.
pub async fn fail_everywhere<C: FaultTarget>(case: &C, error: &str, share: usize) {
    let calls = Calls::from_single_threaded_runs(case).that_write();
    let mut points = calls.points(share);
    for name in PLACING_CALLS {
        if calls.counts.contains_key(*name) && !points.contains(&(*name, 1)) {
            points.push((*name, 1));
        }
    }
    let mut refused = 0;
    for (name, nth) in &points {
        let project = case.project();
        let inject = format!("inject={name}:error={error}:when={nth}");
        let output = ran(case, project.path(), &strace(&inject));
        let message = String::from_utf8_lossy(&output.stderr);
        let point = format!("{error} at {name} {nth} ({})", message.trim());
        // Some calls may fail without harm, such as the removal of a temporary name.
        let succeeded = output.status.success();
        assert!(
            succeeded || output.status.code() == Some(C::REFUSES),
            "{point}: {output:?}"
        );
        assert!(succeeded || message.starts_with("error: "), "{point}");
        let must_refuse = *nth == 1 && PLACING_CALLS.contains(name);
        assert!(!(succeeded && must_refuse), "{point}: it did not say so");
        refused += usize::from(!succeeded);
        if std::env::var_os("WAYLEAVE_SHOW").is_some() {
            eprintln!("{point}");
        }
        case.assert_sound(project.path(), succeeded, &point).await;
    }
    let all = calls.total();
    eprintln!("{refused} refusals at {} of {all} points", points.len());
    assert!(
        refused * 2 >= points.len(),
        "too many errors were swallowed"
    );
}
