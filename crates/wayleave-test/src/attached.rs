//! Kills a running program at a chosen system call, with `strace` attached to it.
//!
//! A point is a call by its name and its number among those of that name in one thread since
//! `strace` was attached: calls of the start are not counted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a harness fails as its test does"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Calls that are no points: they end a thread, or the program did not make them itself.
const EXCLUDED_CALLS: &[&str] = &["exit", "exit_group", "restart_syscall"];

/// A `strace` attached to a running program, until it is dropped or the program ends.
#[derive(Debug)]
pub struct Tracer(Child);

impl Tracer {
    /// Records every call in a file.
    pub fn recording(pid: u32, log: &Path) -> Self {
        Self::attached(pid, &["-o", log.to_str().unwrap()])
    }

    /// Kills the program when one of its threads makes the `nth` call of that name.
    pub fn killing(pid: u32, (call, nth): (&str, u32)) -> Self {
        let inject = format!("inject={call}:signal=KILL:when={nth}");
        let trace = format!("trace={call}");
        Self::attached(pid, &["-o", "/dev/null", "-e", &trace, "-e", &inject])
    }

    fn attached(pid: u32, words: &[&str]) -> Self {
        let mut tracer = Command::new("strace")
            .arg("-f")
            .args(words)
            .args(["-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{error}; is the package `strace` installed?"));
        let mut said = BufReader::new(tracer.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.contains("attached"), "strace: {line}");
        // It reports every new thread, and must not block on a full pipe.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self(tracer)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // On SIGINT it detaches, and the program continues.
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        let _ = self.0.wait();
    }
}

/// The points of a recorded log, in the order in which they were first reached.
pub fn points(log: &Path) -> Vec<(String, u32)> {
    let mut counts: BTreeMap<(String, String), u32> = BTreeMap::new();
    let mut known = BTreeSet::new();
    let mut points = Vec::new();
    for line in std::fs::read_to_string(log).unwrap().lines() {
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        let Some((name, _)) = call.trim_start().split_once('(') else {
            continue;
        };
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name || name.is_empty() || EXCLUDED_CALLS.contains(&name) {
            continue;
        }
        let count = counts
            .entry((thread.to_owned(), name.to_owned()))
            .or_default();
        *count += 1;
        if known.insert((name.to_owned(), *count)) {
            points.push((name.to_owned(), *count));
        }
    }
    points
}

/// About `share` points, evenly spaced; all points with `WAYLEAVE_FULL=1`.
pub fn taken(points: &[(String, u32)], share: usize) -> Vec<(&str, u32)> {
    let step = if crate::is_full() {
        1
    } else {
        points.len().div_ceil(share).max(1)
    };
    let taken = points.iter().step_by(step);
    taken.map(|(name, nth)| (name.as_str(), *nth)).collect()
}
