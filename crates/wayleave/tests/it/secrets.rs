//! A password pasted anywhere appears nowhere: not in text, JSON, logs, errors or files.

use std::fs;
use std::path::Path;

use wayleave_test::postgres;

use crate::session::{CommandOutput, Session};

const SECRET: &str = "hunter2";

/// DSNs in the spellings that people paste.
const PASTED: &[&str] = &[
    "postgres://ana:hunter2@db.example.org/crm",
    "postgresql://db.example.org/crm?password=hunter2",
    "mysql://root:hunter2@127.0.0.1:3306/shop",
    "host=db user=ana password=hunter2",
    "root:hunter2@tcp(127.0.0.1:3306)/shop",
    "root:hunter2@db",
    "postgres://ana:it's hunter2@db/crm",
    "jdbc:postgresql://db/crm?user=a&password=hunter2",
];

#[track_caller]
fn assert_silent(ran: &CommandOutput, words: &[&str]) {
    assert!(
        !ran.all().contains(SECRET),
        "{words:?} printed:\n{}",
        ran.all()
    );
    assert_ne!(ran.status, 101, "{words:?} panicked:\n{}", ran.all());
}

fn run(session: &Session, words: &[&str]) -> CommandOutput {
    let ran = session.run(words);
    assert_silent(&ran, words);
    let with_json: Vec<_> = words.iter().copied().chain(["--json"]).collect();
    assert_silent(&session.run(&with_json), &with_json);
    ran
}

