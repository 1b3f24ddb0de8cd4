//! Kills a build and a refresh at their system calls.
//!
//! After every kill the folder has either the old index or the new one, complete and current, and
//! the work can be repeated. A run takes a share of the points; `WAYLEAVE_FULL=1` takes all.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

use tempfile::TempDir;
use wayleave_search::{IndexDir, IndexRoot, IndexState, Query, SearchedIndex, Spec, search};
use wayleave_test::crash::{FaultTarget, copy_tree, kill_while_it_writes};

fn spec() -> Spec {
    Spec {
        digest: "ab".repeat(32),
        fields: vec!["body".to_owned()],
        analyzer: wayleave_search::Analyzer::English,
    }
}

fn index_dir(root: &Path) -> IndexDir {
    IndexRoot::new(root).dir("c", "notes").unwrap()
}

/// The path of `examples/make.rs`, which cargo builds beside the tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().parent().unwrap();
    let path = folder.join("examples/make");
    assert!(path.exists(), "`cargo test` builds it: {}", path.display());
    path
}

fn make(root: &Path, action: &str, word: &str, under: &[&str]) -> io::Result<Output> {
    let program = program();
    let line = [under, &[program.to_str().unwrap()]].concat();
    Command::new(line[0])
        .args(&line[1..])
        .args([action, root.to_str().unwrap(), word])
        .output()
}

/// Creates an index of 200 notes that all contain the word `first`.
fn made() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let output = make(root.path(), "build", "first", &[]).unwrap();
    assert!(output.status.success(), "{output:?}");
    root
}

/// The contents of an index.
#[derive(Debug, PartialEq, Eq)]
struct Contents {
    documents: u64,
    /// Number of notes with the word `first`, and with `second`.
    first: usize,
    second: usize,
    as_of: i64,
    bookmark: Option<String>,
}

fn held(root: &Path) -> Contents {
    let IndexState::Ready(index) = index_dir(root).open(&spec()).unwrap() else {
        panic!("no index that is whole");
    };
    let having = |word: &str| {
        let source = SearchedIndex {
            index: &index,
            fields: vec!["body"],
            counted: true,
        };
        let query = Query::parse(word, |_| false);
        let found = search(&[source], &query, None, 1_000).unwrap();
        assert!(found.failed.is_empty());
        found.candidates.len()
    };
    Contents {
        documents: index.documents(),
        first: having("first"),
        second: having("second"),
        as_of: index.stamp().as_of,
        bookmark: index.stamp().bookmark.clone(),
    }
}

/// A build or a refresh of a folder's index, with the word `second`.
struct Making {
    action: &'static str,
    root: TempDir,
    before: Contents,
    after: Contents,
}

impl FaultTarget for Making {
    /// The exit code of a panic; the program has no other.
    const REFUSES: i32 = 101;

    fn project(&self) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_tree(self.root.path(), copy.path());
        copy
    }

    fn run(&self, root: &Path, under: &[&str]) -> io::Result<Output> {
        make(root, self.action, "second", under)
    }

    async fn assert_sound(&self, root: &Path, succeeded: bool, point: &str) {
        let found = held(root);
        assert!(
            found == self.after || (found == self.before && !succeeded),
            "{point}: {found:?}"
        );
        let again = self.run(root, &[]).unwrap();
        assert!(again.status.success(), "{point}: {again:?}");
        assert_eq!(held(root), self.after, "{point}");
        let left = fs::read_dir(root.join("c/notes")).unwrap().count();
        assert_eq!(left, 3, "{point}: something is left behind");
    }
}

fn making(action: &'static str, after: Contents) -> Making {
    let root = made();
    Making {
        before: held(root.path()),
        action,
        root,
        after,
    }
}

#[tokio::test]
async fn a_killed_build_leaves_the_index_of_before_and_can_be_done_again() {
    let after = Contents {
        documents: 200,
        first: 0,
        second: 200,
        as_of: 1,
        bookmark: Some("second".to_owned()),
    };
    kill_while_it_writes(&making("build", after), 20).await;
}

#[tokio::test]
async fn a_killed_refresh_leaves_all_of_it_or_nothing_and_says_which() {
    let after = Contents {
        documents: 200,
        first: 100,
        second: 100,
        as_of: 2,
        bookmark: Some("second".to_owned()),
    };
    kill_while_it_writes(&making("refresh", after), 20).await;
}

#[test]
fn one_process_at_a_time_makes_an_index() {
    let root = made();
    let lock = fs::File::open(root.path().join("c/notes/LOCK")).unwrap();
    lock.lock().unwrap();
    let make = || make(root.path(), "build", "second", &[]).unwrap();
    assert!(!make().status.success());
    assert_eq!(held(root.path()).first, 200);
    lock.unlock().unwrap();
    assert!(make().status.success());
}
