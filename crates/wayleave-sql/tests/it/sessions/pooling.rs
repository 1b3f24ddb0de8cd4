//! PgBouncer in front of PostgreSQL: reads are answered correctly or refused with an error that
//! names the pooler, and shared sessions keep the application's settings.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_sql::{Dsn, StoreOptions, open, store};
use wayleave_store::conformance::ServedMapping;
use wayleave_store::{IntrospectOptions, Limits, Store, StoreError, ignore_progress};
use wayleave_test::{PgBouncer, PoolMode, postgres};

use crate::stores::{all, arguments, mapping, patient};

const TABLES: &str = "CREATE TABLE things (id int PRIMARY KEY, word text); \
    INSERT INTO things SELECT n, 'word ' || n FROM generate_series(1, 50) n; \
    CREATE TABLE log (id int); \
    CREATE FUNCTION writes() RETURNS int LANGUAGE plpgsql AS \
      'BEGIN INSERT INTO log VALUES (1); RETURN 1; END'; \
    CREATE VIEW writing AS SELECT id, writes() AS word FROM things;";

/// Query for the settings of the application's sessions.
const SETTINGS: &str = "SELECT current_setting('search_path'), current_setting('statement_timeout'), \
    current_setting('default_transaction_read_only'), current_setting('TimeZone'), \
    current_setting('DateStyle'), current_setting('idle_in_transaction_session_timeout')";

/// Number of concurrent readers per client, enough that the pooler switches sessions between
/// clients.
const READERS: usize = 4;
const READS: usize = 20;
/// Number of reads where each opens a session and is refused.
const REFUSED_READS: usize = 2;

