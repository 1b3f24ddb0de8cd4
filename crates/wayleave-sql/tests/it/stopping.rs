//! Reads that exceed a deadline or are abandoned stop, both here and in the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::stores::{KINDS, LoadedDatabase, all, arguments, mapping, patient};
use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::value::Value;
use wayleave_sql::StoreOptions;
use wayleave_store::conformance::ServedMapping;
use wayleave_store::{CallerKey, ReadContext, StoreError};
use wayleave_test::{mariadb, postgres};

/// A table, and a view that takes more than minutes to count.
fn slow_sql(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Sqlite => {
            "CREATE TABLE quick (id INTEGER PRIMARY KEY); INSERT INTO quick VALUES (1);
             CREATE VIEW slow AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n"
        }
        SourceKind::Postgres => {
            "CREATE TABLE quick (id int PRIMARY KEY); INSERT INTO quick VALUES (1);
             CREATE VIEW slow AS SELECT a.id FROM generate_series(1, 1000000) a(id), generate_series(1, 1000000) b(id) \
             WHERE a.id <> b.id"
        }
        _ => {
            "CREATE TABLE quick (id int PRIMARY KEY); INSERT INTO quick VALUES (1);
             CREATE VIEW slow AS SELECT a.seq AS id FROM seq_1_to_1000000 a JOIN seq_1_to_1000000 b ON a.seq <> b.seq"
        }
    }
}

struct Slow {
    loaded: LoadedDatabase,
    served: ServedMapping,
}

impl Slow {
    async fn new(kind: SourceKind) -> Self {
        let loaded = LoadedDatabase::new(kind, slow_sql(kind)).await;
        let served = ServedMapping::new(&mapping(kind, &[("slow", &[]), ("quick", &[])])).unwrap();
        Self { loaded, served }
    }

    /// A sum over the slow view.
    fn endless(&self) -> AuthorizedPlan {
        let count = json!({"stream": "slow", "metrics": [{"op": "sum", "field": "id"}]});
        self.served
            .aggregate(&arguments(count))
            .unwrap()
            .groups()
            .clone()
    }

    fn quick(&self) -> AuthorizedPlan {
        let query = json!({"stream": "quick", "filter": {"id": 1}});
        self.served.query(&arguments(query)).unwrap().rows().clone()
    }

    /// Number of statements of this store that the database is running; for SQLite, of sessions: a
    /// read opens one on the thread that carries it out.
    async fn working(&self) -> i64 {
        let name = &self.loaded.name;
        if self.loaded.kind == SourceKind::Sqlite {
            return sessions_of_file(name);
        }
        if self.loaded.kind == SourceKind::Postgres {
            let sql = format!(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' \
                 AND state = 'active' AND application_name = 'wayleave'"
            );
            postgres().await.number("postgres", &sql).await.unwrap()
        } else {
            let sql = format!(
                "SELECT count(*) FROM information_schema.processlist \
                 WHERE db = '{name}' AND info LIKE '%slow%' AND info NOT LIKE '%processlist%'"
            );
            mariadb().await.number("mysql", &sql).await.unwrap()
        }
    }

    /// Waits until the database runs, or no longer runs, such a statement. Returns the time it
    /// took.
    async fn until(&self, working: bool) -> Duration {
        let start = Instant::now();
        while (self.working().await > 0) != working {
            assert!(start.elapsed() < Duration::from_secs(20), "still waiting");
            tokio::task::yield_now().await;
        }
        start.elapsed()
    }
}

