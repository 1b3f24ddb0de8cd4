//! Writers killed at their system calls, and databases that crash under them: no acknowledged write
//! is lost, and no write with an idempotency key is applied twice.
//!
//! The killed program is this test binary, which runs [`write_once`] in a process of its own. A run
//! takes a share of the points; `WAYLEAVE_FULL=1` takes all.

use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_test::attached::{Tracer, points, taken};
use wayleave_test::{mariadb, postgres};

use crate::writing::laboratory::{KINDS, Laboratory, count, writer};

const KIND: &str = "WAYLEAVE_TEST_KIND";
const DSN: &str = "WAYLEAVE_TEST_DSN";
const NAME: &str = "WAYLEAVE_TEST_NAME";
/// Lines that the process prints before and after its write.
const READY: &str = "ready to write";
const ACKNOWLEDGED: &str = "acknowledged";

/// Waits for a line of input, creates one record with its name as the key, and prints a line once
/// that is acknowledged.
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
    println!("{READY}");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    laboratory.done(&writer(), "crm_hire", person(&name)).await;
    println!("{ACKNOWLEDGED}");
}

fn person(name: &str) -> serde_json::Value {
    json!({ "name": name, "status": "proposed", "region": "eu", "idempotency_key": name })
}

/// A process that is ready to write.
struct WriterProcess {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl WriterProcess {
    fn start(laboratory: &Laboratory, name: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "writing::crash::write_once",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(KIND, laboratory.kind.as_str())
            .env(DSN, &laboratory.dsn)
            .env(NAME, name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        assert!(says(&mut said, READY), "it ended before it began");
        Self { process, said }
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Makes it write. Returns whether it acknowledged the write, and whether it was killed.
    fn write(mut self) -> (bool, bool) {
        // It may be killed before it reads this.
        let _ = self.process.stdin.take().unwrap().write_all(b"\n");
        let is_acknowledged = says(&mut self.said, ACKNOWLEDGED);
        let status = self.process.wait().unwrap();
        (is_acknowledged, status.signal() == Some(9))
    }
}

/// Whether a process prints a line with this word before it ends.
fn says(said: &mut impl BufRead, word: &str) -> bool {
    let mut lines = said.lines().map_while(Result::ok);
    lines.any(|line| line.contains(word))
}

/// Records the system calls of a write.
fn recorded(laboratory: &Laboratory) -> Vec<(String, u32)> {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let process = WriterProcess::start(laboratory, "recorded");
    let tracer = Tracer::recording(process.pid(), &log);
    assert_eq!(process.write(), (true, false));
    drop(tracer);
    points(&log)
}

#[tokio::test]
async fn a_sqlite_writer_killed_at_any_system_call_loses_nothing_and_repeats_nothing() {
    killed_at_any_call(SourceKind::Sqlite).await;
}

#[tokio::test]
async fn a_postgres_writer_killed_at_any_system_call_loses_nothing_and_repeats_nothing() {
    killed_at_any_call(SourceKind::Postgres).await;
}

#[tokio::test]
async fn a_mariadb_writer_killed_at_any_system_call_loses_nothing_and_repeats_nothing() {
    killed_at_any_call(SourceKind::Mysql).await;
}

async fn killed_at_any_call(kind: SourceKind) {
    let laboratory = Laboratory::new(kind, "").await;
    let points = recorded(&laboratory);
    let taken = taken(&points, 14);
    let (mut kills, mut written) = (0, 0);
    for (call, nth) in &taken {
        let name = format!("{call} {nth}");
        let process = WriterProcess::start(&laboratory, &name);
        let tracer = Tracer::killing(process.pid(), (call, *nth));
        let (is_acknowledged, is_killed) = process.write();
        drop(tracer);
        let after_kill = laboratory.named(&name).await;
        assert!(after_kill <= 1, "{kind} {name}");
        assert!(!is_acknowledged || after_kill == 1, "{kind} {name}: lost");
        kills += usize::from(is_killed);
        written += after_kill;
        laboratory.done(&writer(), "crm_hire", person(&name)).await;
        assert_eq!(laboratory.named(&name).await, 1, "{kind} {name}");
    }
    println!(
        "{kind}: {kills} kills at {} of {} points, {written} written before",
        taken.len(),
        points.len()
    );
    // The thread that makes a call, and the number of waits, differ from run to run.
    assert!(kills * 10 >= taken.len() * 7, "{kind}: {kills}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_under_which_postgres_crashes_and_recovers_are_made_once() {
    let server = wayleave_test::own_postgres().await.unwrap();
    let sql = crate::writing::laboratory::tables(SourceKind::Postgres);
    let made = server.fresh_database("crash", &sql).await.unwrap();
    let laboratory = Arc::new(Laboratory::at(SourceKind::Postgres, &made.dsn));
    // Acknowledged writes must survive the crash; by default the test server does not wait for the
    // disk.
    let durable = format!(
        "ALTER DATABASE \"{}\" SET synchronous_commit = on",
        made.name
    );
    server.execute("postgres", &durable).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let hiring = tokio::spawn(hire_until(laboratory.clone(), is_over.clone()));
    let crashes = count(3, 25);
    for _ in 0..crashes {
        server.crash(&made.name).await.unwrap();
    }
    is_over.store(true, Ordering::Release);
    let (writes, repeated) = hiring.await.unwrap();
    println!("postgres: {crashes} crashes, {writes} writes, {repeated} calls repeated");
    let people = laboratory.records("people").await;
    assert_eq!(people.len(), writes);
    assert!(repeated > 0);
}

/// Creates people, each repeated until acknowledged. Returns the number of people, and the number
/// of repeated calls.
async fn hire_until(laboratory: Arc<Laboratory>, is_over: Arc<AtomicBool>) -> (usize, usize) {
    let (mut writes, mut repeated) = (0, 0);
    while !is_over.load(Ordering::Acquire) {
        let given = person(&format!("person {writes}"));
        writes += 1;
        while let Err(error) = laboratory.call(&writer(), "crm_hire", &given).await {
            assert_eq!(error.code, -32603, "{error} {:?}", error.data);
            repeated += 1;
            // The server refuses sessions while it recovers.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    (writes, repeated)
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
            let given = person(&name);
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

/// Minimum number of rounds of kills.
const MIN_KILLS: u32 = 20;

/// Kills the writing sessions in a loop.
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
            // A session may have ended by itself in between.
            let _ = mariadb().await.execute(name, kill).await;
        }
        let rounds = kills.fetch_add(1, Ordering::AcqRel);
        // Sometimes longer than opening a session takes, so that writes succeed in between.
        let pause = match laboratory.kind {
            SourceKind::Postgres => 15,
            _ => 30 + 40 * u64::from(rounds % 4),
        };
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
    }
}
