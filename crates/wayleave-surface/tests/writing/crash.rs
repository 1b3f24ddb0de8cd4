//! Writers that are killed at their system calls, and databases that are lost under them: no
//! acknowledged write is lost, and none with a key is applied twice.
//!
//! The killed program is this test's own binary, which runs [`write_once`] as a process of its own.
//! A run takes a share of the points; `WAYLEAVE_FULL=1` takes all.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_test::{mariadb, postgres};

use crate::laboratory::{KINDS, Laboratory, count, writer};

const KIND: &str = "WAYLEAVE_TEST_KIND";
const DSN: &str = "WAYLEAVE_TEST_DSN";
const NAME: &str = "WAYLEAVE_TEST_NAME";

/// Makes one record, with its name as its key, and says so when that is acknowledged.
#[tokio::test]
#[ignore = "run by the tests that kill it"]
async fn write_once() {
    let (Ok(kind), Ok(dsn), Ok(name)) =
        (std::env::var(KIND), std::env::var(DSN), std::env::var(NAME))
    else {
        return;
    };
    let kind = KINDS.into_iter().find(|it| it.as_str() == kind).unwrap();
    let laboratory = Laboratory::at(kind, &dsn);
    let given =
        json!({ "name": name, "status": "proposed", "region": "eu", "idempotency_key": name });
    laboratory.done(&writer(), "crm_hire", given).await;
    println!("acknowledged");
}

fn run(laboratory: &Laboratory, name: &str, under: &[&str]) -> Output {
    let program = std::env::current_exe().unwrap();
    let words = [under, &[program.to_str().unwrap()]].concat();
    Command::new(words[0])
        .args(&words[1..])
        .args([
            "--exact",
            "crash::write_once",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(KIND, laboratory.kind.as_str())
        .env(DSN, &laboratory.dsn)
        .env(NAME, name)
        .output()
        .unwrap_or_else(|error| panic!("{error}; is the package `strace` installed?"))
}

fn is_acknowledged(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stdout).contains("acknowledged")
}

/// The system calls of a write: by name, how many one thread makes at most.
fn calls(laboratory: &Laboratory) -> BTreeMap<String, u32> {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let output = run(
        laboratory,
        "traced",
        &["strace", "-f", "-qq", "-o", log.to_str().unwrap()],
    );
    assert!(is_acknowledged(&output), "{output:?}");
    let mut by_thread: BTreeMap<(String, String), u32> = BTreeMap::new();
    for line in std::fs::read_to_string(&log).unwrap().lines() {
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        let Some((name, _)) = call.trim_start().split_once('(') else {
            continue;
        };
        let is_disk = [
            "pwrite64",
            "fdatasync",
            "fsync",
            "ftruncate",
            "unlink",
            "fcntl",
            "pread64",
        ];
        let is_net = [
            "sendto",
            "recvfrom",
            "epoll_wait",
            "write",
            "read",
            "connect",
            "futex",
        ];
        if is_disk.contains(&name) || is_net.contains(&name) {
            *by_thread
                .entry((thread.to_owned(), name.to_owned()))
                .or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    for ((_, name), count) in by_thread {
        let known = most.entry(name).or_default();
        *known = count.max(*known);
    }
    most
}

#[tokio::test]
async fn a_writer_killed_at_any_system_call_loses_nothing_and_repeats_nothing() {
    for kind in KINDS {
        let laboratory = Laboratory::new(kind, "").await;
        let calls = calls(&laboratory);
        let points: Vec<(String, u32)> = calls
            .iter()
            .flat_map(|(name, count)| (1..=*count).map(move |nth| (name.clone(), nth)))
            .collect();
        let (mut killed, mut written) = (0, 0);
        let share = points.len().div_ceil(count(14, usize::MAX)).max(1);
        let taken: Vec<_> = points.iter().step_by(share).collect();
        for (call, nth) in &taken {
            let name = format!("{call} {nth}");
            let inject = format!("inject={call}:signal=KILL:when={nth}");
            let first = run(
                &laboratory,
                &name,
                &["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject],
            );
            let made = |people: &[serde_json::Map<String, serde_json::Value>]| {
                people.iter().filter(|it| it["name"] == json!(name)).count()
            };
            let after_kill = made(&laboratory.records("people").await);
            assert!(after_kill <= 1, "{kind} {name}");
            assert!(
                !is_acknowledged(&first) || after_kill == 1,
                "{kind} {name}: lost"
            );
            killed += usize::from(!first.status.success());
            written += after_kill;
            let again = run(&laboratory, &name, &[]);
            assert!(is_acknowledged(&again), "{kind} {name}: {again:?}");
            assert_eq!(
                made(&laboratory.records("people").await),
                1,
                "{kind} {name}"
            );
        }
        println!(
            "{kind}: {killed} kills at {} of {} points, {written} written before",
            taken.len(),
            points.len()
        );
        assert!(killed * 2 >= taken.len(), "{kind}: {killed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_whose_sessions_the_database_kills_are_made_once() {
    for kind in [SourceKind::Postgres, SourceKind::Mysql] {
        let laboratory = Arc::new(Laboratory::new(kind, "").await);
        let is_over = Arc::new(AtomicBool::new(false));
        let kills = Arc::new(AtomicU32::new(0));
        let killer = kill_sessions(laboratory.clone(), is_over.clone(), kills.clone());
        let killer = tokio::spawn(killer);
        let (least, mut writes, mut repeated) = (count(60, 600), 0, 0);
        while writes < least || kills.load(Ordering::Acquire) < MIN_KILLS {
            let number = writes;
            writes += 1;
            let name = format!("person {number}");
            let given = json!({ "name": name, "status": "proposed", "region": "eu", "idempotency_key": name });
            for attempt in 0.. {
                match laboratory.call(&writer(), "crm_hire", &given).await {
                    Ok(_) => break,
                    Err(error) => {
                        assert_eq!(error.code, -32603, "{kind}: {error} {:?}", error.data);
                        assert!(attempt < 200, "{kind}: {error}");
                        repeated += 1;
                    }
                }
            }
        }
        is_over.store(true, Ordering::Release);
        killer.await.unwrap();
        let kills = kills.load(Ordering::Acquire);
        println!("{kind}: {kills} rounds of kills, {repeated} calls repeated");
        let people = laboratory.records("people").await;
        assert_eq!(people.len(), writes, "{kind}");
    }
}

/// How often sessions are killed at least.
const MIN_KILLS: u32 = 20;

/// Kills the sessions that write, again and again.
async fn kill_sessions(
    laboratory: Arc<Laboratory>,
    is_over: Arc<AtomicBool>,
    kills: Arc<AtomicU32>,
) {
    while !is_over.load(Ordering::Acquire) {
        let name = &laboratory.name;
        if laboratory.kind == SourceKind::Postgres {
            let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE application_name = 'wayleave' AND datname = current_database()";
            postgres().await.execute(name, kill).await.unwrap();
        } else {
            let kill = "BEGIN NOT ATOMIC FOR s IN (SELECT ID FROM information_schema.PROCESSLIST \
                WHERE DB = DATABASE() AND ID <> CONNECTION_ID()) DO KILL s.ID; END FOR; END";
            // One may have ended by itself in between.
            let _ = mariadb().await.execute(name, kill).await;
        }
        let rounds = kills.fetch_add(1, Ordering::AcqRel);
        // Now and then longer than it takes to open a session, and otherwise not.
        let pause = match laboratory.kind {
            SourceKind::Postgres => 15,
            _ => 30 + 40 * u64::from(rounds % 4),
        };
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
    }
}
