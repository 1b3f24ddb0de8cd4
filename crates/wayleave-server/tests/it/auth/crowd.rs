//! A crowd holds as many resources as it can, and a newcomer is still served.
//!
//! The server is a process of its own: this test binary, started again with fewer file descriptors
//! than the crowd has connections. `WAYLEAVE_FULL=1` runs 16 tokens with 256 idle sessions each and
//! 1,100 idle connections, within 1,024 descriptors.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    process::Stdio,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
    task::{AbortHandle, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use wayleave_ledger::TokenRequest;
use wayleave_mcp::http::Limits;
use wayleave_model::grant::{Claims, Scope, TokenKind};
use wayleave_project::{Project, source::EnvironmentVariables};
use wayleave_server::Deployment;

use crate::auth::{
    fixture::WHO,
    wire::{Http, LOST},
};

const FOLDER: &str = "WAYLEAVE_TEST_CROWD";
const SETTINGS: &str = "[serve]\ntokens = true\n[limits]\ncalls_per_minute = 1000000\n";

/// Maximum 99th percentile latency of a newcomer's calls in the crowd. A call that must wait for
/// room may take this long.
const MAX_P99: Duration = Duration::from_secs(2);

struct Size {
    descriptors: u64,
    connections: usize,
    tokens: usize,
    sessions_per_caller: usize,
}

fn size() -> Size {
    if wayleave_test::is_full() {
        Size {
            descriptors: 1_024,
            connections: 1_100,
            tokens: 16,
            sessions_per_caller: 256,
        }
    } else {
        Size {
            descriptors: 256,
            connections: 300,
            tokens: 4,
            sessions_per_caller: 8,
        }
    }
}

#[tokio::test]
#[ignore = "serves the crowd, which starts it"]
async fn the_process_that_serves() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let Size {
        descriptors,
        tokens,
        sessions_per_caller,
        ..
    } = size();
    let limit = Rlimit {
        current: Some(descriptors / 2),
        maximum: Some(descriptors),
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let project = Project::open(folder.as_ref()).unwrap();
    let deployment = Deployment::open(&project, EnvironmentVariables::process())
        .await
        .unwrap();
    let limits = Limits {
        sessions: tokens * sessions_per_caller,
        sessions_per_caller,
        ..Limits::default()
    };
    let address = "127.0.0.1:0".parse().unwrap();
    let http = deployment.bind_within(address, limits).await.unwrap();
    println!("\nserving {}", http.local_addr());
    let stop = CancellationToken::new();
    let ended = stop.clone();
    // The end of standard input means that the parent process has ended.
    std::thread::spawn(move || {
        let _ = std::io::read_to_string(std::io::stdin());
        ended.cancel();
    });
    http.serve(stop).await;
}

async fn start(project: &Project) -> (Child, SocketAddr) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["auth::crowd::the_process_that_serves", "--exact"])
        .args(["--ignored", "--nocapture"])
        .env(FOLDER, project.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("it did not serve");
            if let Some(address) = line.strip_prefix("serving ") {
                return address.parse().unwrap();
            }
        }
    };
    let address = timeout(LOST, address).await.unwrap();
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, address)
}

async fn token(project: &Project) -> String {
    let request = TokenRequest {
        kind: TokenKind::Client,
        scopes: [Scope::Runtime].into_iter().collect(),
        grants: BTreeSet::new(),
        claims: Claims::new(),
        label: String::new(),
        expires: None,
    };
    let issued = project
        .governance()
        .issue_token(request, WHO)
        .await
        .unwrap();
    issued.secret.expose().to_owned()
}

/// An HTTP/2 connection that sent one request, was refused, and since then only acknowledges pings.
struct IdleConnection {
    _sender: hyper::client::conn::http2::SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

impl Drop for IdleConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl IdleConnection {
    /// Opens a connection; `None` if the server closed it meanwhile.
    async fn open(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).await.ok()?;
        let handshake =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.ok()?;
        let driver = tokio::spawn(connection).abort_handle();
        let request = Request::get(format!("http://{address}/mcp"));
        let response = sender
            .send_request(request.body(Full::default()).unwrap())
            .await
            .ok()?;
        assert_eq!(response.status(), 401);
        response.into_body().collect().await.ok()?;
        Some(Self {
            _sender: sender,
            driver,
        })
    }
}

/// Checks that calls in both eras succeed, each on its own connection.
async fn is_served(newcomer: &Http) {
    let schema = json!({ "name": "schema", "arguments": {} });
    let reply = newcomer.call("schema").await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    let session = newcomer.begin().await;
    let reply = session
        .send(session.in_session("tools/call", &schema))
        .await;
    assert!(reply.json().get("result").is_some(), "{:?}", reply.body);
}

/// The 99th percentile latency of the newcomer's calls, each on its own connection.
async fn p99(newcomer: &Http) -> Duration {
    let mut took = Vec::new();
    for _ in 0..200 {
        let started = Instant::now();
        assert_eq!(newcomer.call("schema").await.status, 200);
        took.push(started.elapsed());
    }
    took.sort_unstable();
    took[took.len() * 99 / 100 - 1]
}

/// Resident memory of a process, and its number of open descriptors.
fn used_by(process: u32) -> (String, usize) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let memory = status.lines().find(|line| line.starts_with("VmRSS"));
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    (memory.unwrap_or_default().to_owned(), open.count())
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_is_served_whatever_a_crowd_holds_open() {
    let size = size();
    // The crowd runs in this process, so raise its own limit.
    let own = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: own.maximum,
        ..own
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let project = Project::create(folder.path(), SETTINGS).unwrap();
    let newcomer = token(&project).await;
    let mut greedy = Vec::new();
    for _ in 0..size.tokens {
        greedy.push(token(&project).await);
    }
    let (child, address) = start(&project).await;
    let process = child.id().unwrap();
    let newcomer = Http::new(address).with(newcomer);
    is_served(&newcomer).await;
    let alone = p99(&newcomer).await;

    let mut sessions = JoinSet::new();
    for token in greedy {
        let client = Http::new(address).with(token);
        sessions.spawn(async move {
            for _ in 0..size.sessions_per_caller {
                client.begin().await;
            }
        });
    }
    while let Some(begun) = sessions.join_next().await {
        begun.unwrap();
    }
    is_served(&newcomer).await;

    let mut crowd = Vec::new();
    for number in 0..size.connections {
        let idle = timeout(LOST, IdleConnection::open(address)).await;
        crowd.extend(idle.expect("neither answered nor let go"));
        if number % 25 == 0 {
            is_served(&newcomer).await;
        }
    }
    for _ in 0..10 {
        is_served(&newcomer).await;
    }
    let crowded = p99(&newcomer).await;
    let ratio = crowded.as_secs_f64() / alone.as_secs_f64();
    println!("p99 alone {alone:?}, in the crowd {crowded:?}: {ratio:.2} times");
    assert!(crowded < MAX_P99, "{crowded:?}");
    let (memory, open) = used_by(process);
    println!(
        "{} tokens with {} sessions each, {} connections: {memory}, {open} descriptors",
        size.tokens, size.sessions_per_caller, size.connections
    );
    // A quarter is left to files and databases: the crowd may not take all that there are.
    let most = size.descriptors - size.descriptors / 4;
    assert!(u64::try_from(open).unwrap() <= most, "{open}");
    let held = crowd.iter().filter(|one| !one.driver.is_finished()).count();
    assert!(held < size.connections / 2, "{held}");
}
