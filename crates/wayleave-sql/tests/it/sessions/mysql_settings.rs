//! Sessions of MySQL and MariaDB have the settings that reads need, whatever the server's defaults.

use std::sync::Arc;

use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_sql::{Dsn, StoreOptions, open, store};
use wayleave_store::conformance::ServedMapping;
use wayleave_store::{IntrospectOptions, Limits, Store, ignore_progress};
use wayleave_test::{MysqlServer, own_mariadb, own_mysql};

use crate::stores::{all, arguments, mapping, patient};

const TABLES: usize = 30;

/// Server settings that affect sessions, and the statements that undo them.
const SETTINGS: [(&str, &str); 8] = [
    (
        "SET GLOBAL init_connect = 'SET autocommit = 0'",
        "SET GLOBAL init_connect = ''",
    ),
    (
        "SET GLOBAL init_connect = 'START TRANSACTION'",
        "SET GLOBAL init_connect = ''",
    ),
    (
        "SET GLOBAL init_connect = 'SET autocommit = 0, completion_type = 1, sql_select_limit = 2'",
        "SET GLOBAL init_connect = ''",
    ),
    ("SET GLOBAL autocommit = 0", "SET GLOBAL autocommit = 1"),
    (
        "SET GLOBAL completion_type = 1",
        "SET GLOBAL completion_type = 0",
    ),
    (
        "SET GLOBAL completion_type = 2",
        "SET GLOBAL completion_type = 0",
    ),
    (
        "SET GLOBAL sql_select_limit = 2",
        "SET GLOBAL sql_select_limit = 18446744073709551615",
    ),
    (
        "SET GLOBAL max_join_size = 1",
        "SET GLOBAL max_join_size = 18446744073709551615",
    ),
];

/// Servers whose global settings may be changed.
pub(super) async fn servers() -> Vec<(&'static str, MysqlServer)> {
    let mut servers = vec![("MariaDB", own_mariadb().await.unwrap())];
    if let Some(mysql) = own_mysql().await {
        servers.push(("MySQL", mysql.unwrap()));
    }
    servers
}

/// Creates a database, and a user who may only read it: `init_connect` applies only to such users.
pub(super) async fn for_a_reader(server: &MysqlServer, sql: &str) -> (String, String) {
    let made = server.fresh_database("settings", sql).await.unwrap();
    let user = format!("reader_{}", made.name);
    let grant = format!(
        "CREATE USER '{user}'@'%' IDENTIFIED BY 'reader'; \
         GRANT SELECT, EXECUTE ON `{}`.* TO '{user}'@'%'",
        made.name
    );
    server.execute("mysql", &grant).await.unwrap();
    let port = server.endpoint().port;
    let dsn = format!("mysql://{user}:reader@127.0.0.1:{port}/{}", made.name);
    (made.name, dsn)
}

fn schema() -> String {
    let mut sql = String::from(
        "CREATE TABLE things (id int PRIMARY KEY, word varchar(20), at datetime); \
         CREATE TABLE log (id int); \
         CREATE FUNCTION writes() RETURNS int BEGIN INSERT INTO log VALUES (1); RETURN 1; END; \
         CREATE SQL SECURITY DEFINER VIEW writing AS SELECT id, writes() AS word FROM things; ",
    );
    for table in 0..TABLES {
        sql += &format!("CREATE TABLE other_{table} (id int PRIMARY KEY); ");
    }
    sql
}

fn of_all(served: &ServedMapping, stream: &str) -> AuthorizedPlan {
    let query = json!({"stream": stream, "fields": ["id", "word"]});
    let query = served.query(&arguments(query)).unwrap();
    query.rows().clone()
}

fn by_day(served: &ServedMapping) -> AuthorizedPlan {
    let asked = json!({
        "stream": "things", "metrics": [{"op": "count"}],
        "group_by_time": {"field": "at", "granularity": "day", "time_zone": "Europe/Berlin"},
    });
    let plan = served.aggregate(&arguments(asked)).unwrap();
    plan.groups().clone()
}

