//! Creates through MCP, compared with the same transaction through the driver plus an echo through a
//! bare server.
//!
//! The three take turns in every round, so that other load on the machine affects all of them. The
//! median of the rounds' ratios is judged.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use clap::Args;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_postgres::{Client, NoTls};
use wayleave_ledger::{GrantRequest, NewSource, RatifyRequest, TokenRequest};
use wayleave_model::grant::{Claims, Scopes, StreamTerms, Terms, TokenKind};
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::Draft;
use wayleave_project::Project;

use crate::process::{self, Server, Side};
use crate::wire::{self, Ask, Era};

const WHO: &str = "wayleave-bench";
const VARIABLE: &str = "WAYLEAVE_BENCH_DSN";
/// Largest allowed time of a create, as a multiple of the transaction and the echo together.
const AIM: f64 = 1.30;

const INSERT: &str = "INSERT INTO orders (customer, total) VALUES ($1, $2) RETURNING id";
const SELECT: &str = "SELECT id, customer, total FROM orders WHERE id = $1";

/// How much to measure.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Writes {
    /// Rounds of each store.
    #[arg(long, default_value_t = 15)]
    rounds: u32,
    /// Calls of each way in a round.
    #[arg(long, default_value_t = 200)]
    calls: u32,
}

/// Measures, and fails if the aim is missed.
pub(crate) fn measure(writes: Writes) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let (_echo, echo) = Server::http(Side::Bare, Ask::Echo)?;
    let mut is_met = true;
    writeln!(
        std::io::stdout(),
        "| store | create through MCP | transaction | echo | ratio |"
    )?;
    writeln!(std::io::stdout(), "| --- | --- | --- | --- | --- |")?;
    for kind in [SourceKind::Sqlite, SourceKind::Postgres] {
        let folder = tempfile::tempdir()?;
        let (dsn, token) = runtime.block_on(made(folder.path(), kind))?;
        let mut command = process::this_binary()?;
        command.arg("shop").arg(folder.path()).env(VARIABLE, &dsn);
        let (_server, ours) = Server::listening(command)?;
        let rounds = runtime.block_on(rounds(writes, kind, &dsn, &token, [ours, echo]))?;
        let middle = |time: fn(&[f64; 3]) -> f64| median(rounds.iter().map(time).collect());
        let ratio = middle(|[ours, transaction, echo]| ours / (transaction + echo));
        is_met &= ratio <= AIM;
        writeln!(
            std::io::stdout(),
            "| {kind} | {:.0} µs | {:.0} µs | {:.0} µs | {ratio:.2} × (aim: at most {AIM:.1} ×) |",
            middle(|[ours, _, _]| *ours),
            middle(|[_, transaction, _]| *transaction),
            middle(|[_, _, echo]| *echo),
        )?;
    }
    Ok(if is_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Measures the mean time of each path in each round, in microseconds.
async fn rounds(
    writes: Writes,
    kind: SourceKind,
    dsn: &str,
    token: &str,
    [ours, echo]: [SocketAddr; 2],
) -> Result<Vec<[f64; 3]>> {
    let mut caller = Caller::open(ours, Some(token.to_owned())).await?;
    let mut echoing = Caller::open(echo, None).await?;
    let mut driver = Driver::open(kind, dsn).await?;
    let mut rounds = Vec::new();
    for number in 0..=writes.rounds {
        let mut times = [Duration::ZERO; 3];
        for call in 0..u64::from(writes.calls) {
            let id = call + 1;
            let began = Instant::now();
            let arguments = format!(r#"{{"customer":"customer {call}","total":{call}}}"#);
            caller.create(&arguments, id).await?;
            times[0] += began.elapsed();
            let began = Instant::now();
            driver.create(call).await?;
            times[1] += began.elapsed();
            let began = Instant::now();
            echoing.echo(id).await?;
            times[2] += began.elapsed();
        }
        // The first round opens sessions and warms caches.
        if number > 0 {
            rounds.push(times.map(|it| it.as_secs_f64() * 1e6 / f64::from(writes.calls)));
        }
    }
    Ok(rounds)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A client on one connection.
struct Caller {
    sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
    token: Option<String>,
}

impl Caller {
    async fn open(address: SocketAddr, token: Option<String>) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, driver) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        Ok(Self {
            sender,
            address,
            token,
        })
    }

    async fn create(&mut self, arguments: &str, id: u64) -> Result<()> {
        let mut body = Vec::new();
        wire::write_call(&mut body, ("shop_add", arguments), Era::Modern, id)?;
        let answer: Value = serde_json::from_slice(&self.post("shop_add", body).await?)?;
        ensure!(
            answer
                .pointer("/result/structuredContent/data/id")
                .is_some(),
            "{answer}"
        );
        Ok(())
    }

    async fn echo(&mut self, id: u64) -> Result<()> {
        let mut body = Vec::new();
        wire::write_request(&mut body, Ask::Echo, Era::Modern, id)?;
        let name = Ask::Echo.name().unwrap_or_default();
        self.post(name, body).await.map(drop)
    }

    async fn post(&mut self, name: &str, body: Vec<u8>) -> Result<Bytes> {
        let mut request = Request::post("/mcp")
            .header("host", self.address.to_string())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", name);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.sender.ready().await?;
        let response = self
            .sender
            .send_request(request.body(Full::from(body))?)
            .await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if status != StatusCode::OK {
            bail!("{status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}

/// The same transaction, as a careful programmer would write it.
enum Driver {
    Sqlite(std::sync::Arc<std::sync::Mutex<rusqlite::Connection>>),
    Postgres(Box<Postgres>),
}

struct Postgres {
    client: Client,
    insert: tokio_postgres::Statement,
    select: tokio_postgres::Statement,
}

impl Driver {
    async fn open(kind: SourceKind, dsn: &str) -> Result<Self> {
        if kind == SourceKind::Sqlite {
            let connection = rusqlite::Connection::open(dsn)?;
            connection.busy_timeout(Duration::from_secs(5))?;
            return Ok(Self::Sqlite(std::sync::Arc::new(connection.into())));
        }
        let (client, connection) = tokio_postgres::connect(dsn, NoTls).await?;
        tokio::spawn(connection);
        let insert = "INSERT INTO orders (customer, total) VALUES ($1, $2::int8) RETURNING id";
        Ok(Self::Postgres(Box::new(Postgres {
            insert: client.prepare(insert).await?,
            select: client.prepare(SELECT).await?,
            client,
        })))
    }

    async fn create(&mut self, number: u64) -> Result<()> {
        let customer = format!("customer {number}");
        let total = i64::try_from(number)?;
        match self {
            Self::Sqlite(connection) => {
                let connection = std::sync::Arc::clone(connection);
                let done = tokio::task::spawn_blocking(move || {
                    let mut connection =
                        connection.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
                    let immediate = rusqlite::TransactionBehavior::Immediate;
                    let transaction = connection.transaction_with_behavior(immediate)?;
                    let id: i64 = transaction
                        .prepare_cached(INSERT)?
                        .query_row((&customer, total), |row| row.get(0))?;
                    transaction
                        .prepare_cached(SELECT)?
                        .query_row([id], |row| row.get::<_, String>(1))?;
                    transaction.commit()?;
                    anyhow::Ok(())
                });
                done.await?
            }
            Self::Postgres(postgres) => {
                let Postgres {
                    client,
                    insert,
                    select,
                } = postgres.as_mut();
                let serializable = tokio_postgres::IsolationLevel::Serializable;
                let transaction = client.build_transaction().isolation_level(serializable);
                let transaction = transaction.start().await?;
                let id: i64 = transaction
                    .query_one(insert, &[&customer, &total])
                    .await?
                    .get(0);
                transaction.query_one(select, &[&id]).await?;
                transaction.commit().await?;
                Ok(())
            }
        }
    }
}

/// Creates a project that may write orders. Returns the DSN of its source, and a token.
async fn made(folder: &Path, kind: SourceKind) -> Result<(String, String)> {
    let (dsn, dialect) = if kind == SourceKind::Sqlite {
        let tables = "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total INTEGER)";
        let (_made_in, file) = wayleave_test::sqlite_file(tables)?;
        let path = folder.join("shop.db");
        std::fs::copy(file, &path)?;
        let path = path.to_string_lossy().into_owned();
        rusqlite::Connection::open(&path)?.pragma_update(None, "journal_mode", "wal")?;
        (path, "kind = \"sqlite\"")
    } else {
        let tables = "CREATE TABLE orders (id int8 GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, \
                      customer text, total int8)";
        let made = wayleave_test::postgres()
            .await
            .fresh_database("orders", tables)
            .await?;
        (made.dsn, "kind = \"postgres\"\nschema = \"public\"")
    };
    let settings = "[limits]\ncalls_per_minute = 100000000\nburst = 1000000\n";
    let project = Project::create(folder, settings)?;
    let governance = project.governance();
    for name in ["shop", "shop_rw"] {
        let source = NewSource {
            name: name.to_owned(),
            kind,
            env: VARIABLE.to_owned(),
        };
        governance.add_source(source, WHO).await?;
    }
    let fields = "[streams.orders.fields.id]\ndatatype = \"integer\"\ngenerated = true\n\
        [streams.orders.fields.customer]\ndatatype = \"string\"\nrequired = true\nmax_length = 80\n\
        [streams.orders.fields.total]\ndatatype = \"integer\"\nmin_value = 0\n";
    let mapping = format!(
        "[dataset]\nname = \"shop\"\n{dialect}\n[[connections]]\nid = \"shop\"\nsource = \"shop\"\n\
         [streams.orders]\ntype = \"Order\"\nkey = [\"id\"]\n{fields}\
         [capabilities.add]\nstream = \"orders\"\naction = \"create\"\n\
         fields = [\"customer\", \"total\"]\nsource = \"shop_rw\"\n"
    );
    let freeze = RatifyRequest {
        proposed: Draft::new(mapping).propose(None)?,
        replaces: None,
        who: WHO.to_owned(),
        note: String::new(),
    };
    let mapping = governance.ratify(freeze).await?;
    governance.activate(&mapping, WHO).await?;
    let orders = StreamTerms {
        relations: BTreeSet::new(),
        fields: ["id", "customer", "total"].map(str::to_owned).into(),
        rows: None,
        masks: std::collections::BTreeMap::new(),
    };
    let granting = GrantRequest {
        terms: Terms {
            dataset: "shop".to_owned(),
            connection: "shop".to_owned(),
            mapping: mapping.digest(),
            streams: BTreeMap::from([("orders".to_owned(), orders)]),
            capabilities: BTreeSet::from(["add".to_owned()]),
        },
        expires: None,
        purpose: String::new(),
    };
    let grant = governance.grant(granting, WHO).await?;
    let issuing = TokenRequest {
        kind: TokenKind::Client,
        scopes: Scopes::RUNTIME,
        grants: BTreeSet::from([grant]),
        claims: Claims::new(),
        label: String::new(),
        expires: None,
    };
    let issued = governance
        .issue_token(issuing, WHO)
        .await
        .context("issuing a token")?;
    Ok((dsn, issued.secret.expose().to_owned()))
}
