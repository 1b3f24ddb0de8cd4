//! A statement is stopped on the server that runs it, and nothing is stopped on another server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use wayleave_model::mapping::SourceKind;
use wayleave_sql::{Dsn, StoreOptions, store};
use wayleave_store::conformance::ServedMapping;
use wayleave_store::{ReadContext, StoreError};
use wayleave_test::{MysqlServer, own_mariadb, own_mysql};

use crate::stores::{all, arguments, mapping, patient};

const TABLES: &str = "CREATE TABLE quick (id int PRIMARY KEY); INSERT INTO quick VALUES (1); \
    CREATE VIEW slow AS SELECT a.seq AS id FROM seq_1_to_1000000 a JOIN seq_1_to_1000000 b ON a.seq <> b.seq";

/// Starts a proxy that can be switched to another server, as in a failover.
async fn switched(server: Arc<AtomicU16>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let server = server.load(Ordering::SeqCst);
            tokio::spawn(async move {
                let mut far = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    port
}

async fn working(server: &MysqlServer) -> bool {
    let sql = "SELECT count(*) FROM information_schema.processlist \
        WHERE info LIKE '%slow%' AND info NOT LIKE '%processlist%'";
    server.number("mysql", sql).await.unwrap() > 0
}

async fn until_working(server: &MysqlServer, wanted: bool) {
    let start = Instant::now();
    while working(server).await != wanted {
        assert!(start.elapsed() < Duration::from_secs(30), "still waiting");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_never_killed_on_a_server_that_does_not_run_it() {
    let (one, other) = (own_mariadb().await.unwrap(), own_mariadb().await.unwrap());
    let database = one.fresh_database("kill", TABLES).await.unwrap();
    other.fresh_database("kill", TABLES).await.unwrap();
    let target = Arc::new(AtomicU16::new(one.endpoint().port));
    let port = switched(Arc::clone(&target)).await;
    let direct = format!(":{}/", one.endpoint().port);
    let dsn = database.dsn.replace(&direct, &format!(":{port}/"));
    let mut options = StoreOptions::default();
    options.limits.statement = Duration::from_secs(5);
    let reader = store(Dsn::parse(SourceKind::Mysql, &dsn).unwrap(), options);
    let served = ServedMapping::new(&mapping(SourceKind::Mysql, &[("slow", &[])])).unwrap();
    let count = json!({"stream": "slow", "metrics": [{"op": "sum", "field": "id"}]});
    let plan = served.aggregate(&arguments(count)).unwrap();

    let context = patient();
    let (asked, plan, reading) = (context.clone(), plan.groups().clone(), Arc::clone(&reader));
    let read = tokio::spawn(async move { all(reading.as_ref(), &plan, &asked).await });
    until_working(&one, true).await;
    // Open sessions on the other server, until one has the id of the statement's session.
    let mut bystanders = Vec::new();
    let number = "SELECT id FROM information_schema.processlist WHERE info LIKE '%slow%' \
        AND info NOT LIKE '%processlist%'";
    let number = one.number("mysql", number).await.unwrap();
    while bystanders.last().is_none_or(|(id, _)| *id < number) {
        bystanders.push(other.open_session("mysql").await.unwrap());
    }
    target.store(other.endpoint().port, Ordering::SeqCst);
    context.cancel.cancel();
    let error = read.await.unwrap().unwrap_err();
    assert!(matches!(error, StoreError::Cancelled), "{error:?}");
    reader.close().await;
    for (id, bystander) in &mut bystanders {
        bystander
            .ping()
            .await
            .unwrap_or_else(|error| panic!("session {id} was killed: {error}"));
    }
    // Its own time limit ends it.
    until_working(&one, false).await;
}

/// A view, valid in both engines, that takes more than minutes to count.
const CROSSED: &str = "CREATE TABLE n (id int PRIMARY KEY); \
    INSERT INTO n WITH RECURSIVE up(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM up WHERE id < 900) \
      SELECT id FROM up; \
    CREATE VIEW slow AS SELECT a.id FROM n a, n b, n c, n d WHERE a.id <> b.id + c.id * d.id";

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_nobody_waits_for_is_killed_on_both_engines() {
    let mut servers = vec![own_mariadb().await.unwrap()];
    if let Some(mysql) = own_mysql().await {
        servers.push(mysql.unwrap());
    }
    let served = ServedMapping::new(&mapping(SourceKind::Mysql, &[("slow", &[])])).unwrap();
    let count = json!({"stream": "slow", "metrics": [{"op": "sum", "field": "id"}]});
    let plan = served.aggregate(&arguments(count)).unwrap();
    for server in servers {
        let database = server.fresh_database("stop", CROSSED).await.unwrap();
        let mut options = StoreOptions::default();
        // Longer than the test waits, so that only the kill can end the statement.
        options.limits.statement = Duration::from_mins(10);
        let dsn = Dsn::parse(SourceKind::Mysql, &database.dsn).unwrap();
        let reader = store(dsn, options);
        let context = ReadContext::with_timeout(Duration::from_mins(10));
        let (asked, plan) = (context.clone(), plan.groups().clone());
        let reading = Arc::clone(&reader);
        let read = tokio::spawn(async move { all(reading.as_ref(), &plan, &asked).await });
        until_working(&server, true).await;
        context.cancel.cancel();
        assert!(read.await.unwrap().is_err());
        until_working(&server, false).await;
        reader.close().await;
    }
}