/// Number of open sessions of a SQLite file in this process, which has it open for nothing else.
pub(crate) fn sessions_of_file(path: &str) -> i64 {
    let path = std::fs::canonicalize(path).unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let open = open.filter_map(|it| std::fs::read_link(it.ok()?.path()).ok());
    i64::try_from(open.filter(|it| *it == path).count()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_of_minutes_ends_at_its_deadline() {
    for kind in KINDS {
        let slow = Slow::new(kind).await;
        let store = slow.loaded.store();
        let start = Instant::now();
        let context = ReadContext::with_timeout(Duration::from_millis(700));
        let error = all(store.as_ref(), &slow.endless(), &context)
            .await
            .unwrap_err();
        let took = start.elapsed();
        assert!(
            matches!(error, StoreError::Timeout { .. }),
            "{kind}: {error:?}"
        );
        assert!(took >= Duration::from_millis(650), "{kind}: {took:?}");
        assert!(took < Duration::from_millis(2_500), "{kind}: {took:?}");
        if kind != SourceKind::Sqlite {
            slow.until(false).await;
        }
        assert_eq!(
            all(store.as_ref(), &slow.quick(), &patient())
                .await
                .unwrap()
                .len(),
            1
        );
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_has_a_limit_whatever_the_deadline_is() {
    for kind in KINDS {
        let slow = Slow::new(kind).await;
        let mut options = StoreOptions::default();
        options.limits.statement = Duration::from_millis(500);
        let store = slow.loaded.store_with(options);
        let start = Instant::now();
        let error = all(store.as_ref(), &slow.endless(), &patient())
            .await
            .unwrap_err();
        assert!(
            matches!(error, StoreError::Timeout { .. }),
            "{kind}: {error:?}"
        );
        assert!(start.elapsed() < Duration::from_secs(3), "{kind}");
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_nobody_waits_for_is_stopped_in_the_database_within_a_second() {
    for kind in [SourceKind::Postgres, SourceKind::Mysql] {
        let slow = Slow::new(kind).await;
        let store = slow.loaded.store();
        for by_token in [false, true] {
            let context = patient();
            let (reader, plan, asked) = (Arc::clone(&store), slow.endless(), context.clone());
            let task = tokio::spawn(async move { all(reader.as_ref(), &plan, &asked).await });
            slow.until(true).await;
            if by_token {
                context.cancel.cancel();
                let error = task.await.unwrap().unwrap_err();
                assert!(matches!(error, StoreError::Cancelled), "{kind}: {error:?}");
            } else {
                task.abort();
            }
            let took = slow.until(false).await;
            println!("{kind}: stopped after {took:?}, by token {by_token}");
            assert!(took < Duration::from_secs(1), "{kind}: {took:?}");
        }
        // Stopped reads leave the store usable.
        assert_eq!(
            all(store.as_ref(), &slow.quick(), &patient())
                .await
                .unwrap()
                .len(),
            1
        );
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_stops_too_and_serves_others_meanwhile() {
    let slow = Slow::new(SourceKind::Sqlite).await;
    let store = slow.loaded.store_with(StoreOptions {
        sessions: 3,
        ..StoreOptions::default()
    });
    let tasks: Vec<_> = (0..2)
        .map(|_| {
            let (reader, plan) = (Arc::clone(&store), slow.endless());
            tokio::spawn(async move { all(reader.as_ref(), &plan, &patient()).await })
        })
        .collect();
    let mut worst = Duration::ZERO;
    for _ in 0..200 {
        let start = Instant::now();
        let other = ReadContext {
            caller: CallerKey::from_subject("another"),
            ..patient()
        };
        let rows = all(store.as_ref(), &slow.quick(), &other).await.unwrap();
        assert_eq!(rows.len(), 1);
        worst = worst.max(start.elapsed());
    }
    println!("sqlite: 200 reads beside two endless ones, the slowest {worst:?}");
    assert!(worst < Duration::from_millis(500), "{worst:?}");
    for task in tasks {
        task.abort();
    }
    // All sessions are released; otherwise closing would wait for ever.
    let start = Instant::now();
    store.close().await;
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_all_sessions_taken_is_busy() {
    for kind in KINDS {
        let slow = Slow::new(kind).await;
        let store = slow.loaded.store_with(StoreOptions {
            sessions: 1,
            wait: Duration::from_millis(100),
            ..StoreOptions::default()
        });
        let (reader, plan) = (Arc::clone(&store), slow.endless());
        // Retry while others hold the only session.
        let taken = tokio::spawn(async move {
            while let Err(StoreError::Busy { .. }) = all(reader.as_ref(), &plan, &patient()).await {
                tokio::task::yield_now().await;
            }
        });
        // The only session may be free until the endless read takes it.
        let error = loop {
            match all(store.as_ref(), &slow.quick(), &patient()).await {
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => break error,
            }
        };
        assert!(
            matches!(error, StoreError::Busy { .. }),
            "{kind}: {error:?}"
        );
        assert!(error.is_retryable());
        taken.abort();
        // The session is released within two seconds.
        let start = Instant::now();
        while all(store.as_ref(), &slow.quick(), &patient())
            .await
            .is_err()
        {
            assert!(start.elapsed() < Duration::from_secs(2), "{kind}");
        }
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_a_store_ends_its_reads() {
    for kind in KINDS {
        let slow = Slow::new(kind).await;
        let store = slow.loaded.store();
        let (reader, plan) = (Arc::clone(&store), slow.endless());
        let task = tokio::spawn(async move { all(reader.as_ref(), &plan, &patient()).await });
        slow.until(true).await;
        assert!(!task.is_finished(), "{kind}");
        let start = Instant::now();
        store.close().await;
        assert!(start.elapsed() < Duration::from_secs(2), "{kind}");
        assert!(task.await.unwrap().is_err(), "{kind}");
        let error = all(store.as_ref(), &slow.quick(), &patient())
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Unreachable { .. } | StoreError::Cancelled
            ),
            "{kind}: {error:?}"
        );
    }
}

/// SQL for a view of the time limit of the current statement.
fn limit_sql(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Postgres => {
            "CREATE VIEW limits AS SELECT 1 AS id, current_setting('statement_timeout') AS word"
        }
        _ => {
            "CREATE FUNCTION told() RETURNS varchar(40) RETURN CONCAT(@@session.max_statement_time); \
             CREATE VIEW limits AS SELECT 1 AS id, told() AS word"
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_ends_a_calls_statement_soon_after_its_deadline_though_nobody_asks_it_to() {
    for (kind, of_a_call, of_an_index) in [
        (SourceKind::Postgres, "12s", "30s"),
        (SourceKind::Mysql, "12.000000", "30.000000"),
    ] {
        let loaded = LoadedDatabase::new(kind, limit_sql(kind)).await;
        let fields: &[(&str, &str)] = &[("word", "string")];
        let served = ServedMapping::new(&mapping(kind, &[("limits", fields)])).unwrap();
        let plan = served.query(&arguments(json!({"stream": "limits"})));
        let plan = plan.unwrap().rows().clone();
        let store = loaded.store();
        for (deadline, expected) in [(10, of_a_call), (60, of_an_index), (3, of_a_call)] {
            let context = ReadContext::with_timeout(Duration::from_secs(deadline));
            let rows = all(store.as_ref(), &plan, &context).await.unwrap();
            let told = Value::Text(expected.into());
            assert!(rows[0].contains(&told), "{kind}, {deadline} s: {rows:?}");
        }
        store.close().await;
    }
}
