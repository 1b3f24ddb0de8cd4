//! Every store gives the same answers as the reference interpreter, byte for byte.

use crate::stores::{LoadedDatabase, fixture_sql, fixture_sql_of};
use wayleave_model::mapping::SourceKind;
use wayleave_store::conformance::fixture::{Malformed, malformed_rows};
use wayleave_store::conformance::{
    ConformanceError, Exclusion, Options, run, run_malformed, run_questions,
};

/// Number of requests: a share of them by default, all with `WAYLEAVE_FULL=1`.
fn requests() -> usize {
    if wayleave_test::is_full() {
        20_000
    } else {
        600
    }
}

async fn conforms(kind: SourceKind, exclusions: &[Exclusion]) {
    let loaded = LoadedDatabase::with_fixture(kind).await;
    conforms_as(loaded, exclusions).await;
}

async fn conforms_as(loaded: LoadedDatabase, exclusions: &[Exclusion]) {
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

/// Questions over relations, computed fields and measures.
async fn answers_questions(loaded: LoadedDatabase, exclusions: &[Exclusion]) {
    let kind = loaded.kind;
    let store = loaded.store();
    let options = Options {
        requests: requests(),
        seed: 16,
    };
    match run_questions(store.as_ref(), options, exclusions).await {
        Ok(report) => println!("{kind}: {report:?}"),
        Err(error) => {
            let source = std::error::Error::source(&error);
            panic!("{kind}: {error}\n{source:?}")
        }
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_answers_analysts_as_the_interpreter_does() {
    answers_questions(LoadedDatabase::with_fixture(SourceKind::Sqlite).await, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_answers_analysts_as_the_interpreter_does() {
    answers_questions(
        LoadedDatabase::with_fixture(SourceKind::Postgres).await,
        &[],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mariadb_answers_analysts_as_the_interpreter_does() {
    answers_questions(LoadedDatabase::with_fixture(SourceKind::Mysql).await, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mysql_answers_analysts_as_the_interpreter_does() {
    if let Some(loaded) = LoadedDatabase::with_fixture_on_mysql().await {
        answers_questions(loaded, &[]).await;
    }
}

/// Values that are not of their mapped datatype, in as many forms as each store can hold.
const SQLITE: &[Malformed] = &[
    Malformed {
        field: "active",
        literals: &[
            "'no'", "'No'", "'off'", "'nein'", "''", "' '", "x'00'", "x'01'",
        ],
    },
    Malformed {
        field: "day",
        literals: &[
            "'12/31/2031'",
            "''",
            "20250101",
            "'2024-02-30'",
            "'garbage'",
            "x'ff'",
            "-1.5",
        ],
    },
    Malformed {
        field: "at",
        literals: &[
            "'garbage'",
            "'2024-05-05 nonsense'",
            "'2024-05-05T99:99:99Z'",
            "1e300",
            "1714979289000",
            "x'00'",
            "''",
            "'12/31/2031'",
        ],
    },
    Malformed {
        field: "stamp",
        literals: &["'garbage'", "'2024-99-05 00:00:00'", "1e300", "x'00'", "''"],
    },
    Malformed {
        field: "small",
        literals: &[
            "'unknown'",
            "'n/a'",
            "'1?'",
            "''",
            "x'31'",
            "3.5",
            "1e300",
            "-9e999",
        ],
    },
    Malformed {
        field: "big",
        literals: &["'x'", "x'01'", "0.5", "1e19"],
    },
    Malformed {
        field: "amount",
        literals: &["'n/a'", "x'01'", "9e999", "''", "'1.2.3'"],
    },
    Malformed {
        field: "price",
        literals: &["'n/a'", "'1.2.3'", "''", "x'31'"],
    },
    Malformed {
        field: "ratio",
        literals: &["'abc'", "'nan'", "9e999", "-9e999", "x'00'", "''"],
    },
    Malformed {
        field: "data",
        literals: &["'{broken'", "x'7b7d'"],
    },
];

const POSTGRES: &[Malformed] = &[
    Malformed {
        field: "day",
        literals: &["'infinity'", "'-infinity'"],
    },
    Malformed {
        field: "at",
        literals: &["'infinity'", "'-infinity'"],
    },
    Malformed {
        field: "stamp",
        literals: &["'infinity'", "'-infinity'"],
    },
    Malformed {
        field: "amount",
        literals: &["'NaN'"],
    },
    Malformed {
        field: "price",
        literals: &["'NaN'"],
    },
    Malformed {
        field: "ratio",
        literals: &["'NaN'", "'Infinity'", "'-Infinity'"],
    },
];

const MYSQL: &[Malformed] = &[
    Malformed {
        field: "day",
        literals: &[
            "'0000-00-00'",
            "'2024-00-00'",
            "'2023-05-00'",
            "'2023-02-30'",
        ],
    },
    Malformed {
        field: "at",
        literals: &[
            "'0000-00-00 00:00:00'",
            "'2023-05-00 10:00:00'",
            "'2024-00-10 00:00:00'",
            "'2023-02-30 00:00:00'",
        ],
    },
    Malformed {
        field: "stamp",
        literals: &["'0000-00-00 00:00:00'"],
    },
];

fn malformed(kind: SourceKind) -> &'static [Malformed] {
    match kind {
        SourceKind::Sqlite => SQLITE,
        SourceKind::Postgres => POSTGRES,
        _ => MYSQL,
    }
}

/// Loads the suite's records with malformed values among them.
async fn loaded_malformed(kind: SourceKind) -> LoadedDatabase {
    LoadedDatabase::new(kind, &malformed_sql(kind)).await
}

fn malformed_sql(kind: SourceKind) -> String {
    let lax = match kind {
        SourceKind::Mysql => "SET sql_mode = 'ALLOW_INVALID_DATES';\n",
        _ => "",
    };
    let sql = fixture_sql_of(kind, &malformed_rows(malformed(kind)));
    format!("{lax}{sql}")
}

async fn holds_grants(loaded: LoadedDatabase) {
    let kind = loaded.kind;
    let store = loaded.store();
    let options = Options {
        requests: requests(),
        seed: 1,
    };
    match run_malformed(store.as_ref(), options, malformed(kind)).await {
        Ok(report) => println!("{kind}: {report:?}"),
        Err(error) => {
            let source = std::error::Error::source(&error);
            panic!("{kind}: {error}\n{source:?}")
        }
    }
    store.close().await;
}

#[tokio::test]
async fn a_grant_in_sqlite_holds_only_for_values_of_their_datatype() {
    holds_grants(loaded_malformed(SourceKind::Sqlite).await).await;
}

#[tokio::test]
async fn a_grant_in_sqlite_with_indexes_holds_only_for_values_of_their_datatype() {
    let loaded = loaded_malformed(SourceKind::Sqlite).await;
    loaded.execute(&indexes()).await;
    holds_grants(loaded).await;
}

#[tokio::test]
async fn a_grant_in_postgres_holds_only_for_values_of_their_datatype() {
    holds_grants(loaded_malformed(SourceKind::Postgres).await).await;
}

#[tokio::test]
async fn a_grant_in_mariadb_holds_only_for_values_of_their_datatype() {
    holds_grants(loaded_malformed(SourceKind::Mysql).await).await;
}

#[tokio::test]
async fn a_grant_in_mysql_holds_only_for_values_of_their_datatype() {
    if let Some(loaded) = LoadedDatabase::on_mysql(&malformed_sql(SourceKind::Mysql)).await {
        holds_grants(loaded).await;
    }
}

#[tokio::test]
async fn sqlite_conforms() {
    conforms(SourceKind::Sqlite, &[]).await;
}

/// SQLite compares texts by their stored bytes.
#[tokio::test]
async fn sqlite_with_texts_of_utf_16_conforms() {
    let sql = fixture_sql(SourceKind::Sqlite);
    // The fixture writes texts as UTF-8 bytes, which a UTF-16 file would read as other texts.
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
    conforms_as(LoadedDatabase::new(SourceKind::Sqlite, &plain).await, &[]).await;
}

/// Indexes make SQLite choose other query plans.
#[tokio::test]
async fn sqlite_with_indexes_conforms() {
    let loaded = LoadedDatabase::with_fixture(SourceKind::Sqlite).await;
    loaded.execute(&indexes()).await;
    conforms_as(loaded, &[]).await;
}

/// Creates an index on every column that may have one.
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
    if let Some(loaded) = LoadedDatabase::with_fixture_on_mysql().await {
        conforms_as(loaded, &[]).await;
    }
}

#[tokio::test]
async fn an_exclusion_that_nothing_needs_fails_the_suite() {
    let loaded = LoadedDatabase::with_fixture(SourceKind::Sqlite).await;
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
    let loaded = LoadedDatabase::with_fixture(SourceKind::Sqlite).await;
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