fn assert_kept_nowhere(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_kept_nowhere(&path);
        } else {
            let bytes = fs::read(&path).unwrap();
            let found = bytes
                .windows(SECRET.len())
                .any(|it| it == SECRET.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}

#[test]
fn a_dsn_pasted_as_any_argument_of_any_command_is_refused_and_not_repeated() {
    let session = Session::with_dataset();
    for dsn in PASTED {
        for words in [
            &[*dsn][..],
            &["init", dsn],
            &["source", dsn],
            &[
                "source", "add", dsn, "--kind", "postgres", "--env", "CRM_DSN",
            ],
            &["source", "add", "crm", "--kind", "postgres", "--env", dsn],
            &["source", "add", "crm", "--kind", dsn, "--env", "CRM_DSN"],
            &["source", "test", dsn],
            &["source", "remove", dsn],
            &["introspect", dsn],
            &["introspect", "music", "--schema", dsn],
            &["propose", dsn],
            &["propose", "music", "--dataset", dsn],
            &["check", dsn],
            &["diff", dsn],
            &["ratify", dsn],
            &["retire", dsn],
            &["connect", dsn],
            &["disconnect", dsn],
            &["audit", "--head", dsn],
            &["audit", dsn],
            &["datasets", dsn],
            &["doctor", dsn],
            &["completions", dsn],
            &["datasets", "--project", dsn],
            &["--json", dsn],
            &["--unknown", dsn],
        ] {
            let ran = session.run(words);
            assert_silent(&ran, words);
            assert_eq!(ran.status, 2, "{words:?}");
        }
    }
    for words in [
        &[PASTED[0]][..],
        &["diff", "root:hunter2@db"],
        &[
            "source", "add", "crm", "--kind", "postgres", "--env", PASTED[0],
        ],
    ] {
        assert_eq!(run(&session, words).status, 2, "{words:?}");
    }
    assert_kept_nowhere(session.here());
}

#[test]
fn a_dsn_pasted_into_a_note_or_a_name_is_never_recorded() {
    let session = Session::with_draft();
    for dsn in PASTED {
        for words in [
            &["ratify", "music", "--note", dsn][..],
            &["ratify", "music", "--who", dsn],
            &["ratify", "music", &format!("--note=moved to {dsn} today")],
        ] {
            assert_eq!(run(&session, words).status, 2, "{words:?}");
        }
    }
    session.run(&["datasets"]).exits(0).says("draft");
    assert_kept_nowhere(session.here());
}

#[test]
fn a_dsn_pasted_into_a_draft_is_refused_and_not_repeated() {
    let session = Session::with_draft();
    let draft = session.read("mappings/music.toml");
    for dsn in PASTED {
        for edited in [
            format!("# {dsn}\n{draft}"),
            draft.replace("source = \"music\"", &format!("source = \"{dsn}\"")),
            draft.replace("name = \"music\"", &format!("name = \"{dsn}\"")),
            draft.replace("[dataset]", &format!("[dataset]\n\"{dsn}\" = 1")),
            draft.replace("[dataset]", &format!("[dataset]\ntitle = '''\n{dsn}'''")),
            format!("{draft}\n{dsn}\n"),
        ] {
            session.write("mappings/music.toml", edited);
            assert_eq!(run(&session, &["check"]).status, 1, "{dsn}");
        }
        session.write("mappings/music.toml", format!("# {dsn}\n{draft}"));
        for words in [
            &["diff", "music"][..],
            &["ratify", "music"],
            &["ratify", "music", "--offline"],
            &["propose", "music", "--stdout"],
        ] {
            assert_ne!(run(&session, words).status, 0, "{words:?}");
        }
        for words in ["datasets", "doctor"] {
            run(&session, &[words]);
        }
    }
    let settings = session.read("wayleave.toml");
    session.write(
        "wayleave.toml",
        format!("{settings}\nhttp = \"{}\"\n", PASTED[0]),
    );
    assert_eq!(run(&session, &["datasets"]).status, 2);
    run(&session, &["doctor"]);
}

#[tokio::test]
async fn a_dsn_that_cannot_be_used_is_never_quoted_not_even_in_logs() {
    let endpoint = postgres().await.endpoint();
    let mut session = Session::in_project();
    session.set("WAYLEAVE_LOG", "trace");
    session.set("RUST_BACKTRACE", "1");
    for kind in ["sqlite", "postgres", "mysql"] {
        session
            .run(&["source", "add", kind, "--kind", kind, "--env", "ANY_DSN"])
            .exits(0);
    }
    for dsn in [
        &format!(
            "postgres://wayleave:{SECRET}@127.0.0.1:{}/postgres",
            endpoint.port
        ),
        &format!(
            "postgres://wayleave:x@127.0.0.1:{}/postgres?{SECRET}=1",
            endpoint.port
        ),
        &format!("postgres://ana:{SECRET}@127.0.0.1:notaport/crm"),
        &format!("postgres://ana:{SECRET}@/"),
        &format!("postgres://ana:p@ss{SECRET}/w@h/crm"),
        &format!("mysql://ana:{SECRET}@127.0.0.1:1/crm"),
        &SECRET.to_string(),
        &format!("sqlite:///{SECRET}?x"),
        &format!("postgres://ana:%zz{SECRET}@127.0.0.1/crm"),
    ] {
        session.set("ANY_DSN", dsn);
        for source in ["sqlite", "postgres", "mysql"] {
            for words in [
                &["source", "test", source][..],
                &["introspect", source],
                &["propose", source],
            ] {
                // A SQLite DSN is a path, and a missing path may be named.
                if source == "sqlite" && !dsn.contains("://ana") {
                    continue;
                }
                assert_ne!(run(&session, words).status, 0, "{words:?}");
            }
        }
        let is_path = !dsn.contains("://ana");
        if !is_path {
            run(&session, &["doctor"]);
            run(&session, &["source", "list"]);
        }
    }
    assert_kept_nowhere(session.here());
}

#[tokio::test]
async fn a_password_of_a_working_source_stays_inside_at_every_log_level() {
    let server = postgres().await;
    let sql = "CREATE TABLE t (id integer PRIMARY KEY); \
               COMMENT ON TABLE t IS 'see postgres://ana:hunter2@db/crm';";
    let database = server.fresh_database("quiet", sql).await.unwrap();
    let mut session = Session::in_project();
    session.set("WAYLEAVE_LOG", "trace");
    session.set("CRM_DSN", &database.dsn);
    let password = server.endpoint().password;
    for words in [
        &[
            "source", "add", "crm", "--kind", "postgres", "--env", "CRM_DSN",
        ][..],
        &["source", "list"],
        &["source", "test", "crm"],
        &["introspect", "crm"],
        &["introspect", "crm", "--json"],
        &["propose", "crm"],
        &["propose", "crm", "--stdout"],
        &["check", "--live"],
        &["ratify", "crm"],
        &["connect", "crm"],
        &["doctor"],
        &["audit"],
    ] {
        let ran = session.run(words).exits(0);
        assert!(!ran.all().contains(password), "{words:?}: {}", ran.all());
        assert_silent(&ran, words);
    }
    assert_kept_nowhere(session.here());
}
