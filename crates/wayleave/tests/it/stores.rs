//! Every kind of store, end to end: unusual, large and drifting schemas.

use std::time::Instant;

use wayleave_test::fixture::{Dialect, Fixture, many_tables};
use wayleave_test::{mariadb, postgres};

use crate::session::Session;

pub(crate) async fn dsn_of(session: &Session, dialect: Dialect, name: &str, sql: &str) -> String {
    match dialect {
        Dialect::Sqlite => {
            let path = session.keep_sqlite("store.db", sql);
            path.to_str().unwrap().to_owned()
        }
        Dialect::Postgres => {
            postgres()
                .await
                .fresh_database(name, sql)
                .await
                .unwrap()
                .dsn
        }
        Dialect::Mysql => mariadb().await.fresh_database(name, sql).await.unwrap().dsn,
    }
}

pub(crate) fn kind(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "sqlite",
        Dialect::Postgres => "postgres",
        Dialect::Mysql => "mysql",
    }
}

/// Makes a live dataset from a DSN, checking that all output is safe for a terminal.
async fn walk(dialect: Dialect, name: &str, sql: &str) -> Session {
    let mut session = Session::in_project();
    let dsn = dsn_of(&session, dialect, name, sql).await;
    session.set("STORE_DSN", &dsn);
    let start = Instant::now();
    let kind = kind(dialect);
    for words in [
        &[
            "source",
            "add",
            "store",
            "--kind",
            kind,
            "--env",
            "STORE_DSN",
        ][..],
        &["source", "test", "store"],
        &["introspect", "store"],
        &["propose", "store"],
        &["check", "--live"],
        &["ratify", "store"],
        &["connect", "store"],
        &["doctor"],
    ] {
        let ran = session.run(words).exits(0);
        let fit = |c: char| c == '\n' || c == '\t' || !c.is_control();
        assert!(
            ran.all().chars().all(fit),
            "{words:?} printed {:?}",
            ran.all()
        );
    }
    eprintln!("{kind} {name}: init to live in {:?}", start.elapsed());
    session
}

#[tokio::test]
async fn the_ugliest_schema_becomes_a_live_dataset_on_sqlite() {
    walk(Dialect::Sqlite, "ugly", Fixture::Ugly.sql(Dialect::Sqlite)).await;
}

#[tokio::test]
async fn the_ugliest_schema_becomes_a_live_dataset_on_postgres() {
    walk(
        Dialect::Postgres,
        "ugly",
        Fixture::Ugly.sql(Dialect::Postgres),
    )
    .await;
}

#[tokio::test]
async fn the_ugliest_schema_becomes_a_live_dataset_on_mariadb() {
    walk(Dialect::Mysql, "ugly", Fixture::Ugly.sql(Dialect::Mysql)).await;
}

#[tokio::test]
async fn four_hundred_tables_become_a_live_dataset_on_sqlite() {
    walk(Dialect::Sqlite, "many", &many_tables(Dialect::Sqlite, 400)).await;
}

#[tokio::test]
async fn four_hundred_tables_become_a_live_dataset_on_postgres() {
    walk(
        Dialect::Postgres,
        "many",
        &many_tables(Dialect::Postgres, 400),
    )
    .await;
}

#[tokio::test]
async fn a_table_renamed_after_ratification_is_drift_everywhere_and_connects_nowhere() {
    let sql = "CREATE TABLE people (id integer PRIMARY KEY, name text NOT NULL);";
    let session = walk(Dialect::Postgres, "drift", sql).await;
    let database = {
        let dsn = session.variable("STORE_DSN");
        dsn.rsplit('/').next().unwrap().to_owned()
    };
    let rename = "ALTER TABLE people RENAME COLUMN name TO label";
    postgres().await.execute(&database, rename).await.unwrap();

    session.run(&["check"]).exits(0);
    session
        .run(&["check", "--live"])
        .exits(1)
        .says("renamed_column")
        .says("`label`")
        .says("mappings/store.toml (store)");
    session
        .run(&["connect", "store"])
        .exits(1)
        .says("was not connected");
    session
        .run(&["doctor"])
        .exits(1)
        .says("dataset store, connection store");
    session.write(
        "mappings/store.toml",
        session.read("mappings/store.toml") + "# edited\n",
    );
    session
        .run(&["ratify", "store"])
        .exits(1)
        .says("nothing was ratified");
    session.run(&["ratify", "store", "--offline"]).exits(0);
    session.run(&["datasets"]).exits(0).says("is still live");

    // Proposing again reports the change, keeps the wording of the draft, and corrects nothing by
    // itself.
    session
        .run(&["propose", "store"])
        .exits(0)
        .says("column `label` of `people` is new")
        .says("is gone");
    assert!(session.read("mappings/store.toml").contains("# edited"));

    // A corrected mapping is ratified while the old one is still served: `doctor` compares the
    // latter.
    session
        .run(&["propose", "store", "--dataset", "store", "--fit"])
        .exits(0);
    session.run(&["ratify", "store"]).exits(0);
    session
        .run(&["doctor"])
        .exits(1)
        .says("dataset store, connection store")
        .says("`name`");
    session.run(&["connect", "store"]).exits(0);
    session.run(&["doctor"]).exits(0);
}

