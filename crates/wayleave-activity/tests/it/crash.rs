//! Kills a writer, and makes it fail, at each of its system calls: every call that it acknowledged
//! is on record.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use wayleave_activity::ActivityReader;
use wayleave_test::crash::{
    FaultTarget, copy_tree, fail_everywhere, kill_everywhere, kill_while_it_writes,
};

use crate::calls::{all, log_in, point_read, record};

/// A log with some calls, for a program to append to.
struct Case {
    before: tempfile::TempDir,
    flags: &'static [&'static str],
    /// The ids that the program printed in its last run.
    said: RefCell<Vec<String>>,
}

impl Case {
    fn new(flags: &'static [&'static str]) -> Self {
        let before = tempfile::tempdir().unwrap();
        let log = log_in(&before.path().join("log"));
        for at in 0..3 {
            record(&log, &point_read(at));
        }
        Self {
            before,
            flags,
            said: RefCell::default(),
        }
    }
}

fn program() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let folder = here.parent().and_then(Path::parent).unwrap();
    let path = folder.join("examples/append");
    assert!(
        path.exists(),
        "build it with `cargo test`, which builds examples"
    );
    path
}

impl FaultTarget for Case {
    const REFUSES: i32 = 1;

    fn project(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_tree(self.before.path(), copy.path());
        copy
    }

    fn run(&self, project: &Path, under: &[&str]) -> io::Result<Output> {
        let program = program();
        let words = [under, &[program.to_str().unwrap()]].concat();
        let output = Command::new(words[0])
            .args(&words[1..])
            .arg(project.join("log"))
            .arg("3")
            .args(self.flags)
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        *self.said.borrow_mut() = said.lines().map(str::to_owned).collect();
        Ok(output)
    }

    async fn assert_sound(&self, project: &Path, _: bool, point: &str) {
        let folder = project.join("log");
        let report = ActivityReader::new(&folder).verify(&[]).unwrap();
        assert!(report.is_sound(), "{point}: {report:?}");
        let check = |more: usize| {
            let found = all(&folder);
            let ids: BTreeSet<String> = found.iter().map(|it| it.id.to_string()).collect();
            assert_eq!(ids.len(), found.len(), "{point}: a call twice");
            for said in self.said.borrow().iter() {
                assert!(ids.contains(said), "{point}: {said} is not on record");
            }
            let most = 3 + 3 + more;
            assert!(
                (3 + more..=most).contains(&found.len()),
                "{point}: {}",
                found.len()
            );
        };
        check(0);
        // The next writer continues without a repair.
        let log = log_in(&folder);
        record(&log, &point_read(77));
        drop(log);
        check(1);
        let report = ActivityReader::new(&folder).verify(&[]).unwrap();
        assert!(report.is_sound(), "{point}, continued: {report:?}");
    }
}

#[tokio::test]
async fn a_writer_killed_at_any_call_has_recorded_what_it_said() {
    kill_everywhere(&Case::new(&[]), 5).await;
}

#[tokio::test]
async fn a_writer_that_syncs_and_rotates_is_as_safe() {
    kill_while_it_writes(&Case::new(&["sync"]), 3).await;
    kill_while_it_writes(&Case::new(&["rotate"]), 3).await;
}

#[tokio::test]
async fn a_writer_whose_disk_fails_says_so_and_breaks_nothing() {
    for error in ["ENOSPC", "EIO", "EROFS"] {
        fail_everywhere(&Case::new(&[]), error, 2).await;
    }
}
