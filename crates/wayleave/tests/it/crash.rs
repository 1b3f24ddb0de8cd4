//! Kills `wayleave ratify`, signed by an owner, and makes it fail, at its system calls.
//!
//! A run of the suite takes a share of the points; `WAYLEAVE_FULL=1` takes all. Most of the time is
//! spent opening the key.

use std::io;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use wayleave_ledger::{Event, Governance, SystemClock};
use wayleave_model::digest::Digest;
use wayleave_test::crash::{
    FaultTarget, copy_tree, fail_everywhere, kill_everywhere, kill_while_it_writes,
};

use crate::session::{Session, program};

/// A project with one ratified mapping and another draft.
struct Case {
    /// Whether the live source is compared first, which takes a runtime and its threads.
    live: bool,
    /// Whether this user has a trust record of the project. Without one, the first writes are those
    /// of the record, and the program survives their failure.
    is_known: bool,
    session: Session,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Case {
    fn new(live: bool) -> Self {
        let session = Session::with_dataset();
        session.add_owner();
        let old = session.read("mappings/music.toml");
        let new = format!("{old}# and one line more\n");
        session.write("mappings/music.toml", &new);
        Self {
            live,
            is_known: false,
            session,
            old: old.into_bytes(),
            new: new.into_bytes(),
        }
    }

    fn known() -> Self {
        Self {
            is_known: true,
            ..Self::new(false)
        }
    }
}

impl FaultTarget for Case {
    const REFUSES: i32 = 2;

    fn project(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir_in(self.session.home()).unwrap();
        copy_tree(self.session.here(), copy.path());
        if self.is_known {
            let mut command = self.session.command(program());
            let command = command.args(["datasets", "--project"]).arg(copy.path());
            let noted = command.output().unwrap();
            assert!(noted.status.success(), "{noted:?}");
        }
        copy
    }

    fn run(&self, project: &Path, under: &[&str]) -> io::Result<Output> {
        let program = program();
        let line = [under, &[program.to_str().unwrap()]].concat();
        self.session
            .command(line[0])
            .args(&line[1..])
            .args(["ratify", "music", "--project"])
            .arg(project)
            .args(self.session.signing())
            .args((!self.live).then_some("--offline"))
            .output()
    }

    /// Checks that the project is in the old state or the new one, in ledger and files alike; and
    /// that a second run leads to the new state, recorded once.
    async fn assert_sound(&self, project: &Path, succeeded: bool, point: &str) {
        let after = governance(project);
        let report = after.audit(None).await.unwrap();
        assert!(report.is_ok(), "{point}: {report:?}");
        let found = after.load("music").await.unwrap();
        let is_new = found.bytes() == self.new;
        assert!(is_new || found.bytes() == self.old, "{point}: torn");
        assert!(is_new || !succeeded, "{point}: it said so, and did not");
        drop((found, after));

        let retry = self.run(project, &[]).unwrap();
        assert!(retry.status.success(), "{point}: {retry:?}");
        let after = governance(project);
        assert_eq!(
            after.load("music").await.unwrap().bytes(),
            self.new,
            "{point}"
        );
        let entries = after.ledger().entries(0, 99).await.unwrap();
        let expected = Digest::from_bytes(&self.new);
        let times = entries.iter().filter(
            |entry| matches!(&entry.event, Event::DatasetRatified(act) if act.digest == expected),
        );
        assert_eq!(times.count(), 1, "{point}: recorded once");
    }
}

fn governance(project: &Path) -> Governance {
    Governance::open(project, Arc::new(SystemClock)).unwrap()
}

#[tokio::test]
async fn ratify_killed_at_any_call_leaves_old_or_new() {
    kill_everywhere(&Case::new(false), 44).await;
}

#[tokio::test]
async fn ratify_after_asking_the_source_and_killed_while_it_writes_leaves_old_or_new() {
    kill_while_it_writes(&Case::new(true), 12).await;
}

#[tokio::test]
async fn ratify_on_a_failing_disk_says_so_and_leaves_old_or_new() {
    fail_everywhere(&Case::known(), "EIO", 12).await;
}

#[tokio::test]
async fn ratify_on_a_full_disk_says_so_and_leaves_old_or_new() {
    fail_everywhere(&Case::known(), "ENOSPC", 12).await;
}