#[test]
fn a_source_that_is_not_there_is_told_with_what_to_do() {
    let mut session = Session::with_draft();
    session.set("MUSIC_DSN", "/nowhere/music.db");
    session
        .run(&["source", "test", "music"])
        .exits(1)
        .says("does not exist")
        .says("hint:");
    session
        .run(&["introspect", "music"])
        .exits(2)
        .says("does not exist");
    session
        .run(&["ratify", "music"])
        .exits(1)
        .says("does not exist");
    session
        .run(&["introspect", "musik"])
        .exits(2)
        .says("did you mean `music`?");
    session.run(&["source", "remove", "music"]).exits(0);
    session
        .run(&["check", "--live"])
        .exits(1)
        .says("no source `music` is declared");
}

#[test]
fn a_dsn_may_come_from_a_file_that_a_variable_names() {
    let mut session = Session::with_draft();
    let path = session.home().join("music.db");
    session.write("dsn", format!("{}\n", path.display()));
    session.unset("MUSIC_DSN");
    session
        .run(&["source", "test", "music"])
        .exits(2)
        .says("`MUSIC_DSN` is not set");
    let file = session.here().join("dsn");
    session.set("MUSIC_DSN_FILE", file.to_str().unwrap());
    session.run(&["source", "test", "music"]).exits(0);
}

#[test]
fn a_draft_is_brought_up_to_date_only_with_what_it_was_made_from() {
    let mut session = Session::with_draft();
    session.set(
        "OTHER_DSN",
        session.home().join("music.db").to_str().unwrap(),
    );
    session
        .run(&[
            "source",
            "add",
            "other",
            "--kind",
            "sqlite",
            "--env",
            "OTHER_DSN",
        ])
        .exits(0);
    session
        .run(&["propose", "other", "--dataset", "music"])
        .exits(2)
        .says("reads source `music`, and not `other`");
    let before = session.read("mappings/music.toml");
    let shown = session.run(&["propose", "other", "--stdout"]).exits(0);
    assert!(shown.stdout.contains("name = \"other\""));
    assert!(!session.here().join("mappings/other.toml").exists());
    assert_eq!(session.read("mappings/music.toml"), before);
}

#[tokio::test]
async fn the_sql_for_triggers_installs_whatever_the_tables_are_called() {
    let ugly = Fixture::Ugly.sql(Dialect::Postgres);
    let hostile = "CREATE TABLE \"a\"\"; DROP TABLE kept; --\" (id integer PRIMARY KEY, name text); \
        CREATE TABLE kept (id integer PRIMARY KEY, \"$wayleave$\" text); \
        CREATE VIEW seen AS SELECT * FROM kept;";
    let session = walk(Dialect::Postgres, "announced", &format!("{ugly}{hostile}")).await;
    let database = session.variable("STORE_DSN").rsplit('/').next().unwrap();
    let server = postgres().await;
    let ran = session.run(&["source", "triggers", "store", "--json"]);
    let document = ran.exits(0).document();
    let tables = document["tables"].as_array().unwrap().len();
    let sql = document["sql"].as_str().unwrap();
    // Run twice, as an operator may do who is not sure.
    for settings in ["", "SET standard_conforming_strings = off;"] {
        let script = format!("{settings}{sql}");
        server.execute(database, &script).await.unwrap();
    }
    let installed = "SELECT count(*) FROM pg_trigger WHERE tgname = 'wayleave_changes'";
    let installed = server.number(database, installed).await.unwrap();
    assert_eq!(usize::try_from(installed).unwrap(), tables);
    let kept = "SELECT count(*) FROM kept";
    assert_eq!(server.number(database, kept).await.unwrap(), 0);
    let draft = session.read("mappings/store.toml");
    let viewed = draft.replace("table = \"kept\"", "table = \"seen\"");
    session.write("mappings/store.toml", viewed);
    session.run(&["ratify", "store"]).exits(0);
    session
        .run(&["source", "triggers", "store"])
        .exits(0)
        .says("`seen` is a view");
    let one = ["source", "triggers", "store", "--table", "public.part 1"];
    session.run(&one).exits(0).says("ON \"public\".\"part 1\"");
}

#[tokio::test]
async fn only_postgres_announces_changes() {
    let sql = "CREATE TABLE people (id integer PRIMARY KEY);";
    let session = walk(Dialect::Sqlite, "quiet", sql).await;
    session
        .run(&["source", "triggers", "store"])
        .exits(2)
        .says("only PostgreSQL announces changes");
}
