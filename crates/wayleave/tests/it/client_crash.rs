//! Kills `wayleave client install`, and makes it fail, at its system calls.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Output;

use wayleave_test::crash::{FaultTarget, copy_tree, fail_everywhere, kill_everywhere};

use crate::client::{CLIENTS, Client, shop};
use crate::session::{Session, program};

/// A home folder in which one client already has another server.
struct Case {
    session: Session,
    client: &'static Client,
    before: tempfile::TempDir,
    old: String,
    new: String,
}

impl Case {
    fn new(word: &str) -> Self {
        let session = shop();
        let client = CLIENTS.iter().find(|it| it.word == word).unwrap();
        let path = client.path(&session);
        client.had(&session, client.others);
        client.install(&session, &["--write"]).exits(0);
        let new = fs::read_to_string(path).unwrap();
        let before = tempfile::tempdir().unwrap();
        let path = before.path().join(client.settings);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, client.others).unwrap();
        Self {
            session,
            client,
            before,
            old: client.others.to_owned(),
            new,
        }
    }
}

impl FaultTarget for Case {
    const REFUSES: i32 = 2;

    fn project(&self) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        copy_tree(self.before.path(), home.path());
        home
    }

    fn run(&self, project: &Path, under: &[&str]) -> io::Result<Output> {
        let program = program();
        let line = [under, &[program.to_str().unwrap()]].concat();
        self.session
            .command(line[0])
            .args(&line[1..])
            .args(["client", "install", self.client.word, "--write"])
            .env("HOME", project)
            .output()
    }

    async fn assert_sound(&self, project: &Path, succeeded: bool, point: &str) {
        let path = project.join(self.client.settings);
        let found = fs::read_to_string(&path).unwrap();
        let is_new = found == self.new;
        assert!(is_new || found == self.old, "{point}: torn");
        assert!(is_new || !succeeded, "{point}: it said so, and did not");
        let retry = self.run(project, &[]).unwrap();
        assert!(retry.status.success(), "{point}: {retry:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), self.new, "{point}");
        let beside = fs::read_dir(path.parent().unwrap()).unwrap();
        let kept = beside.filter(|it| {
            let name = it.as_ref().unwrap().file_name();
            name.to_string_lossy().contains(".bak-")
        });
        assert!(kept.count() >= 1, "{point}: what was there is kept");
    }
}

#[tokio::test]
async fn settings_killed_over_at_any_call_are_the_old_or_the_new() {
    kill_everywhere(&Case::new("cursor"), 11).await;
}

#[tokio::test]
async fn settings_on_a_full_disk_are_the_old_or_the_new_and_it_says_which() {
    fail_everywhere(&Case::new("codex"), "ENOSPC", 1).await;
}

#[tokio::test]
async fn settings_on_a_failing_disk_are_the_old_or_the_new_and_it_says_which() {
    fail_everywhere(&Case::new("cursor"), "EIO", 1).await;
}
