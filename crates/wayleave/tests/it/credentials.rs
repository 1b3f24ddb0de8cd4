//! Credentials that are set but invalid: empty, blank, never expanded. The client was meant to have
//! narrow access, so it is refused rather than served as if it had no credential.

use std::fs;

use serde_json::{Value, json};

use crate::client::CLIENTS;
use crate::serving::{Serving, converse, hello, issue, served};
use crate::session::{Session, program};

/// A conversation that reads all readable data.
fn reading() -> [Value; 3] {
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let schema = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "schema", "arguments": {} } });
    [hello(None), ready, schema]
}

#[track_caller]
fn is_refused(answers: &[Value], reason: &str) {
    assert_eq!(answers.len(), 2, "{answers:?}");
    for answer in answers {
        assert_eq!(answer["error"]["code"], -32001, "{answer}");
        assert_eq!(answer["error"]["data"]["reason"], reason, "{answer}");
    }
}

fn stdio(session: &Session) -> std::process::Command {
    let mut command = session.command(program());
    command.args(["serve", "--stdio"]);
    command
}

#[test]
fn an_empty_or_unexpanded_token_opens_nothing_over_stdio() {
    let (session, ..) = served();
    let empty = session.home().join("empty");
    fs::write(&empty, "\n").unwrap();
    for (variable, value, why) in [
        ("WAYLEAVE_TOKEN", "", "empty"),
        ("WAYLEAVE_TOKEN", "  ", "empty"),
        ("WAYLEAVE_TOKEN", "${env:DESK_TOKEN}", "not expanded"),
        ("WAYLEAVE_TOKEN", "%DESK_TOKEN%", "not expanded"),
        ("WAYLEAVE_TOKEN_FILE", "", "empty"),
        ("WAYLEAVE_TOKEN_FILE", empty.to_str().unwrap(), "empty"),
    ] {
        let mut command = stdio(&session);
        let (answers, _, _) = converse(command.env(variable, value), &reading());
        is_refused(&answers, "malformed_token");
        let hint = answers[1]["error"]["data"]["hint"].as_str().unwrap();
        assert!(hint.contains(why) && !hint.contains("DESK"), "{hint}");
    }
    for (bearer, why) in [("", "empty"), ("${DESK_TOKEN}", "not expanded")] {
        let [_, ready, schema] = reading();
        let talk = [hello(Some(bearer)), ready, schema];
        let (answers, _, _) = converse(&mut stdio(&session), &talk);
        is_refused(&answers, "malformed_token");
        let hint = answers[0]["error"]["data"]["hint"].as_str().unwrap();
        assert!(hint.contains(why), "{hint}");
    }
}

#[test]
fn an_empty_or_unexpanded_token_opens_nothing_over_http_where_none_would() {
    let (session, ..) = served();
    session.write("wayleave.toml", "[serve]\nanonymous = true\n");
    let server = Serving::start(&session);
    let schema = |token| server.call("/mcp", token, "schema", &json!({}));
    assert_eq!(schema(None).0, 200);
    for (token, why) in [
        ("", "empty"),
        ("   ", "empty"),
        ("${env:DESK_TOKEN}", "not expanded"),
        ("{{DESK_TOKEN}}", "not expanded"),
    ] {
        let (status, body) = schema(Some(token));
        assert_eq!(status, 401, "{body}");
        assert!(
            body.contains("malformed_token") && body.contains(why),
            "{body}"
        );
        assert!(!body.contains("DESK_TOKEN"), "{body}");
    }
    server.stop();
}

/// The values that clients pass on for a variable that is not set.
const UNSET: [(&str, &str); 3] = [
    ("left out", "missing_token"),
    ("empty", "malformed_token"),
    ("as written", "malformed_token"),
];

#[test]
fn what_a_client_is_told_opens_nothing_while_its_token_is_unset() {
    let (mut session, token, _) = served();
    let file = session.home().join("token");
    fs::write(&file, &token).unwrap();
    session.set("DESK_TOKEN_FILE", file.to_str().unwrap());
    for client in CLIENTS {
        let variable = match client.word {
            "codex" | "claude-code" => "WAYLEAVE_TOKEN",
            _ => "DESK_TOKEN",
        };
        let words = ["--token-env", variable, "--name", "music"];
        let entry = client.entry(&client.print(&session, &words).stdout, "music");
        let arguments = entry["args"].as_array().unwrap().iter();
        let arguments: Vec<_> = arguments.map(|it| it.as_str().unwrap()).collect();
        let start = |value: Option<&str>| {
            let mut command = session.command(entry["command"].as_str().unwrap());
            command.args(&arguments);
            // The other variables of the entry, such as the path of a file.
            for (name, value) in entry["env"].as_object().into_iter().flatten() {
                command.env(name, value.as_str().unwrap());
            }
            command
                .env_remove("WAYLEAVE_TOKEN")
                .env_remove("WAYLEAVE_TOKEN_FILE");
            command.envs(value.map(|value| ("WAYLEAVE_TOKEN", value)));
            converse(&mut command, &reading()).0
        };
        for (unset, reason) in UNSET {
            let value = match unset {
                "left out" => None,
                "empty" => Some(""),
                _ => Some("${DESK_TOKEN}"),
            };
            is_refused(&start(value), reason);
        }
        let answers = start(Some(&token));
        assert!(
            answers[1].get("result").is_some(),
            "{}: {answers:?}",
            client.word
        );
    }
}

#[test]
fn an_owner_token_in_any_variable_keeps_the_server_from_starting() {
    let (session, ..) = served();
    let (owner, _) = issue(&session, &["--kind", "owner"]);
    for (variable, value) in [
        ("ADMIN", owner.clone()),
        (
            "DEPLOY_SETTINGS",
            format!("{{\"auth\":\"Bearer {owner}\"}}"),
        ),
        ("WAYLEAVE_OWNER_TOKEN", String::new()),
        ("WAYLEAVE_CONTROL_TOKEN", String::new()),
    ] {
        for words in [
            &["serve", "--stdio"][..],
            &["serve", "--http", "127.0.0.1:0"],
        ] {
            let mut command = session.command(program());
            let output = command.args(words).env(variable, &value).output().unwrap();
            let printed = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(77), "{printed}");
            assert!(
                printed.starts_with(&format!("error: `{variable}`")),
                "{printed}"
            );
            assert!(!printed.contains(&owner), "{printed}");
        }
    }
}
