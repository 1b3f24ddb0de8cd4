//! Clients at a steady rate, alone and beside one that sends ten times what its token allows:
//! measures how many calls of that client succeed, and how much it slows the others down.
//!
//! Quiet and overload turns alternate, and each turn is compared with the one before it, so that
//! other load on the machine affects both. The median of these ratios is judged. Each request is
//! due at a fixed time, and its latency counts from then, so that a server that delays clients does
//! not look better (no coordinated omission).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, LocalSet};
use wayleave_ledger::{GrantRequest, NewSource, RatifyRequest, TokenRequest};
use wayleave_model::grant::{Claims, Scopes, StreamTerms, Terms, TokenKind};
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::Draft;
use wayleave_project::{Project, source::EnvironmentVariables};
use wayleave_server::Deployment;

use crate::process::{self, Server};

const WHO: &str = "wayleave-bench";
const VARIABLE: &str = "WAYLEAVE_BENCH_DSN";
/// Requests per second that one token allows.
const ALLOWED: u32 = 100;
/// Interval of each other client's requests: half of its allowance.
const REQUEST_INTERVAL: Duration = Duration::from_millis(20);
const OTHERS: usize = 4;
/// Connections of the greedy client, which sends ten times its allowance.
const GREEDY_CONNECTIONS: u32 = 10;
pub(crate) const ROWS: u32 = 10_000;
const TURN: Duration = Duration::from_secs(2);
/// Largest allowed growth of the other clients' 99th percentile.
const AIM: f64 = 1.20;
/// Largest allowed time to identify a caller.
const MAX_IDENTIFY_TIME: Duration = Duration::from_micros(20);

const MAPPING: &str = r#"[dataset]
name = "shop"
kind = "sqlite"

[[connections]]
id = "shop"
source = "shop"

[streams.orders]
type = "Order"
table = "orders"
key = ["id"]

[streams.orders.fields.id]
datatype = "integer"

[streams.orders.fields.customer]
datatype = "string"

[streams.orders.fields.total]
datatype = "integer"
"#;

/// Number and latencies of the replies to clients.
#[derive(Debug, Default)]
pub(crate) struct ReplyStats {
    latencies: Vec<Duration>,
    pub(crate) served: usize,
    pub(crate) refused: usize,
}

impl ReplyStats {
    pub(crate) fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.served += other.served;
        self.refused += other.refused;
    }

    /// The latency at a percentile.
    pub(crate) fn quantile(&mut self, share: f64) -> f64 {
        self.latencies.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a length is an index"
        )]
        let at = (self.latencies.len() as f64 * share) as usize;
        let found = self.latencies.get(at).or(self.latencies.last());
        found.map_or(0.0, |it| it.as_secs_f64() * 1000.0)
    }
}

