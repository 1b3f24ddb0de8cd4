//! Every store answers as the reference interpreter does, byte for byte.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::panic,
    clippy::format_push_string,
    reason = "tests"
)]

mod stores;

use stores::{Loaded, fixture_sql};
use wayleave_model::mapping::SourceKind;
use wayleave_store::conformance::{ConformanceError, Exclusion, Options, run};

/// A share of the requests on every run, all of them with `WAYLEAVE_FULL=1`.
fn requests() -> usize {
    if std::env::var_os("WAYLEAVE_FULL").is_some_and(|it| it == "1") {
        20_000
    } else {
        600
    }
}

async fn conforms(kind: SourceKind, exclusions: &[Exclusion]) {
    let loaded = Loaded::with_fixture(kind).await;
    conforms_as(loaded, exclusions).await;
}

async fn conforms_as(loaded: Loaded, exclusions: &[Exclusion]) {
    let kind = loaded.kind;
    let store = loaded.store();
    let options = Options {
        requests: requests(),
        seed: 1,
    };
    match run(store.as_ref(), options, exclusions).await {
        Ok(report) => println!("{kind}: {report:?}"),
        Err(error) => {
            let source = std::error::Error::source(&error);
            panic!("{kind}: {error}\n{source:?}")
        }
    }
    store.close().await;
}

#[tokio::test]
async fn sqlite_conforms() {
    conforms(SourceKind::Sqlite, &[]).await;
}

/// What SQLite compares are the bytes it holds.
#[tokio::test]
async fn sqlite_with_texts_of_utf_16_conforms() {
    let sql = fixture_sql(SourceKind::Sqlite);
    // The fixture writes texts by their bytes, which such a file would take for others.
    let mut texts = sql.split("CAST(x'");
    let mut plain = format!("PRAGMA encoding = 'UTF-16le'; {}", texts.next().unwrap());
    for text in texts {
        let (digits, rest) = text.split_once("' AS TEXT)").unwrap();
        let bytes = (0..digits.len()).step_by(2);
        let bytes = bytes.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
        let text = String::from_utf8(bytes.collect()).unwrap();
        plain.push_str(&format!("'{}'{rest}", text.replace('\'', "''")));
    }
    plain.push_str(&indexes());
    conforms_as(Loaded::new(SourceKind::Sqlite, &plain).await, &[]).await;
}

/// An index lets SQLite take other ways through a table.
#[tokio::test]
async fn sqlite_with_indexes_conforms() {
    let loaded = Loaded::with_fixture(SourceKind::Sqlite).await;
    loaded.execute(&indexes()).await;
    conforms_as(loaded, &[]).await;
}

/// An index of every column that may have one.
fn indexes() -> String {
    let table = "\"the \"\"samples` '\"";
    let mut sql = String::new();
    for (number, columns) in [
        "at",
        "stamp",
        "status, at",
        "\"na\"\"me\"",
        "\"wo`rd ?\"",
        "token",
        "\"select\"",
        "big",
        "amount",
        "ratio",
        "day",
    ]
    .iter()
    .enumerate()
    {
        sql.push_str(&format!("CREATE INDEX by_{number} ON {table} ({columns});"));
    }
    sql
}

#[tokio::test]
async fn postgres_conforms() {
    conforms(SourceKind::Postgres, &[]).await;
}

#[tokio::test]
async fn mariadb_conforms() {
    conforms(SourceKind::Mysql, &[]).await;
}

#[tokio::test]
async fn mysql_conforms() {
    if let Some(loaded) = Loaded::with_fixture_on_mysql().await {
        conforms_as(loaded, &[]).await;
    }
}

#[tokio::test]
async fn an_exclusion_that_nothing_needs_fails_the_suite() {
    let loaded = Loaded::with_fixture(SourceKind::Sqlite).await;
    let store = loaded.store();
    let exclusion = Exclusion {
        reason: "there is none",
        applies: |_| true,
    };
    let options = Options {
        requests: 20,
        seed: 2,
    };
    let outcome = run(store.as_ref(), options, &[exclusion]).await;
    assert!(
        matches!(outcome, Err(ConformanceError::Unneeded { .. })),
        "{outcome:?}"
    );
    store.close().await;
}

#[tokio::test]
async fn a_store_with_one_other_value_does_not_conform() {
    let loaded = Loaded::with_fixture(SourceKind::Sqlite).await;
    loaded
        .execute("UPDATE parts SET weight = 7 WHERE sample_id = -20")
        .await;
    let store = loaded.store();
    let options = Options {
        requests: 200,
        seed: 3,
    };
    let outcome = run(store.as_ref(), options, &[]).await;
    assert!(
        matches!(outcome, Err(ConformanceError::Differs { .. })),
        "{outcome:?}"
    );
    store.close().await;
}
