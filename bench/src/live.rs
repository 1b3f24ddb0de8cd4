//! Many subscribers of one type while another program changes its records: measures whether each
//! receives the last change, the memory they take, and how much they slow readers down.
//!
//! Records change at the same rate throughout. Readers are measured without subscribers, with them,
//! and without them again, so that a drift of the machine's load affects both. Each read is due at
//! a fixed time, and its latency counts from then.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};
use tokio_util::sync::CancellationToken;

use crate::overload::{self, ROWS, ReplyStats};
use crate::process::Server;

/// Largest allowed growth of the readers' 99th percentile.
const AIM: f64 = 1.30;
/// Largest allowed growth of memory from the first quarter with subscribers to its end, in MiB.
const MEMORY_AIM: f64 = 64.0;
/// Interval of a reader's reads.
const READ_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of subscribers that connect at the same time.
const MAX_CONCURRENT_CONNECTS: usize = 50;
/// Wait before the last change: longer than two intervals of the change feed.
const SETTLE_TIME: Duration = Duration::from_secs(5);
/// Deadline for telling the last change to every subscriber.
const LAST_TIMEOUT: Duration = Duration::from_secs(30);
const UPDATED: &[u8] = b"notifications/resources/updated";
const ACKNOWLEDGED: &[u8] = b"notifications/subscriptions/acknowledged";

/// How many, how fast and how long.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Live {
    /// Number of subscribers.
    #[arg(long, default_value_t = 2_000)]
    subscribers: usize,
    /// Changes per second.
    #[arg(long, default_value_t = 1_000)]
    changes: u32,
    /// Seconds with subscribers; half as many are measured without them before and after.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// The notices that subscribers received.
#[derive(Default)]
struct ReceivedNotices {
    subscribed: AtomicUsize,
    updates: AtomicUsize,
    /// Time of each subscriber's last notice, in milliseconds since the start.
    last: Vec<AtomicU64>,
    failure: Mutex<Option<anyhow::Error>>,
}

impl ReceivedNotices {
    fn fail(&self, error: anyhow::Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
    }

    fn check(&self) -> Result<()> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take().map_or(Ok(()), Err)
    }
}

/// Measures, and fails if an aim is missed.
pub(crate) fn measure(live: Live) -> Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let settings = format!(
        "[limits]\ncalls_per_minute = 600000\nburst = 100000\nstreams = {0}\n\
         [live]\nsubscriptions = {0}\nmax_records = {1}\n",
        live.subscribers + 10,
        2 * ROWS,
    );
    let tokens = runtime.block_on(overload::made(folder.path(), &settings))?;
    let (subscriber, readers) = tokens.split_first().context("no tokens")?;
    let (server, address) = Server::listening(overload::server(folder.path())?)?;
    let writer = Writer::start(folder.path().join("shop.db"), live.changes)?;
    let half = Duration::from_secs(live.seconds) / 2;
    let read = |time| read(&runtime, address, readers, time);
    read(Duration::from_secs(2))?;
    note("without subscribers")?;
    let mut without = read(half)?;
    let before = mib(&server)?;
    note("subscribing")?;
    let subscribers = Subscribers::start(address, subscriber, live.subscribers)?;
    let began = mib(&server)?;
    note("with subscribers")?;
    let quarter = half / 2;
    let mut with = read(quarter)?;
    let first = mib(&server)?;
    for _ in 0..3 {
        with.add(read(quarter)?);
        note(&format!("{:.0} MiB", mib(&server)?))?;
    }
    let changes = writer.stop()? + 1;
    // Let the comparisons that began before the last change end, so that their notices do not count
    // for it.
    subscribers.pause(SETTLE_TIME)?;
    let last_change = subscribers.began.elapsed();
    change_one(&folder.path().join("shop.db"))?;
    let ended = subscribers.wait_for_last(last_change)?;
    let memory = [before, began, first, mib(&server)?];
    let updates = subscribers.told.updates.load(Ordering::Relaxed);
    drop(subscribers);
    note("without subscribers")?;
    let writer = Writer::start(folder.path().join("shop.db"), live.changes)?;
    without.add(read(half)?);
    writer.stop()?;
    let outcome = Outcome {
        live,
        changes,
        updates,
        ended,
        memory,
    };
    outcome.report(&mut without, &mut with)
}