/// Runs the benchmark. Fails if the aim is missed.
pub(crate) fn measure(turns: u32) -> Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // A small burst, so that little allowance accumulates in a quiet second.
    let settings = format!(
        "[limits]\ncalls_per_minute = {}\nburst = {}\n",
        ALLOWED * 60,
        ALLOWED / 2
    );
    let tokens = runtime.block_on(made(folder.path(), &settings))?;
    let (_server, address) = Server::listening(server(folder.path())?)?;
    let (greedy, others) = tokens.split_first().context("no tokens")?;
    let knowing = runtime.block_on(knowing(folder.path(), greedy))?;
    let mut pairs = Vec::new();
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        // One unmeasured turn opens the sessions and warms the caches.
        turn(address, others, None).await?;
        for number in 0..turns.max(1) {
            writeln!(std::io::stderr(), "turn {} of {turns}", number + 1)?;
            let (quiet, _) = turn(address, others, None).await?;
            let (loud, greed) = turn(address, others, Some(greedy)).await?;
            pairs.push(Pair { quiet, loud, greed });
        }
        anyhow::Ok(())
    })?;
    writeln!(
        std::io::stdout(),
        "identifying the caller of a token takes {:.1} µs (aim: below {} µs)\n",
        knowing.as_secs_f64() * 1e6,
        MAX_IDENTIFY_TIME.as_micros(),
    )?;
    Ok(if report(&mut pairs)? && knowing < MAX_IDENTIFY_TIME {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Measures the time to identify the caller of a token, checking the ledger each time.
async fn knowing(folder: &Path, token: &str) -> Result<Duration> {
    const TIMES: u32 = 20_000;
    let project = Project::open(folder)?;
    let deployment = Deployment::open(&project, EnvironmentVariables::process()).await?;
    let credentials = deployment.credentials();
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        for _ in 0..TIMES {
            let known = credentials.caller(token).await;
            known.map_err(|refusal| anyhow!("not authenticated: {}", refusal.message()))?;
        }
        best = best.min(began.elapsed() / TIMES);
    }
    deployment.close().await;
    Ok(best)
}

/// A quiet turn, and the overload turn after it.
struct Pair {
    quiet: ReplyStats,
    loud: ReplyStats,
    greed: ReplyStats,
}

fn report(pairs: &mut [Pair]) -> Result<bool> {
    let count = |of: fn(&Pair) -> usize| pairs.iter().map(of).sum::<usize>();
    let refused = count(|pair| pair.quiet.refused + pair.loud.refused);
    ensure!(refused == 0, "a client within its allowance was refused");
    let served = (
        count(|pair| pair.quiet.served),
        count(|pair| pair.loud.served),
    );
    let greedy = (
        count(|pair| pair.greed.served),
        count(|pair| pair.greed.refused),
    );
    let asked = greedy.0 + greedy.1;
    let mut each = |share: f64| -> (Vec<f64>, Vec<f64>) {
        let pairs = pairs.iter_mut();
        pairs
            .map(|pair| (pair.quiet.quantile(share), pair.loud.quantile(share)))
            .unzip()
    };
    let (middle, tail) = (each(0.5), each(0.99));
    let ratios = tail.0.iter().zip(&tail.1);
    let grown = median(ratios.map(|(quiet, loud)| loud / quiet).collect());
    write!(
        std::io::stdout(),
        "| {OTHERS} clients at a steady rate, medians over turns | alone | beside one at 10 × its allowance |\n\
         | --- | --- | --- |\n\
         | requests answered | {} | {} |\n\
         | median | {:.2} ms | {:.2} ms |\n\
         | 99th percentile | {:.2} ms | {:.2} ms |\n\
         | growth | | {:.0} % (aim: at most {:.0} %) |\n\
         | greedy client: requests, served, refused | | {asked}, {}, {} |\n",
        served.0,
        served.1,
        median(middle.0),
        median(middle.1),
        median(tail.0),
        median(tail.1),
        (grown - 1.0) * 100.0,
        (AIM - 1.0) * 100.0,
        greedy.0,
        greedy.1,
    )?;
    let held_back = greedy.1 * 10 >= asked * 8;
    Ok(grown <= AIM && held_back)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Runs all clients for one turn.
async fn turn(
    address: SocketAddr,
    others: &[String],
    greedy: Option<&String>,
) -> Result<(ReplyStats, ReplyStats)> {
    let until = Instant::now() + TURN;
    let mut even = JoinSet::new();
    for (number, token) in others.iter().enumerate() {
        // Stagger the clients.
        let first = REQUEST_INTERVAL * u32::try_from(number)? / u32::try_from(OTHERS)?;
        even.spawn_local(client(
            address,
            token.clone(),
            first,
            REQUEST_INTERVAL,
            until,
        ));
    }
    let mut hasty = JoinSet::new();
    if let Some(token) = greedy {
        let pace = Duration::from_secs(1) / ALLOWED;
        for number in 0..GREEDY_CONNECTIONS {
            let first = pace * number / GREEDY_CONNECTIONS;
            hasty.spawn_local(client(address, token.clone(), first, pace, until));
        }
    }
    Ok((all(even).await?, all(hasty).await?))
}

pub(crate) async fn all(mut clients: JoinSet<Result<ReplyStats>>) -> Result<ReplyStats> {
    let mut met = ReplyStats::default();
    while let Some(ended) = clients.join_next().await {
        met.add(ended??);
    }
    Ok(met)
}

/// Sends requests at a fixed interval, on one connection.
pub(crate) async fn client(
    address: SocketAddr,
    token: String,
    first: Duration,
    pace: Duration,
    until: Instant,
) -> Result<ReplyStats> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, driver) = handshake(TokioIo::new(stream)).await?;
    tokio::task::spawn_local(driver);
    let mut met = ReplyStats::default();
    let mut due = Instant::now() + first;
    let mut number = 0;
    while due < until {
        tokio::time::sleep_until(due.into()).await;
        number = (number + 7919) % ROWS;
        let result = ask(&mut sender, address, &token, number).await?;
        met.latencies.push(due.elapsed());
        if result.get("isError") == Some(&Value::Bool(true)) {
            let code = result.pointer("/structuredContent/error/code");
            let code = code.and_then(Value::as_str);
            ensure!(
                code == Some("rate_limited"),
                "refused with another error: {result}"
            );
            met.refused += 1;
        } else {
            met.served += 1;
        }
        due += pace;
    }
    Ok(met)
}