/// A read-only store over a database that its owner may change meanwhile.
struct Setup<'a> {
    server: &'a MysqlServer,
    database: &'a str,
    dsn: &'a str,
    served: ServedMapping,
    /// Name of the case in failure messages.
    case: String,
}

impl Setup<'_> {
    /// Runs statements as the owner, whose sessions also get the server's settings.
    async fn execute(&self, sql: &str) {
        let sql = format!("SET autocommit = 1, completion_type = 0; {sql}");
        self.server.execute(self.database, &sql).await.unwrap();
    }

    fn dsn(&self) -> Dsn {
        Dsn::parse(SourceKind::Mysql, self.dsn).unwrap()
    }

    fn store(&self) -> Arc<dyn Store> {
        store(self.dsn(), StoreOptions::default())
    }

    async fn count(&self, store: &dyn Store, plan: &AuthorizedPlan) -> usize {
        let rows = all(store, plan, &patient()).await;
        let rows = rows.unwrap_or_else(|error| panic!("{}: {error:?}", self.case));
        rows.len()
    }

    /// Reads, changes the rows that were read, and checks that a second read is fresh.
    async fn assert_fresh_after(&self, first: &AuthorizedPlan) {
        self.execute(
            "REPLACE INTO things VALUES (1, 'one', '2024-05-06 07:08:09'), \
             (2, 'two', '2024-05-06 23:08:09'), (3, 'three', NULL)",
        )
        .await;
        let (case, store) = (&self.case, self.store());
        assert_eq!(self.count(store.as_ref(), first).await, 3, "{case}");
        let rows = of_all(&self.served, "things");
        assert_eq!(self.count(store.as_ref(), &rows).await, 3, "{case}");
        self.execute("DELETE FROM things WHERE id = 1").await;
        assert_eq!(self.count(store.as_ref(), &rows).await, 2, "{case}");
        assert_eq!(self.count(store.as_ref(), first).await, 2, "{case}");
        // The statement would wait for any transaction that has read the table.
        self.execute("SET lock_wait_timeout = 2; ALTER TABLE things COMMENT 'altered'")
            .await;
        let writing = of_all(&self.served, "writing");
        let refused = all(store.as_ref(), &writing, &patient()).await;
        assert!(refused.is_err(), "{case}: a view has written");
        store.close().await;
    }

    async fn tables(&self) -> usize {
        let source = open(self.dsn(), Limits::default());
        let catalogue = source
            .introspect(&IntrospectOptions::default(), &ignore_progress)
            .await;
        catalogue.unwrap().tables.len()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_of_now_and_no_transaction_outlives_it_whatever_the_server_is_set_to() {
    for (engine, server) in servers().await {
        let (database, dsn) = for_a_reader(&server, &schema()).await;
        let fields: &[(&str, &str)] = &[("word", "string"), ("at", "datetime")];
        let streams = [("things", fields), ("writing", &[("word", "integer")])];
        let mut setup = Setup {
            server: &server,
            database: &database,
            dsn: &dsn,
            served: ServedMapping::new(&mapping(SourceKind::Mysql, &streams)).unwrap(),
            case: String::new(),
        };
        let tables = setup.tables().await;
        assert!(tables >= TABLES, "{engine}: {tables}");
        for (set, reset) in SETTINGS {
            setup.case = format!("{engine}, {set}");
            setup.execute(set).await;
            let rows = of_all(&setup.served, "things");
            setup.assert_fresh_after(&rows).await;
            setup.assert_fresh_after(&by_day(&setup.served)).await;
            assert_eq!(setup.tables().await, tables, "{}", setup.case);
            setup.execute(reset).await;
        }
        let written = "SELECT count(*) FROM log";
        assert_eq!(
            server.number(&database, written).await.unwrap(),
            0,
            "{engine}"
        );
    }
}
