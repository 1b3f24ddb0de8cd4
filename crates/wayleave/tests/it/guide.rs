//! The guides show exactly what the program prints.

use std::path::{Path, PathBuf};

use wayleave_test::fixture::{Dialect, Fixture};
use wayleave_test::{assert_golden, postgres};

use crate::session::Session;

fn guide(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/guide")
        .join(name)
}

/// Runs every line after `$ ` in the guide's `console` blocks, in order and in one session, and
/// compares the output with the guide.
fn check(name: &str, session: &mut Session) {
    let text = std::fs::read_to_string(guide(name)).unwrap();
    let mut retold = String::new();
    let mut inside = false;
    for line in text.lines() {
        if inside {
            if let Some(command) = line.strip_prefix("$ ") {
                session.type_line(command);
            } else if line == "```" {
                inside = false;
                retold.push_str(&session.take_transcript());
                retold.push_str("```\n");
            }
            continue;
        }
        inside = line == "```console";
        retold.push_str(line);
        retold.push('\n');
    }
    assert!(!inside, "a block of {name} has no end");
    assert!(!retold.contains("[exits"), "{retold}");
    assert_golden(guide(name), &retold);
}

#[tokio::test]
async fn a_newcomer_goes_from_nothing_to_a_live_dataset_as_the_guide_says() {
    let server = postgres().await;
    let trade = Fixture::Trade.sql(Dialect::Postgres);
    let database = server.fresh_database("trade", trade).await.unwrap();
    let mut session = Session::new();
    session.keep_sqlite("music.db", Fixture::Music.sql(Dialect::Sqlite));
    session.set("TRADE_DSN", &database.dsn);
    check("first-dataset.md", &mut session);
}

#[test]
fn fields_and_measures_are_computed_as_the_guide_says() {
    let mut session = Session::new();
    let numbers = |most: u32| {
        format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {most})")
    };
    let sql = format!(
        "CREATE TABLE customers (id integer PRIMARY KEY, first_name text NOT NULL, \
           last_name text NOT NULL, country text NOT NULL);
         CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer NOT NULL \
           REFERENCES customers, placed_on date NOT NULL, status text NOT NULL);
         CREATE TABLE lines (id integer PRIMARY KEY, order_id integer NOT NULL REFERENCES orders, \
           price decimal(10, 2) NOT NULL, quantity integer NOT NULL, discount decimal(4, 2) NOT NULL);
         INSERT INTO customers VALUES (1, 'Ana', 'Lind', 'PT'), (2, 'Bo', 'Castellan', 'SE'), \
           (3, 'Chidi', 'Okafor', 'NG'), (4, 'Dagny', 'Holm', 'SE');
         {} INSERT INTO orders SELECT i, 1 + i % 4 % 3, date('2026-01-01', i || ' days'), \
           CASE WHEN i % 3 = 0 OR i % 4 % 3 = 1 THEN 'open' WHEN i % 7 = 0 THEN 'sent' ELSE 'paid' END FROM n;
         {} INSERT INTO lines SELECT i, 1 + i % 120, 10 + i % 9, 1 + i % 4, i % 3 / 10.0 FROM n;",
        numbers(120),
        numbers(300)
    );
    session.keep_sqlite("shop.db", &sql);
    check("computing.md", &mut session);
}

#[test]
fn ratifying_goes_as_the_guide_says() {
    let mut session = Session::new();
    let sql = "CREATE TABLE people (id integer PRIMARY KEY, full_name text NOT NULL, \
               status text NOT NULL, badge text, salary numeric, updated_at datetime);";
    session.keep_sqlite("staff.db", sql);
    check("ratifying.md", &mut session);
}

#[test]
fn grants_and_tokens_go_as_the_guide_says() {
    let mut session = Session::new();
    let sql = "CREATE TABLE people (id integer PRIMARY KEY, full_name text NOT NULL, \
               region text NOT NULL, salary numeric);
               CREATE TABLE offices (id integer PRIMARY KEY, city text NOT NULL);";
    session.keep_sqlite("staff.db", sql);
    session.run(&["init", "staff"]).exits(0);
    session.enter("staff");
    let path = session.home().join("staff.db");
    session.set("STAFF_DSN", path.to_str().unwrap());
    let source = [
        "source",
        "add",
        "staff",
        "--kind",
        "sqlite",
        "--env",
        "STAFF_DSN",
    ];
    for words in [&source[..], &["propose", "staff"], &["ratify", "staff"]] {
        session.run(words).exits(0);
    }
    check("granting.md", &mut session);
}

#[test]
fn clients_are_connected_as_the_guide_says() {
    let mut session = Session::new();
    let sql = "CREATE TABLE orders (id integer PRIMARY KEY, placed_at datetime, total numeric);";
    session.keep_sqlite("shop.db", sql);
    check("connecting.md", &mut session);
}