async fn ask(
    sender: &mut SendRequest<Full<Bytes>>,
    address: SocketAddr,
    token: &str,
    number: u32,
) -> Result<Value> {
    let body = json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
        "name": "fetch", "arguments": { "id": format!("shop/orders:{number}") },
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
        .header("mcp-method", "tools/call")
        .header("mcp-name", "fetch")
        .body(Full::from(body.to_string()))?;
    sender.ready().await?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    if status != StatusCode::OK {
        bail!("{status}: {}", String::from_utf8_lossy(&body));
    }
    let mut answer: Value = serde_json::from_slice(&body)?;
    let result = answer.get_mut("result").map(Value::take);
    result.with_context(|| format!("no result: {answer}"))
}

pub(crate) fn server(folder: &Path) -> Result<Command> {
    let mut command = process::this_binary()?;
    command.arg("shop").arg(folder);
    command.env(VARIABLE, folder.join("shop.db"));
    Ok(command)
}

/// Creates a project that serves orders, and tokens for its clients.
pub(crate) async fn made(folder: &Path, settings: &str) -> Result<Vec<String>> {
    let tables = format!(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total INTEGER);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {ROWS})
         INSERT INTO orders SELECT i, 'customer ' || (i % 97), i * 7 % 1000 FROM n;"
    );
    let (_made_in, file) = wayleave_test::sqlite_file(&tables)?;
    std::fs::copy(file, folder.join("shop.db"))?;
    let project = Project::create(folder, settings)?;
    let governance = project.governance();
    let source = NewSource {
        name: "shop".to_owned(),
        kind: SourceKind::Sqlite,
        env: VARIABLE.to_owned(),
    };
    governance.add_source(source, WHO).await?;
    let freeze = RatifyRequest {
        proposed: Draft::new(MAPPING.to_owned()).propose(None)?,
        replaces: None,
        who: WHO.to_owned(),
        note: String::new(),
    };
    let mapping = governance.ratify(freeze).await?;
    governance.activate(&mapping, WHO).await?;
    let fields = ["id", "customer", "total"].map(str::to_owned);
    let orders = StreamTerms {
        relations: BTreeSet::new(),
        fields: BTreeSet::from(fields),
        rows: None,
        masks: std::collections::BTreeMap::new(),
    };
    let granting = GrantRequest {
        terms: Terms {
            dataset: "shop".to_owned(),
            connection: "shop".to_owned(),
            mapping: mapping.digest(),
            streams: BTreeMap::from([("orders".to_owned(), orders)]),
            capabilities: BTreeSet::new(),
        },
        expires: None,
        purpose: String::new(),
    };
    let grant = governance.grant(granting, WHO).await?;
    let mut tokens = Vec::new();
    for _ in 0..=OTHERS {
        let issuing = TokenRequest {
            kind: TokenKind::Client,
            scopes: Scopes::RUNTIME,
            grants: BTreeSet::from([grant.clone()]),
            claims: Claims::new(),
            label: String::new(),
            expires: None,
        };
        let issued = governance.issue_token(issuing, WHO).await?;
        tokens.push(issued.secret.expose().to_owned());
    }
    Ok(tokens)
}
