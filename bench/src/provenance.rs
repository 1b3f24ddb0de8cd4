//! The cost of recording every call: the same point reads from a server that records nothing, one
//! that records, and one that syncs each record, in turn in one run. Then the size of the record,
//! and the time to find one record's calls among many.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use tokio_util::sync::CancellationToken;
use wayleave_activity::{
    Activity, ActivityFilter, ActivityId, ActivityLog, ActivityReader, Agent, ArgumentRecord,
    CallOutcome, CallTransport, GrantUse, LogOptions, RecordList, SealedArguments,
};
use wayleave_mcp::http::{Anonymous, HttpServer, Options};
use wayleave_mcp::{Identity, Server as McpServer};
use wayleave_model::mapping::SourceKind;
use wayleave_project::{Project, source::EnvironmentVariables};
use wayleave_server::Deployment;

use crate::load::HttpLoad;
use crate::measure::{Effort, Nanoseconds, microseconds_at};
use crate::process::{self, LISTENING, Server};
use crate::read::orders;
use crate::read::project::Shop;
use crate::read::questions::{Calls, Case};
use crate::rounds::Spread;
use crate::wire::Era;

const CLIENTS: usize = 16;
const ROWS: u64 = 100_000;
/// Smallest allowed share of the throughput without a record.
const MIN_THROUGHPUT: f64 = 0.9;
/// Largest allowed growth of the median latency.
const MAX_P50: f64 = 1.2;
/// Number of records per batch when the searched log is written.
const RECORDS_AT_ONCE: usize = 256;
const MAX_CALL_BYTES: u64 = 400;
const MAX_LOOKUP: Duration = Duration::from_secs(1);

/// How much to record.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Provenance {
    /// Calls in the log that is searched.
    #[arg(long, default_value_t = 10_000_000)]
    calls: u64,
}

/// How a server records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Recording {
    Off,
    On,
    Sync,
}

impl Recording {
    fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Sync => "sync",
        }
    }
}

