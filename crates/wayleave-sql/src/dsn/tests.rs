use std::path::PathBuf;

use secrecy::ExposeSecret as _;

use super::*;
use crate::postgres::dsn::parse as server_of;
use crate::sqlite::dsn::SqliteFile;

fn server(text: &str) -> Server {
    server_of(text).unwrap()
}

#[test]
fn a_server_dsn_is_read_in_full() {
    let server = server("postgresql://ada:p%40ss%2Fword@db.example:6000/my%20crm?sslmode=require");
    assert!(
        server.address
            == ServerAddress::Tcp {
                host: "db.example".into(),
                port: 6000
            }
    );
    assert_eq!(server.user.as_deref(), Some("ada"));
    assert_eq!(server.password.unwrap().expose_secret(), "p@ss/word");
    assert_eq!(server.database.as_deref(), Some("my crm"));
    assert_eq!(server.tls, TlsMode::Require);
}

#[test]
fn addresses_sockets_and_defaults_are_read() {
    assert!(
        server("postgres://[::1]/x").address
            == ServerAddress::Tcp {
                host: "::1".into(),
                port: 5432
            }
    );
    let local = server("postgres:///x?socket=/run/postgresql");
    assert!(
        local.address
            == ServerAddress::Socket {
                path: "/run/postgresql".into(),
                port: 5432
            }
    );
    assert_eq!(local.tls, TlsMode::Prefer);
}

#[test]
fn beyond_this_machine_a_server_proves_who_it_is_unless_the_dsn_says_otherwise() {
    for (text, tls, guards_password) in [
        ("postgres://u:p@db.example/x", TlsMode::VerifyFull, false),
        ("postgres://u:p@0.0.0.0/x", TlsMode::VerifyFull, false),
        ("postgres://u:p@10.0.0.1/x", TlsMode::VerifyFull, false),
        (
            "postgres://u:p@db.example/x?sslmode=disable",
            TlsMode::Disable,
            true,
        ),
        (
            "postgres://u:p@db.example/x?sslmode=prefer",
            TlsMode::Prefer,
            true,
        ),
        (
            "postgres://u:p@db.example/x?sslmode=require",
            TlsMode::Require,
            true,
        ),
        (
            "postgres://u:p@db.example/x?sslmode=require&cleartext_password=allow",
            TlsMode::Require,
            false,
        ),
        ("postgres://u:p@localhost/x", TlsMode::Prefer, false),
        ("postgres://u:p@127.0.0.9/x", TlsMode::Prefer, false),
        ("postgres://u:p@[::1]/x", TlsMode::Prefer, false),
        (
            "postgres://u:p@localhost/x?sslrootcert=/ca.pem",
            TlsMode::VerifyFull,
            false,
        ),
    ] {
        let server = server(text);
        assert_eq!(
            (server.tls, server.guards_password()),
            (tls, guards_password),
            "{text}"
        );
    }
}

#[test]
fn a_mysql_password_goes_only_where_the_server_is_known() {
    let parse = |text: &str| Dsn::parse(SourceKind::Mysql, text);
    for mode in ["disable", "prefer", "require"] {
        let refused = parse(&format!("mysql://u:hunter2@db.example/x?sslmode={mode}"));
        assert!(
            matches!(refused, Err(StoreError::BadDsn { .. })),
            "{mode}: {refused:?}"
        );
        for allowed in [
            format!("mysql://u:p@db.example/x?sslmode={mode}&cleartext_password=allow"),
            format!("mysql://u@db.example/x?sslmode={mode}"),
            format!("mysql://u:p@127.0.0.1/x?sslmode={mode}"),
        ] {
            assert!(parse(&allowed).is_ok(), "{allowed}");
        }
    }
    assert!(parse("mysql://u:p@db.example/x").is_ok());
}

#[test]
fn a_sqlite_dsn_is_a_path() {
    for (text, path, immutable) in [
        ("data/my.db", "data/my.db", false),
        ("sqlite:data/my.db", "data/my.db", false),
        ("sqlite:///var/my%20data.db", "/var/my data.db", false),
        ("sqlite:///var/x.db?immutable=1", "/var/x.db", true),
        ("/var/what?.db", "/var/what?.db", false),
    ] {
        let file = SqliteFile::parse(text).unwrap();
        assert_eq!(
            (file.path, file.immutable),
            (PathBuf::from(path), immutable),
            "{text}"
        );
    }
}

#[test]
fn a_bad_dsn_is_refused_without_quoting_any_of_it() {
    for text in [
        "",
        "hunter2",
        "mysql://u:hunter2@h/db",
        "postgres://u:hunter2@h/db#x",
        "postgres://u:hunter2@h/a/b",
        "postgres://u:hunter2@h/db?sslmode=hunter2",
        "postgres://u:hunter2@h/db?hunter2=1",
        "postgres://u:hunter2@h:notaport/db",
        "postgres://u:hunter2%zz@h/db",
        "postgres://u:hunter2@/db",
        "postgres://u:hunter2@h/db?sslmode=require&sslrootcert=/hunter2",
        "postgres://u:hunter2@h/db?sslmode=prefer&sslcert=/hunter2&sslkey=/hunter2",
        "postgres://u:hunter2@h/db?sslcert=/hunter2",
        "postgres://u:hunter2@h/db?sslkey=/hunter2",
        "postgres://u:hunter2@h/db?cleartext_password=hunter2",
        "postgres://u:hunter2@h/db?socket=/hunter2",
    ] {
        let error = Dsn::parse(SourceKind::Postgres, text).unwrap_err();
        let shown = format!("{error} {error:?} {}", error.hint());
        assert!(matches!(error, StoreError::BadDsn { .. }), "{text}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_dsn_is_never_shown() {
    let text = "postgres://ada:hunter2@h/db";
    let dsn = Dsn::parse(SourceKind::Postgres, text).unwrap();
    assert_eq!(
        format!("{dsn} {dsn:?}"),
        "postgres://*** Dsn(postgres://***)"
    );
    let detail = server(text).detail(format!("{text}: bad password hunter2"));
    assert_eq!(detail.to_string(), "***: bad password ***");
}
