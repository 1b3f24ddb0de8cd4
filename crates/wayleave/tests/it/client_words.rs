//! There is one recommended way to connect a client, described in the same words everywhere.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use regex::Regex;

use crate::client::{CLIENTS, shop};
use crate::session::{Session, program};

/// Checks that the recommended way never asks a person to choose among kinds of access.
#[track_caller]
fn check(what: &str, text: &str) {
    let words = Regex::new(r"(?i)\b(profiles?|tool-?sets?|owners?|scopes?|scoped)\b").unwrap();
    let found: Vec<_> = words.find_iter(text).map(|it| it.as_str()).collect();
    assert!(found.is_empty(), "{what} says {found:?}:\n{text}");
}

#[test]
fn what_clients_are_told_asks_for_no_choice() {
    let session = shop();
    check("help", &session.run(&["client", "install", "--help"]).all());
    for client in CLIENTS {
        for act in ["print", "install"] {
            for more in [
                &[][..],
                &["--json"],
                &["--http"],
                &["--url", "https://example.org/mcp"],
            ] {
                let words: Vec<_> = ["client", act, client.word]
                    .iter()
                    .chain(more)
                    .copied()
                    .collect();
                check(&words.join(" "), &session.run(&words).all());
            }
        }
        session
            .run(&["client", "install", client.word, "--write"])
            .exits(0);
        let settings = session.home().join(client.settings);
        check(client.word, &std::fs::read_to_string(settings).unwrap());
    }
}

#[test]
fn the_quick_start_and_the_guide_ask_for_no_choice() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let readme = read("README.md");
    for heading in ["## Try it", "## Serve your own data"] {
        let from = &readme[readme.find(heading).expect(heading)..];
        let section = from[3..].split("\n## ").next().unwrap();
        check(heading, section);
    }
    check("the guide", &read("docs/guide/connecting.md"));
}

/// The text that a server prints before it serves.
fn greeting(session: &Session, words: &[&str]) -> String {
    let mut server = session
        .command(program())
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut text = String::new();
    for line in lines {
        text.extend([line.unwrap().as_str(), "\n"]);
        if text.contains("Ctrl-C stops.") {
            break;
        }
    }
    server.kill().unwrap();
    server.wait().unwrap();
    text
}

#[test]
fn a_server_that_starts_asks_for_no_choice() {
    let mut session = shop();
    let asking = "[project]\nname = \"shop\"\n[serve]\ntokens = true\n";
    session.write("wayleave.toml", asking);
    let said = greeting(&session, &["serve", "--http", "127.0.0.1:0"]);
    assert!(said.contains("Bearer ${WAYLEAVE_TOKEN}"), "{said}");
    check("serve", &said);
    let open = "[project]\nname = \"shop\"\n[serve]\nanonymous = true\n";
    session.write("wayleave.toml", open);
    let said = greeting(&session, &["serve", "--http", "127.0.0.1:0"]);
    assert!(said.contains("claude mcp add"), "{said}");
    assert!(!said.contains("TOKEN"), "{said}");
    check("serve", &said);
    session.here_is_home();
    let said = greeting(&session, &["demo", "--http", "127.0.0.1:0"]);
    assert!(said.contains("claude mcp add"), "{said}");
    check("demo", &said);
}