/// Serves the project in a folder until the process ends. All modes have the same gate.
pub(crate) async fn serve(folder: &Path, recording: Recording) -> Result<()> {
    let settings = folder.join("wayleave.toml");
    let text = fs::read_to_string(&settings)?;
    let synced = format!("{text}\n[audit]\nsync = true\n");
    if recording == Recording::Sync {
        fs::write(&settings, synced)?;
    }
    let project = Project::open(folder);
    fs::write(&settings, text)?;
    let deployment = Deployment::open(&project?, EnvironmentVariables::process()).await?;
    let server = match recording {
        Recording::Off => {
            let registry = deployment.server().registry().clone();
            McpServer::new(registry, Identity::new("wayleave", "0"))
        }
        Recording::On | Recording::Sync => deployment.server().clone(),
    };
    let options = Options {
        authenticate: Arc::new(Anonymous::as_caller(Deployment::local_caller())),
        ..Options::default()
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let http = HttpServer::bind(&server, address, options).await?;
    writeln!(std::io::stderr(), "{LISTENING}{}/mcp", http.local_addr())?;
    http.serve(CancellationToken::new()).await;
    Ok(())
}

struct Runner {
    recording: Recording,
    load: HttpLoad,
    _server: Server,
    throughput: Vec<f64>,
    p50: Vec<f64>,
}

impl Runner {
    fn new(shop: &Shop, recording: Recording) -> Result<Self> {
        let mut command = process::this_binary()?;
        command
            .arg("recording")
            .arg(shop.folder())
            .arg(recording.word());
        shop.give_dsn(&mut command);
        let (server, address) = Server::listening(command)?;
        let questions = Case::Point.questions(ROWS);
        let calls = || Box::new(Calls::new(Case::Point, &questions)) as _;
        Ok(Self {
            recording,
            load: HttpLoad::open(address, Era::Modern, CLIENTS, calls)?,
            _server: server,
            throughput: Vec::new(),
            p50: Vec::new(),
        })
    }

    fn round(&mut self, seconds: Duration) -> Result<()> {
        let began = Instant::now();
        let mut latencies: Vec<Nanoseconds> = self.load.run(began + seconds)?;
        let elapsed = began.elapsed().as_secs_f64();
        latencies.sort_unstable();
        #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
        self.throughput.push(latencies.len() as f64 / elapsed);
        self.p50.extend(microseconds_at(&latencies, 50));
        Ok(())
    }
}

fn ratio(ours: &[f64], over: &[f64]) -> Spread {
    Spread::from_values(ours.iter().zip(over).map(|(ours, over)| ours / over))
}

/// Runs the benchmark. Fails if an aim is missed.
pub(crate) fn measure(what: Provenance, effort: Effort) -> Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let shop = runtime.block_on(async {
        let path = orders::sqlite(ROWS)?.to_string_lossy().into_owned();
        Shop::make(SourceKind::Sqlite, path, &orders::streams()).await
    })?;
    let modes = [Recording::Off, Recording::On, Recording::Sync];
    let runners: Result<Vec<Runner>> = modes.iter().map(|mode| Runner::new(&shop, *mode)).collect();
    let mut runners = runners?;
    for runner in &mut runners {
        runner.load.run(Instant::now() + effort.warm_up)?;
    }
    for number in 0..effort.rounds {
        writeln!(
            std::io::stderr(),
            "round {} of {}",
            number + 1,
            effort.rounds
        )?;
        for runner in &mut runners {
            runner.round(effort.load)?;
        }
    }
    let mut out = std::io::stdout();
    let [off, others @ ..] = runners.as_slice() else {
        anyhow::bail!("no servers");
    };
    let mut is_met = true;
    for runner in others {
        let throughput = ratio(&runner.throughput, &off.throughput).median;
        let p50 = ratio(&runner.p50, &off.p50).median;
        let rate = Spread::from_values(runner.throughput.iter().copied()).median;
        let mode = runner.recording.word();
        writeln!(
            out,
            "{mode}: {rate:.0} calls/s, throughput {throughput:.2} of off, p50 {p50:.2} × off"
        )?;
        if runner.recording == Recording::On {
            is_met &= throughput >= MIN_THROUGHPUT && p50 <= MAX_P50;
        }
    }
    drop(runners);
    is_met &= search(what.calls)?;
    Ok(if is_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Writes a log of many point reads, and searches it for the calls of one record.
fn search(calls: u64) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let log = ActivityLog::new(LogOptions::new(folder.path()));
    let began = Instant::now();
    let mut batch = Vec::new();
    for key in 0..calls {
        batch.push(log.append(&point_read(key)));
        if batch.len() == RECORDS_AT_ONCE || key + 1 == calls {
            for record in batch.drain(..) {
                let written = record.wait_blocking();
                written.map_err(|error| anyhow::anyhow!("{error}"))?;
            }
        }
    }
    let seconds = began.elapsed().as_secs();
    writeln!(std::io::stderr(), "{calls} records written in {seconds} s")?;
    drop(log);
    let files = fs::read_dir(folder.path().join("00"))?;
    let sizes: Result<Vec<u64>, std::io::Error> =
        files.map(|file| Ok(file?.metadata()?.len())).collect();
    let each = sizes?.iter().sum::<u64>() / calls.max(1);
    let wanted = format!("shop/orders:{}", calls / 3);
    let filter = ActivityFilter {
        record: Some(wanted),
        ..ActivityFilter::default()
    };
    let began = Instant::now();
    let found = ActivityReader::new(folder.path()).latest(&filter, 20)?;
    let took = began.elapsed();
    anyhow::ensure!(found.len() == 1, "found {}", found.len());
    writeln!(
        std::io::stdout(),
        "{calls} point reads: {each} bytes each on disk; one record's calls found in {} ms",
        took.as_millis()
    )?;
    Ok(each <= MAX_CALL_BYTES && took < MAX_LOOKUP)
}

fn point_read(key: u64) -> Activity {
    let noise = |at: u8| (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 57)).to_le_bytes();
    let bytes = |count: u8| (0..count).map(|at| noise(at).iter().fold(at, |sum, byte| sum ^ byte));
    Activity {
        id: ActivityId::now(),
        micros: 180,
        transport: CallTransport {
            http: true,
            session: false,
        },
        method: "tools/call".to_owned(),
        target: Some("fetch".to_owned()),
        agent: Agent {
            token: "t_b3dxbn5a6e".to_owned(),
            client: Some("claude-code".to_owned()),
            version: Some("2.1.4".to_owned()),
        },
        grants: vec![GrantUse {
            grant: "g_b3dxbn5a6e".to_owned(),
            connection: "shop".to_owned(),
            dataset: "shop".to_owned(),
            mapping: [7; 32],
        }],
        streams: vec!["shop/orders".to_owned()],
        arguments: ArgumentRecord {
            digest: noise(3).repeat(2).try_into().unwrap_or_default(),
            shape: "{id:s}".to_owned(),
            sealed: Some(SealedArguments {
                key: 1,
                bytes: bytes(48).collect(),
            }),
        },
        used: RecordList {
            ids: vec![format!("shop/orders:{key}")],
            total: 1,
            digest: None,
        },
        generated: RecordList::default(),
        rows: 1,
        bytes: 412,
        answer: noise(7).repeat(2).try_into().ok(),
        outcome: CallOutcome::Completed,
        trace: None,
        suppressed: 0,
    }
}

/// The folder that the hidden command is given.
#[derive(Debug, Clone, Args)]
pub(crate) struct RecordingServer {
    /// The project's folder.
    pub(crate) folder: PathBuf,
    /// How it records.
    pub(crate) recording: Recording,
}

/// Runs the hidden command.
pub(crate) fn run(server: &RecordingServer) -> Result<ExitCode> {
    process::exit_with_parent();
    let runtime = tokio::runtime::Runtime::new().context("a runtime")?;
    runtime.block_on(serve(&server.folder, server.recording))?;
    Ok(ExitCode::SUCCESS)
}
