//! Session failures: each has its own kind of error, and none reveals a password.

mod cleartext;
mod kill;
mod mysql_settings;
mod pooling;
mod postgres_settings;
mod real_servers;
mod sqlite_files;

use std::error::Error;
use std::time::Duration;

use wayleave_model::mapping::SourceKind;
use wayleave_sql::{Dsn, open};
use wayleave_store::{IntrospectOptions, Limits, StoreError, ignore_progress};
use wayleave_test::fixture::{Dialect, many_tables};
use wayleave_test::{mariadb, postgres, sqlite_file};

const SECRET: &str = "hunter2";

async fn ping(kind: SourceKind, dsn: &str) -> Result<(), StoreError> {
    let limits = Limits {
        connect: Duration::from_secs(5),
        ..Limits::default()
    };
    open(Dsn::parse(kind, dsn).unwrap(), limits).ping().await
}

/// Opens a session that must fail, and returns the error after checking that it contains no secret.
async fn failure(kind: SourceKind, dsn: &str) -> StoreError {
    let error = ping(kind, dsn).await.unwrap_err();
    let mut shown = vec![format!("{error:?} {error:#?} {error} {}", error.hint())];
    let mut cause = error.source();
    while let Some(this) = cause {
        shown.push(format!("{this} {this:?}"));
        cause = this.source();
    }
    let shown = shown.join("\n");
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(!shown.contains(dsn), "{shown}");
    error
}

#[tokio::test]
async fn a_wrong_password_is_denied() {
    let port = postgres().await.endpoint().port;
    let dsn = format!("postgres://wayleave:wrong-{SECRET}@127.0.0.1:{port}/postgres");
    let error = failure(SourceKind::Postgres, &dsn).await;
    assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
    let port = mariadb().await.endpoint().port;
    let dsn = format!("mysql://wayleave:wrong-{SECRET}@127.0.0.1:{port}/mysql");
    let error = failure(SourceKind::Mysql, &dsn).await;
    assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
}

#[tokio::test]
async fn a_missing_database_is_missing() {
    let error = failure(SourceKind::Postgres, &postgres().await.dsn("no_such")).await;
    assert!(matches!(error, StoreError::Missing { .. }), "{error:?}");
    let error = failure(SourceKind::Mysql, &mariadb().await.dsn("no_such")).await;
    assert!(matches!(error, StoreError::Missing { .. }), "{error:?}");
}

#[tokio::test]
async fn a_dead_host_is_unreachable() {
    // The port is bound but does not listen, so the kernel refuses every connection at once.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    for (kind, scheme) in [
        (SourceKind::Postgres, "postgres"),
        (SourceKind::Mysql, "mysql"),
    ] {
        let error = failure(kind, &format!("{scheme}://u:{SECRET}@127.0.0.1:{port}/db")).await;
        assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
        let error = failure(
            kind,
            &format!("{scheme}://u:{SECRET}@no-such-host.invalid/db"),
        )
        .await;
        assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_host_that_says_nothing_is_given_up() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let held = tokio::spawn(async move {
        let mut sessions = Vec::new();
        while let Ok(session) = silent.accept().await {
            sessions.push(session);
        }
    });
    let limits = Limits {
        connect: Duration::from_millis(200),
        ..Limits::default()
    };
    for (kind, scheme) in [
        (SourceKind::Postgres, "postgres"),
        (SourceKind::Mysql, "mysql"),
    ] {
        let dsn = Dsn::parse(kind, &format!("{scheme}://u:{SECRET}@127.0.0.1:{port}/db")).unwrap();
        let error = open(dsn, limits).ping().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the source did not answer in 200 ms while connecting"
        );
    }
    held.abort();
}

