//! Every store answers as the reference interpreter does, byte for byte.
#![allow(clippy::print_stdout, clippy::panic, reason = "tests")]

mod stores;

use stores::Loaded;
use wayleave_model::mapping::SourceKind;
use wayleave_store::conformance::{Exclusion, Options, run};

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

#[tokio::test]
async fn postgres_conforms() {
    conforms(SourceKind::Postgres, &[]).await;
}

#[tokio::test]
async fn mariadb_conforms() {
    conforms(SourceKind::Mysql, &[]).await;
}