struct Outcome {
    live: Live,
    changes: u64,
    updates: usize,
    /// Number of subscribers told of the last change.
    ended: usize,
    /// Memory in MiB: without subscribers, after they subscribed, after a quarter, and at the end.
    memory: [f64; 4],
}

impl Outcome {
    fn report(&self, without: &mut ReplyStats, with: &mut ReplyStats) -> Result<ExitCode> {
        let Live {
            subscribers,
            changes,
            seconds,
        } = self.live;
        ensure!(
            without.refused + with.refused == 0,
            "a reader within its allowance was refused"
        );
        let (quiet, loud) = (without.quantile(0.99), with.quantile(0.99));
        let medians = (without.quantile(0.5), with.quantile(0.5));
        let (ratio, ended) = (loud / quiet, self.ended);
        let [before, began, first, last] = self.memory;
        write!(
            std::io::stdout(),
            "| {subscribers} subscribers of one type, {changes} changes a second for {seconds} s | without | with |\n\
             | --- | --- | --- |\n\
             | reads answered | {} | {} |\n\
             | median of reads | {:.2} ms | {:.2} ms |\n\
             | 99th percentile of reads | {quiet:.2} ms | {loud:.2} ms |\n\
             | ratio | | {ratio:.2} (aim: at most {AIM:.2}) |\n\
             | memory: after subscribing, after a quarter, at the end | {before:.0} MiB | {began:.0}, {first:.0}, {last:.0} MiB |\n\
             | changes made, updates received | | {}, {} |\n\
             | subscribers notified of the last change | | {ended} of {subscribers} |\n",
            without.served,
            with.served,
            medians.0,
            medians.1,
            self.changes,
            self.updates,
        )?;
        let is_met = ratio <= AIM && ended == subscribers && last - first <= MEMORY_AIM;
        Ok(if is_met {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

fn note(text: &str) -> Result<()> {
    Ok(writeln!(std::io::stderr(), "{text}")?)
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn mib(server: &Server) -> Result<f64> {
    Ok(server.resident_kib()? as f64 / 1024.0)
}

/// Runs the readers for `time`.
fn read(
    runtime: &Runtime,
    address: SocketAddr,
    tokens: &[String],
    time: Duration,
) -> Result<ReplyStats> {
    let tasks = LocalSet::new();
    tasks.block_on(runtime, async {
        let until = Instant::now() + time;
        let mut readers = JoinSet::new();
        let count = u32::try_from(tokens.len())?;
        for (number, token) in (0..).zip(tokens) {
            let first = READ_INTERVAL * number / count;
            readers.spawn_local(overload::client(
                address,
                token.clone(),
                first,
                READ_INTERVAL,
                until,
            ));
        }
        overload::all(readers).await
    })
}

/// Another program, which changes records at a steady rate.
struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

impl Writer {
    fn start(file: PathBuf, rate: u32) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let writing = move || runtime.block_on(write_at(&file, rate, &stopped));
        let thread = std::thread::spawn(writing);
        Ok(Self { stop, thread })
    }

    /// Stops the writer, and returns the number of changes it made.
    fn stop(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        ended.map_err(|_| anyhow!("the writer panicked"))?
    }
}

async fn write_at(file: &Path, rate: u32, stopped: &AtomicBool) -> Result<u64> {
    let connection = rusqlite::Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    let mut change = connection.prepare("UPDATE orders SET total = total + 1 WHERE id = ?1")?;
    let (began, mut made) = (Instant::now(), 0_u32);
    while !stopped.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let due = began.elapsed().as_millis() * u128::from(rate) / 1_000;
        while u128::from(made) < due && !stopped.load(Ordering::Relaxed) {
            // The step is coprime to the number of rows, so every row is changed.
            change.execute([made.wrapping_mul(7_919) % ROWS])?;
            made += 1;
        }
    }
    Ok(u64::from(made))
}

/// Makes the last change.
fn change_one(file: &Path) -> Result<()> {
    let connection = rusqlite::Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.execute("UPDATE orders SET total = total + 1 WHERE id = 1", [])?;
    Ok(())
}

/// Clients that listen for changes of the type, on a runtime of their own.
struct Subscribers {
    began: Instant,
    told: Arc<ReceivedNotices>,
    runtime: Option<Runtime>,
    stop: CancellationToken,
}

impl Subscribers {
    /// Subscribes `count` clients, and waits until all are subscribed.
    fn start(address: SocketAddr, token: &str, count: usize) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let (began, stop) = (Instant::now(), CancellationToken::new());
        let told = Arc::new(ReceivedNotices {
            last: (0..count).map(|_| AtomicU64::new(0)).collect(),
            ..ReceivedNotices::default()
        });
        let connecting = Arc::new(Semaphore::new(MAX_CONCURRENT_CONNECTS));
        for number in 0..count {
            let (told, token, stop) = (Arc::clone(&told), token.to_owned(), stop.clone());
            let connecting = Arc::clone(&connecting);
            runtime.spawn(async move {
                let listening = listen(address, &token, &told, number, began, &connecting);
                tokio::select! {
                    () = stop.cancelled() => {}
                    Err(error) = listening => told.fail(error),
                }
            });
        }
        let subscribed = runtime.block_on(async {
            while told.subscribed.load(Ordering::Relaxed) < count {
                told.check()?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            anyhow::Ok(())
        });
        subscribed?;
        Ok(Self {
            began,
            told,
            runtime: Some(runtime),
            stop,
        })
    }

    fn runtime(&self) -> Result<&Runtime> {
        let runtime = self.runtime.as_ref();
        runtime.context("the subscribers have ended")
    }

    /// Waits for `time` while they listen.
    fn pause(&self, time: Duration) -> Result<()> {
        self.runtime()?
            .block_on(async { tokio::time::sleep(time).await });
        self.told.check()
    }

    /// Waits until every subscriber has been told of the last change; returns the number that were.
    fn wait_for_last(&self, last_change: Duration) -> Result<usize> {
        let runtime = self.runtime()?;
        let after = millis(last_change);
        let count = || {
            let last = self.told.last.iter();
            last.filter(|it| it.load(Ordering::Relaxed) >= after)
                .count()
        };
        runtime.block_on(async {
            let until = Instant::now() + LAST_TIMEOUT;
            while count() < self.told.last.len() && Instant::now() < until {
                self.told.check()?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(count())
        })
    }
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Subscribes to the type, and counts its notices until the stream ends.
async fn listen(
    address: SocketAddr,
    token: &str,
    told: &ReceivedNotices,
    number: usize,
    began: Instant,
    connecting: &Semaphore,
) -> Result<()> {
    let permit = connecting.acquire().await?;
    let stream = TcpStream::connect(address).await?;
    let (mut sender, driver) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    let body = json!({ "jsonrpc": "2.0", "id": number, "method": "subscriptions/listen", "params": {
        "notifications": { "resourceSubscriptions": ["wayleave://kg/Order"] },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let request = Request::post("/mcp")
        .header("host", address.to_string())
        .header("authorization", format!("Bearer {token}"))
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "subscriptions/listen")
        .body(Full::<Bytes>::from(body.to_string()))?;
    let response = sender.send_request(request).await?;
    ensure!(
        response.status() == StatusCode::OK,
        "a subscriber was refused: {}",
        response.status()
    );
    let (mut body, mut permit) = (response.into_body(), Some(permit));
    // An event may be split between frames; what is left over is one event at most.
    let mut unread = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        unread.extend_from_slice(&data);
        let end = unread.windows(2).rposition(|it| it == b"\n\n");
        let rest = unread.split_off(end.map_or(0, |end| end + 2));
        let events = std::mem::replace(&mut unread, rest);
        if memchr::memmem::find(&events, ACKNOWLEDGED).is_some() && permit.take().is_some() {
            told.subscribed.fetch_add(1, Ordering::Relaxed);
        }
        let updates = memchr::memmem::find_iter(&events, UPDATED).count();
        if updates > 0 {
            told.updates.fetch_add(updates, Ordering::Relaxed);
            if let Some(last) = told.last.get(number) {
                last.store(millis(began.elapsed()), Ordering::Relaxed);
            }
        }
    }
    Err(anyhow!("the stream of a subscriber ended"))
}
