//! PostgreSQL deployments: certificates, several servers behind one address, failover.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::value::Value;
use wayleave_sql::{Dsn, StoreOptions, store};
use wayleave_store::conformance::ServedMapping;
use wayleave_store::{ReadContext, Store, StoreError};
use wayleave_test::{Certificates, CutProxy, PostgresServer, own_postgres};

use super::{failure, ping};
use crate::stores::{all, arguments, mapping, patient};

const ROWS: usize = 100;
const RELOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Reloads the server's settings, and waits until new sessions have them.
async fn reload(server: &PostgresServer, name: &str, value: &str) {
    let set = format!("ALTER SYSTEM SET {name} = '{value}'");
    server.execute("postgres", &set).await.unwrap();
    server
        .execute("postgres", "SELECT pg_reload_conf()")
        .await
        .unwrap();
    let read = format!("SELECT (current_setting('{name}') = '{value}')::int::bigint");
    let began = Instant::now();
    while server.number("postgres", &read).await.unwrap() == 0 {
        assert!(began.elapsed() < RELOAD_TIMEOUT, "{name} is not {value}");
        tokio::task::yield_now().await;
    }
}

fn dsn(server: &PostgresServer, host: &str, parameters: &str) -> String {
    let it = server.endpoint();
    let (user, password, port) = (it.user, it.password, it.port);
    format!("postgres://{user}:{password}@{host}:{port}/postgres?sslmode=verify-full&{parameters}")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_certificate_and_one_for_another_name_are_refused() {
    let server = own_postgres().await.unwrap();
    let made = server.certificates().unwrap();
    let kind = SourceKind::Postgres;
    let own = format!("sslrootcert={}", server.endpoint().certificate.display());
    ping(kind, &dsn(&server, "localhost", &own)).await.unwrap();
    let error = failure(kind, &dsn(&server, "127.0.0.1", &own)).await;
    let StoreError::Tls { detail } = &error else {
        panic!("{error:?}");
    };
    assert!(
        detail.to_string().contains("not valid for name"),
        "{detail}"
    );
    // The setting was given when the server was started, so change the file instead.
    let (from, to) = (
        made.expired.display(),
        server.endpoint().certificate.display(),
    );
    let replace = format!("COPY (SELECT 1) TO PROGRAM 'cat > /dev/null; cp {from} {to}'");
    server.execute("postgres", &replace).await.unwrap();
    reload(&server, "log_line_prefix", "expired").await;
    let expired = format!("sslrootcert={}", made.expired.display());
    let error = failure(kind, &dsn(&server, "localhost", &expired)).await;
    let StoreError::Tls { detail } = &error else {
        panic!("{error:?}");
    };
    assert!(detail.to_string().contains("expired"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_is_shown_where_the_server_asks_for_one() {
    let server = own_postgres().await.unwrap();
    let made: Certificates = server.certificates().unwrap();
    reload(&server, "ssl_ca_file", made.authority.to_str().unwrap()).await;
    let rules = "COPY (VALUES ('hostnossl all all 127.0.0.1/32 scram-sha-256'), \
         ('hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-full')) TO";
    let rules = format!("{rules} '{}'", server.data().join("pg_hba.conf").display());
    server.execute("postgres", &rules).await.unwrap();
    // Any setting will do: new sessions that have its value also have the new rules.
    reload(&server, "log_line_prefix", "ready").await;
    let kind = SourceKind::Postgres;
    let own = format!("sslrootcert={}", server.endpoint().certificate.display());
    let error = failure(kind, &dsn(&server, "localhost", &own)).await;
    assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
    let (chain, key) = (made.client.display(), made.client_key.display());
    let shown = format!("{own}&sslcert={chain}&sslkey={key}");
    ping(kind, &dsn(&server, "localhost", &shown))
        .await
        .unwrap();
    // Files that are not certificates, and a key of another certificate.
    let other = server.endpoint().certificate.with_file_name("ca.key");
    for files in [
        format!("{own}&sslcert=/no/such/file&sslkey={key}"),
        format!("{own}&sslcert={chain}&sslkey=/no/such/file"),
        format!("{own}&sslcert={chain}&sslkey={chain}"),
        format!("{own}&sslcert={chain}&sslkey={}", other.display()),
    ] {
        let error = failure(kind, &dsn(&server, "localhost", &files)).await;
        assert!(
            matches!(error, StoreError::Tls { .. }),
            "{files}: {error:?}"
        );
    }
}

/// Starts a server with a table whose rows contain its name, and a view that never ends.
async fn named_server(name: &str) -> PostgresServer {
    let server = own_postgres().await.unwrap();
    let sql = format!(
        "CREATE TABLE things (id int PRIMARY KEY, server varchar(10)); \
         INSERT INTO things SELECT id, '{name}' FROM generate_series(1, {ROWS}) n(id); \
         CREATE VIEW slow AS SELECT a.id, 'x' AS server FROM generate_series(1, 1000000) a(id), \
             generate_series(1, 1000000) b(id) WHERE a.id <> b.id"
    );
    server.execute("postgres", &sql).await.unwrap();
    server
}

struct ProxiedStore {
    store: Arc<dyn Store>,
    rows: AuthorizedPlan,
    endless: AuthorizedPlan,
}

impl ProxiedStore {
    fn new(server: &PostgresServer, port: u16) -> Self {
        let own = server.endpoint().port;
        let dsn = server
            .dsn("postgres")
            .replace(&format!(":{own}/"), &format!(":{port}/"));
        let kind = SourceKind::Postgres;
        let fields: &[(&str, &str)] = &[("server", "string")];
        let text = mapping(kind, &[("things", fields), ("slow", fields)]);
        let ratified = ServedMapping::new(&text).unwrap();
        let query = json!({"stream": "things", "limit": ROWS});
        let rows = ratified.query(&arguments(query)).unwrap().rows().clone();
        let sum = json!({"stream": "slow", "metrics": [{"op": "sum", "field": "id"}]});
        let endless = ratified
            .aggregate(&arguments(sum))
            .unwrap()
            .groups()
            .clone();
        Self {
            store: store(Dsn::parse(kind, &dsn).unwrap(), StoreOptions::default()),
            rows,
            endless,
        }
    }

    /// Reads the table; returns the name of the server that answered. Checks that the answer is
    /// complete and comes from one server.
    async fn read(&self) -> Result<String, StoreError> {
        let rows = all(self.store.as_ref(), &self.rows, &patient()).await?;
        assert_eq!(rows.len(), ROWS, "an answer is whole");
        let servers: BTreeSet<String> = rows
            .iter()
            .flatten()
            .filter_map(|value| match value {
                Value::Text(name) => Some(name.to_string()),
                _ => None,
            })
            .collect();
        assert_eq!(servers.len(), 1, "an answer is of one server");
        Ok(servers.into_iter().next().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_behind_one_address_answer_whole_and_stopping_a_read_stops_nothing_else() {
    let (one, two) = tokio::join!(named_server("one"), named_server("two"));
    let ports = [one.endpoint().port, two.endpoint().port];
    let proxy = CutProxy::alternating(&ports).await.unwrap();
    let behind = Arc::new(ProxiedStore::new(&one, proxy.port()));
    // Statements of another client on both servers, while our reads are cancelled over and over.
    let sleep = "SELECT pg_sleep(4)";
    let others = async {
        tokio::join!(
            one.execute("postgres", sleep),
            two.execute("postgres", sleep)
        )
    };
    let ours = async {
        let mut answered = BTreeSet::new();
        for _ in 0..12 {
            let reads = (0..4).map(|_| behind.read());
            for read in futures::future::join_all(reads).await {
                match read {
                    Ok(server) => drop(answered.insert(server)),
                    Err(error) => assert!(error.is_retryable(), "{error:?}"),
                }
            }
            let context = ReadContext::with_timeout(Duration::from_millis(100));
            let stopped = all(behind.store.as_ref(), &behind.endless, &context).await;
            let error = stopped.unwrap_err();
            assert!(
                matches!(error, StoreError::Timeout { .. } | StoreError::Busy { .. }),
                "{error:?}"
            );
        }
        answered
    };
    let ((first, second), answered) = tokio::join!(others, ours);
    first.unwrap();
    second.unwrap();
    assert_eq!(answered.len(), 2, "both servers were read: {answered:?}");
    behind.store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_under_load_is_typed_errors_and_then_right_answers() {
    const RECOVERY: Duration = Duration::from_secs(5);
    let (primary, other) = tokio::join!(named_server("primary"), named_server("other"));
    let mut proxy = CutProxy::start(primary.endpoint().port).await.unwrap();
    let behind = Arc::new(ProxiedStore::new(&primary, proxy.port()));
    let (moved, done) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let reads = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let (behind, reads) = (Arc::clone(&behind), Arc::clone(&reads));
            let (moved, done) = (Arc::clone(&moved), Arc::clone(&done));
            tokio::spawn(async move {
                let (mut recovered, mut failures) = (None, 0);
                while !done.load(Ordering::Acquire) || recovered.is_none() {
                    // Whether the address already led to the other server when the read began.
                    let is_moved = moved.load(Ordering::Acquire);
                    match behind.read().await {
                        Ok(server) if is_moved => {
                            assert_eq!(server, "other");
                            recovered.get_or_insert_with(Instant::now);
                        }
                        Ok(_) => drop(reads.fetch_add(1, Ordering::AcqRel)),
                        Err(error) => {
                            assert!(error.is_retryable(), "{error:?}");
                            assert!(recovered.is_none(), "it failed after it had recovered");
                            failures += 1;
                            tokio::task::yield_now().await;
                        }
                    }
                }
                (recovered.unwrap(), failures)
            })
        })
        .collect();
    while reads.load(Ordering::Acquire) < 50 {
        tokio::task::yield_now().await;
    }
    primary.kill().unwrap();
    proxy.cut().await;
    proxy.lead_to(other.endpoint().port);
    proxy.restore().await.unwrap();
    let at = Instant::now();
    moved.store(true, Ordering::Release);
    done.store(true, Ordering::Release);
    let mut failures = 0;
    for reader in readers {
        let (recovered, failed): (Instant, usize) = reader.await.unwrap();
        assert!(recovered.duration_since(at) < RECOVERY);
        failures += failed;
    }
    eprintln!("{failures} typed failures, then answers");
    behind.store.close().await;
}