/// Opens a session of the application, through the pooler.
async fn application(dsn: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(dsn, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The settings of several concurrent sessions, each on a different server session.
async fn settings_of_sessions(dsn: &str, sessions: usize) -> BTreeSet<Vec<String>> {
    let mut clients = Vec::new();
    let mut settings = BTreeSet::new();
    for _ in 0..sessions {
        let client = application(dsn).await;
        let in_transaction = client.simple_query("BEGIN").await.is_ok();
        let client = if in_transaction {
            client
        } else {
            application(dsn).await
        };
        for message in client.simple_query(SETTINGS).await.unwrap() {
            if let SimpleQueryMessage::Row(row) = message {
                let values = (0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned());
                settings.insert(values.collect());
            }
        }
        clients.push(client);
    }
    settings
}

fn plan(served: &ServedMapping, stream: &str) -> AuthorizedPlan {
    let query = json!({"stream": stream, "limit": 100});
    let query = served.query(&arguments(query)).unwrap();
    query.rows().clone()
}

/// Reads from several tasks at once. Returns the number of complete answers, and the number of
/// refusals that name a pooler.
async fn reads(store: &Arc<dyn Store>, plan: &AuthorizedPlan, count: usize) -> (usize, usize) {
    let mut tasks = Vec::new();
    for _ in 0..READERS {
        let (store, plan) = (Arc::clone(store), plan.clone());
        tasks.push(tokio::spawn(async move {
            let mut told = (0, 0);
            for _ in 0..count {
                match all(store.as_ref(), &plan, &patient()).await {
                    Ok(rows) => {
                        assert_eq!(rows.len(), 50);
                        told.0 += 1;
                    }
                    Err(StoreError::SessionRefused { reason }) => {
                        assert!(reason.contains("pool"), "{reason}");
                        told.1 += 1;
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            told
        }));
    }
    let mut told = (0, 0);
    for task in tasks {
        let (right, refused) = task.await.unwrap();
        told = (told.0 + right, told.1 + refused);
    }
    told
}

async fn through(mode: PoolMode, settings: &'static str) {
    let case = format!("{mode:?} {settings}");
    let server = postgres().await;
    let database = server.fresh_database("pooled", TABLES).await.unwrap();
    let pooler = PgBouncer::start(server, mode, settings).await.unwrap();
    let dsn = pooler.dsn(&database.name);
    let before = settings_of_sessions(&dsn, 3).await;
    assert_eq!(before.len(), 1, "{case}");

    let fields: &[(&str, &str)] = &[("word", "string")];
    let streams = [("things", fields), ("writing", &[("word", "integer")])];
    let policy = ServedMapping::new(&mapping(SourceKind::Postgres, &streams)).unwrap();
    let parsed = || Dsn::parse(SourceKind::Postgres, &dsn).unwrap();
    let stores = [
        store(parsed(), StoreOptions::default()),
        store(parsed(), StoreOptions::default()),
    ];
    let things = plan(&policy, "things");
    let count = if mode == PoolMode::Statement {
        REFUSED_READS
    } else {
        READS
    };
    let (one, other) = tokio::join!(
        reads(&stores[0], &things, count),
        reads(&stores[1], &things, count)
    );
    let told = (one.0 + other.0, one.1 + other.1);
    let source = open(parsed(), Limits::default());
    let catalogue = source
        .introspect(&IntrospectOptions::default(), &ignore_progress)
        .await;
    let pinged = source.ping().await;
    if mode == PoolMode::Statement {
        assert_eq!(told, (0, 2 * READERS * count), "{case}");
        for refused in [catalogue.unwrap_err(), pinged.unwrap_err()] {
            assert!(refused.to_string().contains("pool"), "{case}: {refused:?}");
        }
    } else {
        assert_eq!(told, (2 * READERS * count, 0), "{case}");
        assert_eq!(catalogue.unwrap().tables.len(), 3, "{case}");
        pinged.unwrap();
    }
    // Keep a session of the application busy, so that the read gets another one.
    let held = application(&dsn).await;
    let _ = held.simple_query("BEGIN").await;
    let written = all(stores[0].as_ref(), &plan(&policy, "writing"), &patient()).await;
    assert!(written.is_err(), "{case}: a view has written");
    drop(held);
    for store in stores {
        store.close().await;
    }

    assert_eq!(settings_of_sessions(&dsn, 6).await, before, "{case}");
    for _ in 0..6 {
        let client = application(&dsn).await;
        let inserted = client.simple_query("INSERT INTO log VALUES (7)").await;
        assert!(inserted.is_ok(), "{case}: {inserted:?}");
    }
    let ours = "SELECT count(*) FROM log WHERE id <> 7";
    assert_eq!(
        server.number(&database.name, ours).await.unwrap(),
        0,
        "{case}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_of_sessions_or_transactions_is_read_through_and_one_of_statements_is_refused() {
    for mode in PoolMode::ALL {
        through(mode, "default_pool_size = 20").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_forgets_startup_options_is_known_for_one() {
    let forgetful = "default_pool_size = 6\nignore_startup_parameters = options";
    through(PoolMode::Transaction, forgetful).await;
}

/// Number of rows of the stream `things` under this filter.
async fn filtered(store: &dyn Store, policy: &ServedMapping, filter: serde_json::Value) -> usize {
    let query = json!({"stream": "things", "filter": filter});
    let query = policy.query(&arguments(query)).unwrap();
    let rows = all(store, query.rows(), &patient()).await;
    rows.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_pooler_a_changed_type_is_noticed_though_no_row_would_come() {
    let server = postgres().await;
    let sql = "CREATE TABLE things (id int PRIMARY KEY, ratio float4); \
        INSERT INTO things VALUES (1, 0.1)";
    let database = server.fresh_database("pooled_type", sql).await.unwrap();
    let pooler = PgBouncer::start(server, PoolMode::Transaction, "default_pool_size = 2");
    let pooler = pooler.await.unwrap();
    let dsn = pooler.dsn(&database.name);
    let kind = SourceKind::Postgres;
    let policy = ServedMapping::new(&mapping(kind, &[("things", &[("ratio", "number")])])).unwrap();
    let store = store(Dsn::parse(kind, &dsn).unwrap(), StoreOptions::default());
    let filter = json!({"ratio": 0.1});
    assert_eq!(filtered(store.as_ref(), &policy, filter.clone()).await, 1);
    // A statement compiled for single precision would not find 0.1 in double precision.
    let change = "ALTER TABLE things ALTER ratio TYPE float8 USING 0.1";
    server.execute(&database.name, change).await.unwrap();
    assert_eq!(filtered(store.as_ref(), &policy, filter).await, 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_prepared_statement_is_left_on_a_session_that_a_pooler_shares() {
    let server = postgres().await;
    let sql = "CREATE TYPE mood AS ENUM ('sad', 'happy'); \
        CREATE TABLE things (id int PRIMARY KEY, mood mood); \
        INSERT INTO things VALUES (1, 'sad'), (2, 'happy'), (3, 'happy')";
    let database = server.fresh_database("pooled_names", sql).await.unwrap();
    // A single session, so that the application gets the one that was used for reading.
    let pooler = PgBouncer::start(server, PoolMode::Transaction, "default_pool_size = 1");
    let pooler = pooler.await.unwrap();
    let dsn = pooler.dsn(&database.name);
    let kind = SourceKind::Postgres;
    let policy = ServedMapping::new(&mapping(kind, &[("things", &[("mood", "string")])])).unwrap();
    let store = store(Dsn::parse(kind, &dsn).unwrap(), StoreOptions::default());
    let filter = json!({"mood": "happy"});
    assert_eq!(filtered(store.as_ref(), &policy, filter).await, 2);
    let client = application(&dsn).await;
    let named = "SELECT count(*) FROM pg_prepared_statements";
    let messages = client.simple_query(named).await.unwrap();
    let counts: Vec<_> = messages
        .iter()
        .filter_map(|it| match it {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        })
        .collect();
    assert_eq!(counts, ["0"]);
    store.close().await;
}
