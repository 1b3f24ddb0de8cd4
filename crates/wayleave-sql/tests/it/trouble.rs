//! Servers that disappear and return, and tables that change: typed errors, then answers again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::stores::{KINDS, LoadedDatabase, all, arguments, mapping, patient};
use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_sql::{Dsn, StoreOptions, store};
use wayleave_store::conformance::ServedMapping;
use wayleave_store::{Answer, Store, StoreError};
use wayleave_test::{CutProxy, mariadb, postgres};

const TABLE: &str = "CREATE TABLE things (id integer PRIMARY KEY, word varchar(20), small integer); \
    INSERT INTO things VALUES (1, 'one', 1), (2, 'two', NULL);";

fn served(kind: SourceKind) -> ServedMapping {
    let fields: &[(&str, &str)] = &[("word", "string"), ("small", "integer")];
    ServedMapping::new(&mapping(kind, &[("things", fields)])).unwrap()
}

fn everything(served: &ServedMapping) -> AuthorizedPlan {
    let query = arguments(json!({"stream": "things"}));
    served.query(&query).unwrap().rows().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_goes_away_is_unreachable_and_comes_back() {
    for kind in [SourceKind::Postgres, SourceKind::Mysql] {
        let loaded = LoadedDatabase::new(kind, TABLE).await;
        let port = match kind {
            SourceKind::Postgres => postgres().await.endpoint().port,
            _ => mariadb().await.endpoint().port,
        };
        let mut between = CutProxy::start(port).await.unwrap();
        let dsn = loaded
            .dsn
            .replace(&format!(":{port}/"), &format!(":{}/", between.port()));
        let store = store(Dsn::parse(kind, &dsn).unwrap(), StoreOptions::default());
        let served = served(kind);
        let plan = everything(&served);
        for _ in 0..3 {
            assert_eq!(
                all(store.as_ref(), &plan, &patient()).await.unwrap().len(),
                2
            );
            between.cut().await;
            let start = Instant::now();
            let error = all(store.as_ref(), &plan, &patient()).await.unwrap_err();
            assert!(
                matches!(error, StoreError::Unreachable { .. }),
                "{kind}: {error:?}"
            );
            assert!(
                start.elapsed() < Duration::from_secs(1),
                "{kind}: {:?}",
                start.elapsed()
            );
            assert!(error.is_retryable());
            between.restore().await.unwrap();
            // The very next read succeeds.
            assert_eq!(
                all(store.as_ref(), &plan, &patient()).await.unwrap().len(),
                2
            );
        }
        store.close().await;
        between.cut().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_died_in_the_pool_are_not_noticed_by_callers() {
    for kind in [SourceKind::Postgres, SourceKind::Mysql] {
        let loaded = LoadedDatabase::new(kind, TABLE).await;
        let store = loaded.store();
        let served = served(kind);
        let plan = everything(&served);
        for _ in 0..3 {
            // Several sessions, all idle.
            let reads = (0..4).map(|_| all_of(Arc::clone(&store), plan.clone()));
            for read in reads.map(tokio::spawn).collect::<Vec<_>>() {
                assert_eq!(read.await.unwrap().unwrap(), 2, "{kind}");
            }
            end_sessions(&loaded).await;
            assert_eq!(
                all_of(Arc::clone(&store), plan.clone()).await.unwrap(),
                2,
                "{kind}"
            );
        }
        store.close().await;
    }
}

async fn all_of(store: Arc<dyn Store>, plan: AuthorizedPlan) -> Result<usize, StoreError> {
    all(store.as_ref(), &plan, &patient())
        .await
        .map(|rows| rows.len())
}

/// Ends all sessions of the database, as a restart does.
async fn end_sessions(loaded: &LoadedDatabase) {
    let name = &loaded.name;
    if loaded.kind == SourceKind::Postgres {
        let sql = format!(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity \
             WHERE datname = '{name}' AND application_name = 'wayleave'"
        );
        postgres().await.number("postgres", &sql).await.unwrap();
    } else {
        let sql = format!(
            "SELECT COALESCE(MIN(id), 0) FROM information_schema.processlist WHERE db = '{name}'"
        );
        // One at a time, because the server has no statement that ends all.
        loop {
            let id = mariadb().await.number("mysql", &sql).await.unwrap();
            if id == 0 {
                return;
            }
            // The session may already have ended.
            drop(
                mariadb()
                    .await
                    .execute("mysql", &format!("KILL {id}"))
                    .await,
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_changed_is_drift_by_name_until_it_is_as_before() {
    for kind in KINDS {
        let loaded = LoadedDatabase::new(kind, TABLE).await;
        let store = loaded.store();
        let served = served(kind);
        let plan = everything(&served);
        assert_eq!(
            all(store.as_ref(), &plan, &patient()).await.unwrap().len(),
            2
        );

        loaded
            .execute("ALTER TABLE things RENAME COLUMN word TO phrase")
            .await;
        let error = all(store.as_ref(), &plan, &patient()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "column `word` of table `things` is not in the source any more",
            "{kind}: {error:?}"
        );
        loaded
            .execute("ALTER TABLE things RENAME COLUMN phrase TO word")
            .await;
        assert_eq!(
            all(store.as_ref(), &plan, &patient()).await.unwrap().len(),
            2
        );

        loaded.execute("ALTER TABLE things RENAME TO others").await;
        let error = all(store.as_ref(), &plan, &patient()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "table `things` is not in the source any more",
            "{kind}: {error:?}"
        );
        loaded.execute("ALTER TABLE others RENAME TO things").await;
        assert_eq!(
            all(store.as_ref(), &plan, &patient()).await.unwrap().len(),
            2
        );
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_changed_its_type_is_read_by_the_new_one() {
    for kind in [SourceKind::Postgres, SourceKind::Mysql] {
        let loaded = LoadedDatabase::new(kind, TABLE).await;
        let store = loaded.store();
        let served = served(kind);
        let query = arguments(json!({"stream": "things", "filter": {"word": {"gt": "o"}}}));
        let plan = served.query(&query).unwrap().rows().clone();
        assert_eq!(
            all(store.as_ref(), &plan, &patient()).await.unwrap().len(),
            2
        );
        let change = match kind {
            SourceKind::Postgres => "ALTER TABLE things ALTER word TYPE char(9)",
            _ => "ALTER TABLE things MODIFY word char(9) CHARACTER SET latin1",
        };
        loaded.execute(change).await;
        let rows = all(store.as_ref(), &plan, &patient()).await.unwrap();
        assert_eq!(rows.len(), 2, "{kind}");
        assert!(
            rows[0].contains(&wayleave_plan::value::Value::Text("one".into())),
            "{kind}: {rows:?}"
        );
        store.close().await;
    }
}

#[tokio::test]
async fn a_value_that_is_not_what_the_mapping_says_is_named() {
    let sql = "CREATE TABLE things (id INTEGER PRIMARY KEY, word, small); \
               INSERT INTO things VALUES (1, x'00ff', 'many');";
    let loaded = LoadedDatabase::new(SourceKind::Sqlite, sql).await;
    let store = loaded.store();
    let served = served(SourceKind::Sqlite);
    let error = all(store.as_ref(), &everything(&served), &patient())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a value of column `small` is not of datatype `integer`"
    );
    let query = arguments(json!({"stream": "things", "fields": ["word"]}));
    let plan = served.query(&query).unwrap();
    let rows = all(store.as_ref(), plan.rows(), &patient()).await.unwrap();
    assert!(rows[0].contains(&wayleave_plan::value::Value::Text("\\x00ff".into())));
    store.close().await;
}

#[tokio::test]
async fn a_replaced_file_is_read_anew() {
    let loaded = LoadedDatabase::new(SourceKind::Sqlite, TABLE).await;
    let other = LoadedDatabase::new(
        SourceKind::Sqlite,
        "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT, small INTEGER)",
    )
    .await;
    let store = loaded.store();
    let served = served(SourceKind::Sqlite);
    let plan = everything(&served);
    assert_eq!(
        all(store.as_ref(), &plan, &patient()).await.unwrap().len(),
        2
    );
    std::fs::rename(&other.name, &loaded.name).unwrap();
    assert_eq!(
        all(store.as_ref(), &plan, &patient()).await.unwrap().len(),
        0
    );
    std::fs::remove_file(&loaded.name).unwrap();
    let error = all(store.as_ref(), &plan, &patient()).await.unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error:?}");
    store.close().await;
}

#[tokio::test]
async fn an_estimate_says_that_it_is_one() {
    for kind in KINDS {
        let loaded = LoadedDatabase::new(kind, TABLE).await;
        match kind {
            SourceKind::Postgres => loaded.execute("ANALYZE things").await,
            SourceKind::Mysql => loaded.execute("ANALYZE TABLE things").await,
            _ => {}
        }
        let store = loaded.store();
        let served = served(kind);
        let query = arguments(json!({"stream": "things", "count": "estimated"}));
        let plan = served.query(&query).unwrap();
        let count = plan.count().unwrap();
        let answer = store.read(count, &patient()).await.unwrap();
        let Answer::Count { rows, exact } = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(exact, kind == SourceKind::Sqlite, "{kind}");
        assert!((1..=4).contains(&rows), "{kind}: {rows}");
        store.close().await;
    }
}

#[tokio::test]
async fn what_a_store_cannot_compute_is_told_as_such() {
    let sums = json!({"stream": "things", "metrics": [{"op": "sum", "field": "ratio"}]});
    let days = json!({
        "stream": "things",
        "metrics": [{"op": "count"}],
        "group_by_time": {"field": "at", "granularity": "day", "time_zone": "Asia/Tokyo"},
    });
    let sql = "CREATE TABLE things (id integer PRIMARY KEY, ratio double precision, at timestamp); \
        INSERT INTO things VALUES (1, 1.5e308, '294276-12-31 23:59:59'), (2, 1.5e308, NULL);";
    let kind = SourceKind::Postgres;
    let loaded = LoadedDatabase::new(kind, sql).await;
    let fields: &[(&str, &str)] = &[("ratio", "number"), ("at", "datetime")];
    let served = ServedMapping::new(&mapping(kind, &[("things", fields)])).unwrap();
    let store = loaded.store();
    for asked in [sums, days] {
        let plan = served.aggregate(&arguments(asked.clone())).unwrap();
        let error = all(store.as_ref(), plan.groups(), &patient()).await;
        let error = error.expect_err(&asked.to_string());
        assert!(matches!(error, StoreError::OutOfRange { .. }), "{error:?}");
        assert!(!error.is_retryable());
    }
    // The store still works.
    let plan = served.query(&arguments(json!({"stream": "things", "fields": ["id"]})));
    let rows = all(store.as_ref(), plan.unwrap().rows(), &patient()).await;
    assert_eq!(rows.unwrap().len(), 2);
    store.close().await;
}

#[tokio::test]
async fn a_text_that_a_columns_character_set_does_not_have_is_in_no_row() {
    let sql = "CREATE TABLE things (id int PRIMARY KEY, western varchar(20) CHARACTER SET latin1, \
          japanese varchar(20) CHARACTER SET sjis, chinese varchar(20) CHARACTER SET gbk); \
        INSERT INTO things VALUES (1, 'é', '日本', '中国')";
    let mut stores = vec![LoadedDatabase::new(SourceKind::Mysql, sql).await];
    if let Some(mysql) = wayleave_test::mysql().await {
        stores.push(LoadedDatabase::on_server(mysql, sql).await);
    }
    let fields: &[(&str, &str)] = &[
        ("western", "string"),
        ("japanese", "string"),
        ("chinese", "string"),
    ];
    let served = ServedMapping::new(&mapping(SourceKind::Mysql, &[("things", fields)])).unwrap();
    for loaded in stores {
        let store = loaded.store();
        for (field, held) in [("western", "é"), ("japanese", "日本"), ("chinese", "中国")] {
            for (text, found) in [(held, 1), ("😀", 0), ("ж😀", 0), ("\u{e000}", 0)] {
                let query = json!({"stream": "things", "filter": {field: text}});
                let plan = served.query(&arguments(query)).unwrap();
                let rows = all(store.as_ref(), plan.rows(), &patient()).await;
                let rows = rows.unwrap_or_else(|error| panic!("{field} {text}: {error:?}"));
                assert_eq!(rows.len(), found, "{field} {text}");
            }
        }
        store.close().await;
    }
}
