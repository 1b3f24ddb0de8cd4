//! `--json`: one document of a stable shape on standard output.

use std::fmt::Write as _;

use serde_json::Value;
use wayleave_test::assert_golden;

use crate::session::Session;

/// The shape of a document: its members and their types. The first element stands for an array.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "boolean".into(),
        Value::Number(_) => "number".into(),
        Value::String(_) => "string".into(),
        Value::Array(values) => values.iter().take(1).map(shape).collect(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.clone(), shape(value)));
            Value::Object(members.collect())
        }
    }
}

#[test]
fn every_command_answers_in_a_document_of_the_agreed_shape() {
    let mut session = Session::new();
    let mut agreed = String::new();
    let mut ask = |session: &Session, status: i32, words: &[&str]| {
        let all: Vec<_> = words.iter().copied().chain(["--json"]).collect();
        let document = session.run(&all).exits(status).document();
        let shape = serde_json::to_string_pretty(&shape(&document)).unwrap();
        let line = words.join(" ");
        let _ = write!(agreed, "$ wayleave {line}  # exits {status}\n{shape}\n\n");
    };
    ask(&session, 0, &["init", "project"]);
    session.enter("project");
    ask(&session, 2, &["init"]);
    let sql = "CREATE TABLE people (id integer PRIMARY KEY, name text, password text, \
               boss integer REFERENCES people (id));";
    let path = session.keep_sqlite("staff.db", sql);
    session.set("STAFF_DSN", path.to_str().unwrap());
    ask(
        &session,
        0,
        &[
            "source",
            "add",
            "staff",
            "--kind",
            "sqlite",
            "--env",
            "STAFF_DSN",
        ],
    );
    ask(&session, 0, &["source", "list"]);
    ask(&session, 0, &["source", "test", "staff"]);
    ask(&session, 2, &["source", "test", "stuff"]);
    ask(&session, 0, &["introspect", "staff"]);
    ask(&session, 0, &["propose", "staff"]);
    ask(&session, 0, &["propose", "staff", "--stdout"]);
    ask(&session, 0, &["check"]);
    ask(&session, 0, &["check", "--live"]);
    ask(&session, 0, &["diff", "staff"]);
    ask(&session, 2, &["diff", "stuff"]);
    ask(&session, 0, &["ratify", "staff", "--note", "first"]);
    ask(&session, 0, &["ratify", "staff"]);
    ask(&session, 0, &["connect", "staff"]);
    ask(&session, 0, &["datasets"]);
    ask(&session, 0, &["grant", "create", "--dataset", "staff"]);
    ask(&session, 0, &["grant", "list"]);
    ask(&session, 2, &["grant", "show", "g_none"]);
    ask(&session, 0, &["token", "create", "--all-of", "staff"]);
    ask(&session, 0, &["token", "list"]);
    ask(&session, 2, &["token", "revoke", "t_none"]);
    ask(&session, 0, &["audit"]);
    ask(&session, 0, &["audit", "--verify"]);
    ask(&session, 0, &["client", "print", "codex"]);
    ask(&session, 0, &["client", "install", "codex"]);
    ask(&session, 2, &["client", "install", "codex", "--url", "x"]);
    ask(&session, 0, &["doctor"]);
    session.write("mappings/staff.toml", "[dataset]\nname = \"staff\"\n");
    ask(&session, 1, &["check"]);
    ask(&session, 1, &["ratify", "staff"]);
    ask(&session, 0, &["disconnect", "staff"]);
    ask(&session, 2, &["disconnect", "staff"]);
    ask(&session, 0, &["retire", "staff"]);
    ask(&session, 2, &["retire", "staff"]);
    ask(&session, 0, &["source", "remove", "staff"]);
    ask(&session, 0, &["completions", "bash"]);
    ask(&session, 2, &["no-such-command"]);
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/json.txt");
    assert_golden(golden, &agreed);
}

#[test]
fn every_shell_is_given_completions() {
    let session = Session::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = session.run(&["completions", shell]).exits(0).stdout;
        assert!(
            script.contains("wayleave") && script.contains("ratify"),
            "{shell}"
        );
    }
}
