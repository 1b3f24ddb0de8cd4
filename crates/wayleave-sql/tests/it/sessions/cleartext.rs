//! A server that impersonates the database does not receive the password.
//!
//! `0.0.0.0` reaches this machine but is not a loopback address, so it stands for a remote host.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use wayleave_model::mapping::SourceKind;
use wayleave_sql::{Dsn, open};
use wayleave_store::{Limits, StoreError};

const PASSWORD: &str = "S3cr3t-of-the-database";

/// Starts a server that accepts sessions in sequence, and returns all bytes it received.
async fn posing<F>(pose: fn(TcpStream) -> F) -> (u16, JoinHandle<Vec<u8>>)
where
    F: Future<Output = Vec<u8>> + Send + 'static,
{
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let hearing = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        pose(stream).await
    });
    (port, hearing)
}

/// Reads everything until the client waits or disconnects.
async fn hear(stream: &mut TcpStream, heard: &mut Vec<u8>) {
    let mut bytes = [0; 4_096];
    let count = stream.read(&mut bytes).await.unwrap_or(0);
    heard.extend_from_slice(&bytes[..count]);
}

/// A PostgreSQL server without TLS that requests the password in clear text.
async fn postgres_that_asks(mut stream: TcpStream) -> Vec<u8> {
    let mut heard = Vec::new();
    hear(&mut stream, &mut heard).await;
    if heard.starts_with(b"\0\0\0\x08\x04\xd2\x16\x2f") {
        stream.write_all(b"N").await.unwrap();
        hear(&mut stream, &mut heard).await;
    }
    let _ = stream.write_all(b"R\0\0\0\x08\0\0\0\x03").await;
    hear(&mut stream, &mut heard).await;
    heard
}

/// A MySQL server without TLS that would request the password encrypted with its own key.
async fn mysql_that_asks(mut stream: TcpStream) -> Vec<u8> {
    let mut greeting = b"\x0a9.7.0\0\x01\0\0\0abcdefgh\0".to_vec();
    // Protocol 4.1, secure connections, plugins; no TLS.
    greeting.extend_from_slice(b"\x01\x82\x21\x02\0\x08\0\x15\0\0\0\0\0\0\0\0\0\0");
    greeting.extend_from_slice(b"ijklmnopqrst\0caching_sha2_password\0");
    let length = u8::try_from(greeting.len()).unwrap();
    let packet = [&[length, 0, 0, 0][..], &greeting].concat();
    stream.write_all(&packet).await.unwrap();
    let mut heard = Vec::new();
    hear(&mut stream, &mut heard).await;
    // Full authentication.
    let _ = stream.write_all(b"\x02\0\0\x02\x01\x04").await;
    hear(&mut stream, &mut heard).await;
    heard
}

async fn ping(kind: SourceKind, dsn: &str) -> Result<(), StoreError> {
    open(Dsn::parse(kind, dsn)?, Limits::default()).ping().await
}

fn tells_the_password(heard: &[u8]) -> bool {
    let password = PASSWORD.as_bytes();
    heard.windows(password.len()).any(|part| part == password)
}

#[tokio::test]
async fn a_posing_postgres_is_not_told_the_password() {
    for parameters in [
        "",
        "?sslmode=disable",
        "?sslmode=prefer",
        "?sslmode=require",
    ] {
        let (port, hearing) = posing(postgres_that_asks).await;
        let dsn = format!("postgres://ada:{PASSWORD}@0.0.0.0:{port}/crm{parameters}");
        let error = ping(SourceKind::Postgres, &dsn).await.unwrap_err();
        assert!(
            matches!(error, StoreError::Tls { .. }),
            "{parameters}: {error:?}"
        );
        assert!(!tells_the_password(&hearing.await.unwrap()), "{parameters}");
    }
    // A server that the operator trusts receives the password.
    let (port, hearing) = posing(postgres_that_asks).await;
    let dsn = format!(
        "postgres://ada:{PASSWORD}@0.0.0.0:{port}/crm?sslmode=disable&cleartext_password=allow"
    );
    assert!(ping(SourceKind::Postgres, &dsn).await.is_err());
    assert!(tells_the_password(&hearing.await.unwrap()));
}

#[tokio::test]
async fn a_posing_mysql_is_asked_for_tls_and_told_nothing() {
    let (port, hearing) = posing(mysql_that_asks).await;
    let dsn = format!("mysql://ada:{PASSWORD}@0.0.0.0:{port}/crm");
    let error = ping(SourceKind::Mysql, &dsn).await.unwrap_err();
    assert!(matches!(error, StoreError::Tls { .. }), "{error:?}");
    assert_eq!(hearing.await.unwrap(), b"");
    for mode in ["disable", "prefer", "require"] {
        let (port, hearing) = posing(mysql_that_asks).await;
        let dsn = format!("mysql://ada:{PASSWORD}@0.0.0.0:{port}/crm?sslmode={mode}");
        let error = ping(SourceKind::Mysql, &dsn).await.unwrap_err();
        assert!(
            matches!(error, StoreError::BadDsn { .. }),
            "{mode}: {error:?}"
        );
        hearing.abort();
    }
    // A server that the operator trusts is asked for its key, and would receive the password
    // encrypted with it.
    let (port, hearing) = posing(mysql_that_asks).await;
    let dsn = format!(
        "mysql://ada:{PASSWORD}@0.0.0.0:{port}/crm?sslmode=disable&cleartext_password=allow"
    );
    assert!(ping(SourceKind::Mysql, &dsn).await.is_err());
    let heard = hearing.await.unwrap();
    assert!(heard.ends_with(b"\x01\0\0\x03\x02"), "{heard:?}");
}
