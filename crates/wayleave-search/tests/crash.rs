//! Killing a build and a refresh while they run.
//!
//! Each point is one system call that changes a file, counted within its thread. A run takes 10
//! points of each; `WAYLEAVE_FULL=1` takes 150 of each, or as many as there are. After every kill
//! the place holds the index of before or the one of after, whole, and says which; and the work can
//! be done again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use wayleave_search::{Found, Place, Query, Shelf, Source, Spec, search};

/// The calls that change what is on disk.
const CHANGING: &[&str] = &[
    "openat",
    "write",
    "pwrite64",
    "rename",
    "fsync",
    "fdatasync",
    "unlink",
    "unlinkat",
    "mkdir",
    "ftruncate",
    "rmdir",
];

fn spec() -> Spec {
    Spec {
        digest: "ab".repeat(32),
        fields: vec!["body".to_owned()],
    }
}

fn place(root: &Path) -> Place {
    Shelf::new(root).place("c", "notes").unwrap()
}

/// The program of `examples/make.rs`, which cargo builds beside the tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/make");
    assert!(path.exists(), "`cargo test` builds it: {}", path.display());
    path
}

fn make(root: &Path, action: &str, word: &str, under: &[String]) -> Output {
    let program = program().to_str().unwrap().to_owned();
    let all: Vec<String> = under.iter().cloned().chain([program]).collect();
    Command::new(&all[0])
        .args(&all[1..])
        .args([action, root.to_str().unwrap(), word])
        .output()
        .unwrap_or_else(|error| panic!("`{}`: {error}; install the package `strace`", all[0]))
}

fn killed_at(call: &str, count: usize) -> Vec<String> {
    let inject = format!("inject={call}:signal=SIGKILL:when={count}");
    ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject]
        .map(str::to_owned)
        .to_vec()
}

fn holding(root: &Path, word: &str) -> Option<(u64, usize, i64, Option<String>)> {
    let Found::Fit(index) = place(root).open(&spec()).unwrap() else {
        return None;
    };
    let source = Source {
        index: &index,
        fields: vec!["body"],
        counted: true,
    };
    let query = Query::parse(word, |_| false);
    let found = search(&[source], &query, None, 1_000).unwrap();
    assert!(found.failed.is_empty());
    let stamp = index.stamp();
    Some((
        index.documents(),
        found.candidates.len(),
        stamp.as_of,
        stamp.bookmark.clone(),
    ))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The points at which to kill: spread evenly over the calls that an undisturbed run makes. A
/// point is reached by whichever thread first makes so many calls of that name.
fn points(before: &Path, action: &str) -> Vec<(&'static str, usize)> {
    let root = tempfile::tempdir().unwrap();
    copy(before, root.path());
    let log = root.path().join("log");
    let under = ["strace", "-f", "-qq", "-o", log.to_str().unwrap()].map(str::to_owned);
    assert!(make(root.path(), action, "second", &under).status.success());
    let mut counts: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
    for line in fs::read_to_string(&log).unwrap().lines() {
        let (thread, call) = line.split_once(' ').unwrap();
        let name = call.trim_start().split('(').next().unwrap_or_default();
        if let Some(known) = CHANGING.iter().find(|it| **it == name) {
            *counts.entry((thread.to_owned(), known)).or_default() += 1;
        }
    }
    let mut all = Vec::new();
    for call in CHANGING {
        let of_call = counts.iter().filter(|((_, it), _)| it == call);
        let most = of_call.map(|(_, count)| *count).max().unwrap_or(0);
        all.extend((1..=most).map(|count| (*call, count)));
    }
    let wanted = wanted().min(all.len());
    (0..wanted).map(|at| all[at * all.len() / wanted]).collect()
}

fn wanted() -> usize {
    let full = std::env::var("WAYLEAVE_FULL").is_ok_and(|it| it == "1");
    if full { 150 } else { 10 }
}

#[test]
fn a_killed_build_leaves_the_index_of_before_and_can_be_done_again() {
    let before = tempfile::tempdir().unwrap();
    assert!(make(before.path(), "build", "first", &[]).status.success());
    let old = Some((200, 200, 1, Some("first".to_owned())));
    let new = Some((200, 200, 1, Some("second".to_owned())));
    assert_eq!(holding(before.path(), "first"), old);
    let mut kills = 0;
    let points = points(before.path(), "build");
    for (call, count) in points.iter().copied() {
        let root = tempfile::tempdir().unwrap();
        copy(before.path(), root.path());
        let output = make(root.path(), "build", "second", &killed_at(call, count));
        kills +=
            usize::from(output.status.signal() == Some(9) || output.status.code() == Some(137));
        let first = holding(root.path(), "first").unwrap();
        let second = holding(root.path(), "second").unwrap();
        let point = format!("{call} {count}");
        match first.3.as_deref() {
            Some("first") => assert_eq!((Some(first), second.1), (old.clone(), 0), "{point}"),
            _ => assert_eq!((first.1, Some(second)), (0, new.clone()), "{point}"),
        }
        let again = make(root.path(), "build", "second", &[]);
        assert!(again.status.success(), "{point}: {again:?}");
        assert_eq!(holding(root.path(), "second"), new, "{point}");
        let folder = root.path().join("c/notes");
        assert_eq!(
            fs::read_dir(folder).unwrap().count(),
            3,
            "{point}: nothing is left behind"
        );
    }
    eprintln!("{kills} kills at {} points of a build", points.len());
    assert!(
        kills * 10 >= points.len() * 9,
        "too few points were reached: {kills}"
    );
}

#[test]
fn a_killed_refresh_leaves_all_of_it_or_nothing_and_says_which() {
    let before = tempfile::tempdir().unwrap();
    assert!(make(before.path(), "build", "first", &[]).status.success());
    let mut kills = 0;
    let points = points(before.path(), "refresh");
    for (call, count) in points.iter().copied() {
        let root = tempfile::tempdir().unwrap();
        copy(before.path(), root.path());
        let output = make(root.path(), "refresh", "second", &killed_at(call, count));
        kills +=
            usize::from(output.status.signal() == Some(9) || output.status.code() == Some(137));
        let point = format!("{call} {count}");
        let (documents, first, as_of, bookmark) = holding(root.path(), "first").unwrap();
        let (_, second, ..) = holding(root.path(), "second").unwrap();
        assert_eq!(documents, 200, "{point}");
        match bookmark.as_deref() {
            Some("first") => assert_eq!((first, second, as_of), (200, 0, 1), "{point}"),
            _ => assert_eq!((first, second, as_of), (100, 100, 2), "{point}"),
        }
        let again = make(root.path(), "refresh", "second", &[]);
        assert!(again.status.success(), "{point}: {again:?}");
        let done = (200, 100, 2, Some("second".to_owned()));
        assert_eq!(holding(root.path(), "second"), Some(done), "{point}");
    }
    eprintln!("{kills} kills at {} points of a refresh", points.len());
    assert!(
        kills * 10 >= points.len() * 9,
        "too few points were reached: {kills}"
    );
}

#[test]
fn one_process_at_a_time_makes_an_index() {
    let root = tempfile::tempdir().unwrap();
    assert!(make(root.path(), "build", "first", &[]).status.success());
    let lock = fs::File::open(root.path().join("c/notes/LOCK")).unwrap();
    lock.lock().unwrap();
    let refused = make(root.path(), "build", "second", &[]);
    assert!(!refused.status.success());
    assert_eq!(holding(root.path(), "first").unwrap().1, 200);
    lock.unlock().unwrap();
    assert!(make(root.path(), "build", "second", &[]).status.success());
}
