//! Change tokens of a PostgreSQL store: whether it knows, without a query, that nothing has
//! changed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_sql::{StoreOptions, TableName, change_triggers};
use wayleave_store::conformance::ServedMapping;
use wayleave_store::{ReadContext, Store};
use wayleave_test::{PgBouncer, PoolMode, postgres};

use crate::stores::{LoadedDatabase, arguments, mapping};

const CHECK: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(20);

/// The table that the stream of `things` reads.
const TABLES: &str = "CREATE TABLE things (id integer PRIMARY KEY, word varchar(20)); \
    INSERT INTO things VALUES (1, 'one');";
const PARTITIONED: &str = "CREATE TABLE things (id integer PRIMARY KEY, word varchar(20)) \
    PARTITION BY RANGE (id); \
    CREATE TABLE few PARTITION OF things FOR VALUES FROM (0) TO (100);";

fn options() -> StoreOptions {
    StoreOptions {
        trigger_check: CHECK,
        ..StoreOptions::default()
    }
}

fn plan() -> AuthorizedPlan {
    let fields: &[(&str, &str)] = &[("word", "string")];
    let served = mapping(SourceKind::Postgres, &[("things", fields)]);
    let served = ServedMapping::new(&served).unwrap();
    let query = arguments(json!({"stream": "things"}));
    served.query(&query).unwrap().rows().clone()
}

fn triggers(tables: &[&str]) -> String {
    let name = |table: &&str| TableName {
        schema: None,
        table: (*table).to_owned(),
    };
    let tables: Vec<TableName> = tables.iter().map(name).collect();
    change_triggers(SourceKind::Postgres, &tables).unwrap()
}

struct WatchedTable {
    loaded: LoadedDatabase,
    store: Arc<dyn Store>,
    plan: AuthorizedPlan,
}

impl WatchedTable {
    async fn new(sql: &str) -> Self {
        let loaded = LoadedDatabase::new(SourceKind::Postgres, sql).await;
        let store = loaded.store_with(options());
        let plan = plan();
        Self {
            loaded,
            store,
            plan,
        }
    }

    /// The same watch through another DSN.
    fn through(mut self, dsn: &str) -> Self {
        dsn.clone_into(&mut self.loaded.dsn);
        self.store = self.loaded.store_with(options());
        self
    }

    async fn token(&self) -> Option<u64> {
        self.store.change_token(&self.plan).await.unwrap()
    }

