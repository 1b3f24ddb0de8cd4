//! `wayleave propose --samples` on every kind of store.

use wayleave_test::fixture::Dialect;

use crate::session::Session;
use crate::stores::{dsn_of, kind};

/// Orders in two states, with columns of a secret, a name and personal data.
fn orders() -> String {
    let row = |n: usize| {
        let status = ["open", "paid"][n % 2];
        format!(
            "({n}, '{status}', 'Ana', 'hunter2', 'a{}@example.com')",
            n % 3
        )
    };
    let rows: Vec<String> = (0..150).map(row).collect();
    format!(
        "CREATE TABLE orders (id integer PRIMARY KEY, status varchar(20), customer_name varchar(20), \
         password varchar(20), contact varchar(40));
         INSERT INTO orders VALUES {};",
        rows.join(", ")
    )
}

async fn declared(dialect: Dialect, sql: &str) -> Session {
    let mut session = Session::in_project();
    let dsn = dsn_of(&session, dialect, "sampled", sql).await;
    session.set("STORE_DSN", &dsn);
    let kind = kind(dialect);
    let add = [
        "source",
        "add",
        "shop",
        "--kind",
        kind,
        "--env",
        "STORE_DSN",
    ];
    session.run(&add).exits(0);
    session
}

async fn check(dialect: Dialect) {
    let session = declared(dialect, &orders()).await;
    let plain = session.run(&["propose", "shop", "--stdout"]).exits(0);
    assert!(!plain.all().contains("one_of"), "{}", plain.all());
    let shown = session
        .run(&["propose", "shop", "--samples", "--stdout"])
        .exits(0)
        .says("sampled 2 text columns: the values in `one_of` are stored data");
    assert!(shown.stdout.contains("one_of = [\"open\", \"paid\"]"));
    assert!(!shown.stdout.contains("sampled 2"));
    let wrote = session.run(&["propose", "shop", "--samples"]).exits(0);
    assert!(
        wrote.stdout.contains("and the draft holds them"),
        "{}",
        wrote.stdout
    );
    for secret in ["hunter2", "Ana", "example.com"] {
        assert!(!shown.all().contains(secret) && !wrote.all().contains(secret));
    }
    for words in [&["ratify", "shop"][..], &["connect", "shop"]] {
        session.run(words).exits(0);
    }
    session.run(&["schema", "orders"]).exits(0).says("paid");
    session
        .run(&["query", "orders", "--filter", r#"{"status": "opne"}"#])
        .exits(2)
        .says("open");
    let again = session.run(&["propose", "shop", "--samples", "--json"]);
    let document = again.exits(0).document();
    assert_eq!(document["is_unchanged"], true);
    assert_eq!(document["samples"]["columns"], 2);
    assert_eq!(document["samples"]["unsampled"], serde_json::json!([]));
}

#[tokio::test]
async fn samples_become_closed_lists_on_sqlite() {
    check(Dialect::Sqlite).await;
}

#[tokio::test]
async fn samples_become_closed_lists_on_postgres() {
    check(Dialect::Postgres).await;
}

#[tokio::test]
async fn samples_become_closed_lists_on_mariadb() {
    check(Dialect::Mysql).await;
}

#[tokio::test]
async fn a_draft_over_several_sources_says_that_only_one_was_read() {
    let session = declared(Dialect::Sqlite, &orders()).await;
    session.run(&["propose", "shop"]).exits(0);
    let draft = session.read("mappings/shop.toml");
    let other = "\n[[connections]]\nid = \"shop-us\"\nsource = \"shop_us\"\n";
    session.write("mappings/shop.toml", draft + other);
    session
        .run(&["propose", "shop", "--samples"])
        .exits(0)
        .says("the draft's other sources may hold more, and were not read");
}

#[tokio::test]
async fn columns_beyond_the_hundredth_and_unreadable_ones_are_named() {
    let columns: Vec<String> = (0..104).map(|n| format!("kind_{n}_of text")).collect();
    let sql = format!(
        "CREATE TABLE wide (id integer PRIMARY KEY, {});
         INSERT INTO wide (id, kind_0_of) VALUES (1, x'ff');",
        columns.join(", ")
    );
    let session = declared(Dialect::Sqlite, &sql).await;
    session
        .run(&["propose", "shop", "--samples"])
        .exits(0)
        .says("sampled 99 text columns")
        .says("not sampled:")
        .says("`wide`.`kind_0_of`")
        .says("could not be read")
        .says("`wide`.`kind_103_of`")
        .says("more columns than are sampled at once");
}