#[tokio::test]
async fn a_statement_past_its_time_is_a_timeout_on_every_store() {
    let limits = Limits {
        statement: Duration::from_millis(1),
        ..Limits::default()
    };
    let (_folder, path) = sqlite_file(&many_tables(Dialect::Sqlite, 100)).unwrap();
    let postgres = postgres().await;
    let on_postgres = postgres
        .fresh_database("slow", &many_tables(Dialect::Postgres, 100))
        .await
        .unwrap();
    let mariadb = mariadb().await;
    let on_mariadb = mariadb
        .fresh_database("slow", &many_tables(Dialect::Mysql, 100))
        .await
        .unwrap();
    for (kind, dsn) in [
        (SourceKind::Sqlite, path.to_str().unwrap()),
        (SourceKind::Postgres, &on_postgres.dsn),
        (SourceKind::Mysql, &on_mariadb.dsn),
    ] {
        let source = open(Dsn::parse(kind, dsn).unwrap(), limits);
        let mut errors = Vec::new();
        // PostgreSQL has the same limit for a pause between two statements, and ends the session
        // if this process gets no time within it.
        while errors.len() < 20 && !matches!(errors.last(), Some(StoreError::Timeout { .. })) {
            let found = source
                .introspect(&IntrospectOptions::default(), &ignore_progress)
                .await;
            errors.push(found.unwrap_err());
        }
        let last = errors.pop();
        assert!(
            matches!(last, Some(StoreError::Timeout { .. })),
            "{kind:?}: {last:?}"
        );
        let is_lost = |it: &StoreError| matches!(it, StoreError::Unreachable { .. });
        assert!(
            errors.iter().all(is_lost) && (errors.is_empty() || kind == SourceKind::Postgres),
            "{kind:?}: {errors:?}"
        );
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_told_from_one_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent.db");
    let error = failure(SourceKind::Sqlite, absent.to_str().unwrap()).await;
    assert!(matches!(error, StoreError::Missing { .. }), "{error:?}");
    assert!(!absent.exists(), "a missing file was created");

    let text = folder.path().join("text.db");
    std::fs::write(&text, "name,amount\n".repeat(200)).unwrap();
    let error = failure(SourceKind::Sqlite, text.to_str().unwrap()).await;
    assert!(
        matches!(error, StoreError::NotADatabase { .. }),
        "{error:?}"
    );

    let error = failure(SourceKind::Sqlite, folder.path().to_str().unwrap()).await;
    assert!(
        matches!(error, StoreError::NotADatabase { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn reading_a_file_leaves_its_folder_as_it_was() {
    let (folder, path) = sqlite_file(&many_tables(Dialect::Sqlite, 2)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let source = open(
        Dsn::parse(SourceKind::Sqlite, path.to_str().unwrap()).unwrap(),
        Limits::default(),
    );
    source
        .introspect(&IntrospectOptions::default(), &ignore_progress)
        .await
        .unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn tls_is_asked_for_as_the_dsn_says() {
    let postgres = postgres().await.endpoint();
    let mariadb = mariadb().await.endpoint();
    for (kind, scheme, server, database) in [
        (SourceKind::Postgres, "postgres", postgres, "postgres"),
        (SourceKind::Mysql, "mysql", mariadb, "mysql"),
    ] {
        let dsn = |host: &str, parameters: &str| {
            let (user, password, port) = (server.user, server.password, server.port);
            format!("{scheme}://{user}:{password}@{host}:{port}/{database}?{parameters}")
        };
        let authority = server.certificate.to_str().unwrap();
        let vouched = format!("sslmode=verify-full&sslrootcert={authority}");
        for (host, parameters) in [
            ("127.0.0.1", "sslmode=disable"),
            ("127.0.0.1", "sslmode=prefer"),
            ("127.0.0.1", "sslmode=require"),
            ("localhost", vouched.as_str()),
        ] {
            let answer = ping(kind, &dsn(host, parameters)).await;
            assert!(answer.is_ok(), "{scheme} {host} {parameters}: {answer:?}");
        }
        for (host, parameters) in [
            // A certificate from an unknown authority; one for another name; a missing authority
            // file.
            ("localhost", "sslmode=verify-full"),
            ("127.0.0.1", vouched.as_str()),
            ("localhost", "sslmode=verify-full&sslrootcert=/no/such/file"),
        ] {
            let error = failure(kind, &dsn(host, parameters)).await;
            assert!(
                matches!(error, StoreError::Tls { .. }),
                "{scheme} {host} {parameters}: {error:?}"
            );
        }
    }
}