    /// Waits for a token that satisfies `is_wanted`.
    async fn until(&self, what: &str, is_wanted: impl Fn(Option<u64>) -> bool) -> Option<u64> {
        let began = Instant::now();
        loop {
            let token = self.token().await;
            if is_wanted(token) {
                return token;
            }
            assert!(began.elapsed() < TIMEOUT, "{what}");
            // Nothing announces a token: whoever watches asks for it.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the store has looked up the triggers anew, and has read what it found. Where
    /// nothing is written meanwhile, the token is the expected one all the time.
    async fn checked(&self, expected: Option<u64>) {
        let sql = format!(
            "SELECT coalesce(max(extract(epoch FROM query_start) * 1000000), 0)::bigint \
             FROM pg_stat_activity WHERE datname = '{}' \
             AND application_name = 'wayleave' AND state = 'idle'",
            self.loaded.name
        );
        let began = Instant::now();
        // The last lookup so far, the next one, and another, which begins after the next is read.
        let mut ended = BTreeSet::new();
        while ended.len() < 3 {
            let last = postgres().await.number("postgres", &sql).await.unwrap();
            ended.extend((last > 0).then_some(last));
            if expected.is_some() {
                assert_eq!(self.token().await, expected);
            }
            assert!(began.elapsed() < TIMEOUT, "{ended:?}");
            // Nothing announces a lookup either.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Checks that there is no token during several checks of the triggers.
    async fn is_unknown(&self, what: &str) {
        let began = Instant::now();
        while began.elapsed() < 5 * CHECK {
            assert_eq!(self.token().await, None, "{what}");
            // That nothing happens has no event: the store may not even have a session.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn every_way_to_write_changes_the_token_and_quiet_does_not() {
    let it = WatchedTable::new(TABLES).await;
    it.is_unknown("there is no trigger").await;
    it.loaded.execute(&triggers(&["things"])).await;
    let mut last = it.until("installed", |token| token.is_some()).await;
    for write in [
        "INSERT INTO things VALUES (2, 'two')",
        "UPDATE things SET word = 'x'",
        "BEGIN; DELETE FROM things WHERE id = 2; COMMIT",
        "TRUNCATE things",
        "COPY things (id) FROM PROGRAM 'echo 3'",
        // Restoring a dump or applying a replication log disables other triggers.
        "SET session_replication_role = replica; UPDATE things SET word = 'y'",
        // Changes made while the trigger is disabled are unknown.
        "ALTER TABLE things DISABLE TRIGGER wayleave_changes; UPDATE things SET word = 'off'; \
         ALTER TABLE things ENABLE ALWAYS TRIGGER wayleave_changes",
        "ALTER TABLE things ALTER COLUMN word SET DEFAULT 'z'",
        "ALTER TABLE things RENAME COLUMN word TO words",
    ] {
        it.checked(last).await;
        assert_eq!(it.token().await, last, "before {write}");
        it.loaded.execute(write).await;
        it.until(write, |token| token.is_some() && token != last)
            .await;
        // The next check of the triggers may find another definition too.
        it.checked(None).await;
        last = it.token().await;
    }
    it.loaded
        .execute("BEGIN; DELETE FROM things; ROLLBACK; NOTIFY wayleave_changes, '1'")
        .await;
    it.checked(last).await;
    assert_eq!(it.token().await, last, "nothing was committed");
    it.store.close().await;
    assert_eq!(it.token().await, None);
}

#[tokio::test]
async fn what_a_trigger_does_not_tell_of_is_unknown() {
    let view = "ALTER TABLE things RENAME TO others; CREATE VIEW things AS SELECT * FROM others";
    for (what, sql) in [
        (
            "disabled",
            "ALTER TABLE things DISABLE TRIGGER wayleave_changes",
        ),
        (
            "not always enabled",
            "ALTER TABLE things ENABLE TRIGGER wayleave_changes",
        ),
        ("dropped", "DROP TRIGGER wayleave_changes ON things"),
        (
            "conditional",
            "DROP TRIGGER wayleave_changes ON things; \
            CREATE TRIGGER wayleave_changes AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON things \
            WHEN (false) EXECUTE FUNCTION wayleave_notify(); \
            ALTER TABLE things ENABLE ALWAYS TRIGGER wayleave_changes",
        ),
        (
            "for some events",
            "DROP TRIGGER wayleave_changes ON things; \
            CREATE TRIGGER wayleave_changes AFTER INSERT OR UPDATE ON things \
            EXECUTE FUNCTION wayleave_notify(); \
            ALTER TABLE things ENABLE ALWAYS TRIGGER wayleave_changes",
        ),
        (
            "another function",
            "CREATE OR REPLACE FUNCTION wayleave_notify() RETURNS trigger \
            LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        ),
        ("a view", view),
        ("inherited from", "CREATE TABLE more () INHERITS (things)"),
    ] {
        let it = WatchedTable::new(TABLES).await;
        it.loaded.execute(&triggers(&["things"])).await;
        it.until(what, |token| token.is_some()).await;
        it.loaded.execute(sql).await;
        it.until(what, |token| token.is_none()).await;
        it.is_unknown(what).await;
        it.store.close().await;
    }
}

#[tokio::test]
async fn every_partition_needs_a_trigger() {
    let it = WatchedTable::new(PARTITIONED).await;
    it.loaded.execute(&triggers(&["things"])).await;
    it.is_unknown("the partition has none").await;
    it.loaded.execute(&triggers(&["things", "few"])).await;
    let mut last = it.until("both have one", |token| token.is_some()).await;
    for table in ["things", "few"] {
        let write = format!("INSERT INTO {table} VALUES ({}, 'x')", table.len());
        it.loaded.execute(&write).await;
        last = it
            .until(table, |token| token.is_some() && token != last)
            .await;
    }
    it.store.close().await;
}

#[tokio::test]
async fn a_session_that_a_pooler_shares_does_not_listen() {
    let server = postgres().await;
    let sql = format!("{TABLES}{}", triggers(&["things"]));
    let database = server.fresh_database("pooled", &sql).await.unwrap();
    let pooler = PgBouncer::start(server, PoolMode::Transaction, "").await;
    let dsn = pooler.as_ref().unwrap().dsn(&database.name);
    let it = WatchedTable::new(TABLES).await.through(&dsn);
    let read = it
        .store
        .read(&it.plan, &ReadContext::with_timeout(TIMEOUT))
        .await;
    assert!(read.is_ok(), "the pooler lets the store read");
    drop(read);
    it.is_unknown("the pooler shares the session").await;
    it.store.close().await;
}

#[tokio::test]
async fn rows_that_a_policy_hides_may_change_with_the_policy() {
    let server = postgres().await;
    let sql = format!("{TABLES}{}", triggers(&["things"]));
    let database = server.fresh_database("hidden", &sql).await.unwrap();
    let (name, port) = (&database.name, server.endpoint().port);
    let role = format!("CREATE ROLE {name} LOGIN PASSWORD 'r'; GRANT SELECT ON things TO {name}");
    server.execute(name, &role).await.unwrap();
    let dsn = format!("postgres://{name}:r@127.0.0.1:{port}/{name}");
    let it = WatchedTable::new(TABLES).await.through(&dsn);
    it.until("no policy", |token| token.is_some()).await;
    let secure = "ALTER TABLE things ENABLE ROW LEVEL SECURITY";
    server.execute(name, secure).await.unwrap();
    it.until("a policy", |token| token.is_none()).await;
    it.is_unknown("a policy").await;
    it.store.close().await;
}
