//! The readers of a source share its sessions: slow readers leave some to others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use wayleave_ledger::{GrantRequest, NewSource, RatifyRequest, TokenRequest};
use wayleave_model::grant::{Claims, Scope, TokenKind};
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::Draft;
use wayleave_plan::package::GrantSelection;
use wayleave_project::{Project, source::EnvironmentVariables};
use wayleave_server::Deployment;
use wayleave_test::postgres;

use crate::auth::{fixture::WHO, wire::Http};

/// The default number of concurrent calls of one token.
const CALLS: usize = 6;
const SETTINGS: &str = "[serve]\ntokens = true\n[limits]\ncalls_per_minute = 100000\n";
/// Number of reads of the third token.
const READS: usize = 400;
/// Number of reads after which the slow reads must still run.
const ROUND: usize = 20;
/// Maximum 99th percentile latency beside slow reads. A read that waits in vain for a session takes
/// this long.
const MAX_P99: Duration = Duration::from_secs(1);

const SQL: &str = "CREATE TABLE quick (id integer PRIMARY KEY, name text);
    INSERT INTO quick VALUES (1, 'one');
    CREATE VIEW slow AS SELECT 1 AS id, 'one'::text AS name FROM pg_sleep(60);";

const MAPPING: &str = "[dataset]\nname = \"shared\"\nkind = \"postgres\"\nschema = \"public\"\n\
    [[connections]]\nid = \"shared\"\nsource = \"store\"\n\
    [streams.quick]\ntype = \"Quick\"\nkey = [\"id\"]\n[streams.quick.fields]\n\
    id = { datatype = \"integer\", required = true }\nname = { datatype = \"string\" }\n\
    [streams.slow]\ntype = \"Slow\"\nkey = [\"id\"]\n[streams.slow.fields]\n\
    id = { datatype = \"integer\", required = true }\nname = { datatype = \"string\" }\n";

/// A deployment over a PostgreSQL database, with one grant of all its data.
struct SharedDeployment {
    _folder: TempDir,
    project: Project,
    _deployment: Deployment,
    database: String,
    grant: String,
    http: Http,
    _stop: DropGuard,
}

impl SharedDeployment {
    async fn new() -> Self {
        let made = postgres().await.fresh_database("shared", SQL).await;
        let made = made.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let project = Project::create(folder.path(), SETTINGS).unwrap();
        let governance = project.governance();
        let source = NewSource {
            name: "store".to_owned(),
            kind: SourceKind::Postgres,
            env: "STORE_DSN".to_owned(),
        };
        governance.add_source(source, WHO).await.unwrap();
        let freeze = RatifyRequest {
            proposed: Draft::new(MAPPING).propose(None).unwrap(),
            replaces: None,
            who: WHO.to_owned(),
            note: String::new(),
        };
        let mapping = governance.ratify(freeze).await.unwrap();
        governance.activate(&mapping, WHO).await.unwrap();
        let granting = GrantRequest {
            terms: GrantSelection::default().terms(&mapping).unwrap(),
            expires: None,
            purpose: String::new(),
        };
        let grant = governance.grant(granting, WHO).await.unwrap();
        let environment = BTreeMap::from([("STORE_DSN".to_owned(), made.dsn)]);
        let deployment = Deployment::open(&project, EnvironmentVariables::with(environment))
            .await
            .unwrap();
        let http = deployment.bind("127.0.0.1:0".parse().unwrap()).await;
        let http = http.unwrap();
        let address = http.local_addr();
        let stop = CancellationToken::new();
        tokio::spawn(http.serve(stop.clone()));
        Self {
            _folder: folder,
            project,
            _deployment: deployment,
            database: made.name,
            grant,
            http: Http::new(address),
            _stop: stop.drop_guard(),
        }
    }

    async fn client(&self) -> Http {
        let request = TokenRequest {
            kind: TokenKind::Client,
            scopes: [Scope::Runtime].into_iter().collect(),
            grants: BTreeSet::from([self.grant.clone()]),
            claims: Claims::new(),
            label: String::new(),
            expires: None,
        };
        let issued = self
            .project
            .governance()
            .issue_token(request, WHO)
            .await
            .unwrap();
        self.http.with(issued.secret.expose())
    }

    /// Number of slow reads that run in the database.
    async fn running(&self) -> i64 {
        let running = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
            AND state = 'active' AND query LIKE '%\"slow\"%' AND pid <> pg_backend_pid()";
        let count = postgres().await.number(&self.database, running).await;
        count.unwrap()
    }

    /// Waits until `reads` slow reads run in the database.
    async fn until_running(&self, reads: i64) {
        let waited = tokio::time::timeout(Duration::from_secs(8), async {
            while self.running().await < reads {
                tokio::task::yield_now().await;
            }
        });
        assert!(waited.await.is_ok(), "{reads} slow reads never ran at once");
    }
}

/// The result of reading a stream.
async fn read(client: Http, stream: &'static str) -> Value {
    let params = json!({ "name": "query_records", "arguments": { "stream": stream } });
    let request = client.stateless("tools/call", &params, Some("query_records"));
    client.send(request).await.json()["result"].clone()
}

/// Reads the quick stream `reads` times, and returns the latencies.
async fn quick_reads(client: &Http, reads: usize) -> Vec<Duration> {
    let mut took = Vec::new();
    for _ in 0..reads {
        let started = Instant::now();
        let result = read(client.clone(), "quick").await;
        took.push(started.elapsed());
        let rows = &result["structuredContent"]["data"]["rows"];
        assert_eq!(rows, &json!([[1, "one"]]), "{result}");
    }
    took
}

fn p99(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took[took.len() * 99 / 100 - 1]
}

fn slow_reads(client: &Http) -> JoinSet<Value> {
    (0..CALLS).map(|_| read(client.clone(), "slow")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tokens_with_slow_reads_leave_a_session_for_the_reads_of_a_third() {
    let shared = SharedDeployment::new().await;
    let (first, second) = (shared.client().await, shared.client().await);
    let third = shared.client().await;
    // The first read opens a session.
    quick_reads(&third, 2).await;
    let alone = p99(quick_reads(&third, READS).await);
    let _first = slow_reads(&first);
    shared.until_running(6).await;
    let mut second = slow_reads(&second);
    shared.until_running(7).await;
    // Once most of its reads have waited in vain, the second token has every session it will get.
    for _ in 0..4 {
        let result = second.join_next().await.unwrap().unwrap();
        let error = &result["structuredContent"]["error"];
        assert_eq!(error["reason"], "busy", "{result}");
    }
    let mut beside = Vec::new();
    while beside.len() < READS {
        let round = quick_reads(&third, ROUND).await;
        // Only reads that the slow ones outlast were made beside them.
        if shared.running().await < 7 {
            break;
        }
        beside.extend(round);
    }
    let reads = beside.len();
    assert!(reads >= 5 * ROUND, "only {reads} reads beside slow ones");
    let beside = p99(beside);
    let ratio = beside.as_secs_f64() / alone.as_secs_f64();
    println!("p99 alone {alone:?}, of {reads} beside slow reads {beside:?}: {ratio:.2} times");
    assert!(beside < MAX_P99, "{beside:?}");
}
