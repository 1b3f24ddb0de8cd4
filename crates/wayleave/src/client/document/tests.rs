use serde_json::Value;

use super::*;
use crate::client::{ServedProject, Transport, Variable};

fn server() -> Server {
    Server {
        name: "shop".to_owned(),
        transport: Transport::Stdio {
            program: "/bin/wayleave".to_owned(),
            folder: "/shop".to_owned(),
            variables: vec![Variable {
                source: "shop".to_owned(),
                name: "SHOP_DSN".to_owned(),
                is_set: true,
                file: None,
            }],
            token: None,
            token_file: None,
        },
        project: Some(ServedProject {
            folder: "/shop".to_owned(),
            url: "http://127.0.0.1:7411/mcp".to_owned(),
        }),
    }
}

fn over_http() -> Server {
    Server {
        transport: Transport::Http {
            url: "https://example.org/mcp".to_owned(),
            token: Some("WAYLEAVE_TOKEN".to_owned()),
        },
        ..server()
    }
}

fn edit(
    kind: ClientKind,
    server: &Server,
    replace: bool,
    text: &str,
) -> Result<String, DocumentError> {
    let entry = Entry::new(kind, server).unwrap();
    let what = EntryEdit {
        kind,
        server,
        entry: &entry,
        replace,
    };
    let once = put(text, &what)?;
    assert_eq!(put(&once, &what).as_ref(), Ok(&once), "a second time");
    Ok(once)
}

/// Checks the edited text, and that a second edit changes nothing.
#[track_caller]
fn check(kind: ClientKind, server: &Server, before: &str, after: &str) {
    assert_eq!(edit(kind, server, false, before).unwrap(), after);
}

#[test]
fn an_empty_file_gets_the_entry_alone() {
    let after = r#"{
  "mcpServers": {
    "shop": {
      "type": "stdio",
      "command": "/bin/wayleave",
      "args": ["serve", "--stdio", "--project", "/shop"],
      "env": {
        "SHOP_DSN": "${env:SHOP_DSN}"
      }
    }
  }
}
"#;
    for before in ["", "\n", "{}\n", "{\n}\n"] {
        check(ClientKind::Cursor, &server(), before, after);
    }
    check(
        ClientKind::Codex,
        &server(),
        "",
        r#"[mcp_servers.shop]
command = "/bin/wayleave"
args = ["serve", "--stdio", "--project", "/shop"]
env_vars = ["SHOP_DSN"]
"#,
    );
}

#[test]
fn others_and_their_comments_stay_byte_for_byte() {
    check(
        ClientKind::Gemini,
        &over_http(),
        r#"{
    // mine
    "theme": "dark", /* and this */
    "mcpServers": {
        "other": {"command": "x"}, // odd
    },
    "last": [1,2 ,3]
}"#,
        r#"{
    // mine
    "theme": "dark", /* and this */
    "mcpServers": {
        "other": {"command": "x"}, // odd
        "shop": {
            "type": "http",
            "url": "https://example.org/mcp",
            "headers": {
                "Authorization": "Bearer ${WAYLEAVE_TOKEN}",
            },
        },
    },
    "last": [1,2 ,3]
}"#,
    );
    check(
        ClientKind::Codex,
        &over_http(),
        r#"# mine
model = "o9"   # best

[mcp_servers.other]  # odd
command = "x"

[tui]
theme = "dark"
"#,
        r#"# mine
model = "o9"   # best

[mcp_servers.other]  # odd
command = "x"

[mcp_servers.shop]
url = "https://example.org/mcp"
bearer_token_env_var = "WAYLEAVE_TOKEN"

[tui]
theme = "dark"
"#,
    );
}

#[test]
fn line_ends_and_the_mark_of_an_editor_stay() {
    let after = edit(
        ClientKind::ClaudeDesktop,
        &server(),
        false,
        "\u{feff}{\r\n\t\"a\": 1\r\n}\r\n",
    )
    .unwrap();
    assert!(after.starts_with("\u{feff}{\r\n\t\"a\": 1,\r\n\t\"mcpServers\": {\r\n\t\t\"shop\""));
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
}

#[test]
fn an_outdated_entry_is_brought_up_to_date_and_keeps_what_a_person_added() {
    check(
        ClientKind::Cursor,
        &server(),
        r#"{
  "mcpServers": {
    "shop": {
      "command": "/old/wayleave", // here
      "args": ["serve", "--stdio", "--project", "/shop"],
      "env": { "RUST_BACKTRACE": "1" },
      "disabled": false
    }
  }
}
"#,
        r#"{
  "mcpServers": {
    "shop": {
      "command": "/bin/wayleave", // here
      "args": ["serve", "--stdio", "--project", "/shop"],
      "env": {
        "RUST_BACKTRACE": "1",
        "SHOP_DSN": "${env:SHOP_DSN}"
      },
      "disabled": false,
      "type": "stdio"
    }
  }
}
"#,
    );
    check(
        ClientKind::Codex,
        &server(),
        r#"[mcp_servers.shop]
# the shop
command = "/old/wayleave" # here
args = ["serve", "--stdio", "--project", "/shop"]
env_vars = ["RUST_LOG"]
startup_timeout_sec = 20
"#,
        r#"[mcp_servers.shop]
# the shop
command = "/bin/wayleave" # here
args = ["serve", "--stdio", "--project", "/shop"]
env_vars = ["RUST_LOG", "SHOP_DSN"]
startup_timeout_sec = 20
"#,
    );
}

#[test]
fn another_way_to_the_same_server_leaves_nothing_of_the_first() {
    for kind in ClientKind::ALL {
        let Ok(there) = Entry::new(*kind, &over_http()) else {
            continue;
        };
        let mut at_home = over_http();
        at_home.transport = Transport::Http {
            url: "http://127.0.0.1:7411/mcp".to_owned(),
            token: None,
        };
        let first = edit(*kind, &at_home, false, "").unwrap();
        let then = edit(*kind, &server(), false, &first).unwrap();
        for member in there.members.keys().filter(|it| *it != "type") {
            assert!(!then.contains(member.as_str()), "{then}");
        }
        assert!(then.contains("--stdio"), "{then}");
        let back = edit(*kind, &at_home, false, &then).unwrap();
        assert!(!back.contains("--stdio"), "{back}");
        assert!(!back.contains("SHOP_DSN"), "{back}");
    }
}

#[test]
fn a_former_spelling_gives_way_to_the_present_one() {
    let before =
        r#"{"mcpServers": {"shop": {"httpUrl": "https://example.org/mcp", "trust": true}}}"#;
    let after = edit(ClientKind::Gemini, &over_http(), false, before).unwrap();
    let document: Value = serde_json::from_str(&after).unwrap();
    let entry = &document["mcpServers"]["shop"];
    assert_eq!(entry["url"], "https://example.org/mcp");
    assert_eq!(entry.get("httpUrl"), None);
    assert_eq!(entry["trust"], true);
}

#[test]
fn a_server_of_the_same_name_loses_its_place_only_when_told_to() {
    let taken = Err(DocumentError::Taken {
        name: "shop".to_owned(),
    });
    for (kind, before) in [
        (
            ClientKind::Cursor,
            r#"{"mcpServers": {"shop": {"command": "x"}}}"#,
        ),
        (
            ClientKind::Cursor,
            r#"{"mcpServers": {"shop": {"command": "wayleave", "args": ["serve", "--project", "/other"]}}}"#,
        ),
        (ClientKind::Cursor, r#"{"mcpServers": {"shop": "a text"}}"#),
        (
            ClientKind::Codex,
            "[mcp_servers.shop]\nurl = \"https://x.org\"\n",
        ),
        (
            ClientKind::Codex,
            "mcp_servers = { shop = { command = \"x\" } }\n",
        ),
        (ClientKind::Codex, "[mcp_servers]\nshop = 1\n"),
    ] {
        assert_eq!(edit(kind, &server(), false, before), taken, "{before}");
        let after = edit(kind, &server(), true, before).unwrap();
        assert!(
            after.contains("--stdio") && !after.contains("x.org"),
            "{after}"
        );
    }
}

#[test]
fn a_question_is_asked_once_of_all_servers_that_need_it() {
    let after = edit(ClientKind::Vscode, &over_http(), false, "").unwrap();
    let document: Value = serde_json::from_str(&after).unwrap();
    assert_eq!(document["inputs"][0]["id"], "shop-token");
    assert_eq!(
        document["servers"]["shop"]["headers"]["Authorization"],
        "Bearer ${input:shop-token}"
    );
    let before = r#"{"inputs": [{"id": "a"}], "servers": {"b": {}}}"#;
    let after = edit(ClientKind::Vscode, &over_http(), false, before).unwrap();
    let document: Value = serde_json::from_str(&after).unwrap();
    assert_eq!(document["inputs"].as_array().unwrap().len(), 2);
    assert!(document["servers"]["b"].is_object());
}

#[test]
fn what_cannot_be_understood_is_not_touched() {
    let syntax = |kind, text: &str| match edit(kind, &server(), false, text) {
        Err(DocumentError::Syntax { line, what, .. }) => (line, what),
        other => panic!("{text} gave {other:?}"),
    };
    for text in ["{\n \"a\": }", "{\n'a': 1}", "{}\n{}", "{\n\"a\" 1}"] {
        let (line, what) = syntax(ClientKind::Gemini, text);
        assert_eq!(line, 2, "{text}: {what}");
    }
    assert_eq!(syntax(ClientKind::Codex, "a = 1\nb = hunter2\n").0, 2);
    for (kind, text) in [
        (ClientKind::Cursor, "[]"),
        (ClientKind::Cursor, r#"{"mcpServers": []}"#),
        (ClientKind::Vscode, r#"{"servers": 1}"#),
        (ClientKind::Codex, "mcp_servers = 1\n"),
        (ClientKind::Codex, "[[mcp_servers]]\na = 1\n"),
    ] {
        let refused = edit(kind, &server(), false, text);
        assert!(
            matches!(refused, Err(DocumentError::Shape { .. })),
            "{text}"
        );
    }
    for text in [
        r#"{"mcpServers": {}, "mcpServers": {}}"#,
        r#"{"mcpServers": {"shop": {}, "shop": {}}}"#,
    ] {
        let refused = edit(ClientKind::Cursor, &server(), false, text);
        assert!(
            matches!(refused, Err(DocumentError::Twice { .. })),
            "{text}"
        );
    }
}

#[test]
fn no_complaint_repeats_what_the_file_holds() {
    for (kind, text) in [
        (ClientKind::Cursor, r#"{"key": hunter2}"#),
        (ClientKind::Cursor, r#"{"key": "hunter2"#),
        (ClientKind::Codex, "key = hunter2\n"),
        (ClientKind::Codex, "key = \"hunter2\n"),
        (ClientKind::Codex, "hunter2 = 1\nhunter2 = 2\n"),
    ] {
        let refused = edit(kind, &server(), false, text).unwrap_err();
        assert!(!refused.to_string().contains("hunter2"), "{refused}");
    }
}

#[test]
fn a_difference_shows_this_entry_and_of_others_only_where_they_are() {
    for (kind, before) in [
        (
            ClientKind::Cursor,
            r#"{"mcpServers": {"other": {"command": "hunter2", "env": {"KEY": "hunter2"}}, "shop": {
                "env": {"MINE": "hunter2"}, "args": ["serve", "--project", "/shop"]}}, "a": ["hunter2"] // hunter2
            }"#,
        ),
        (
            ClientKind::Codex,
            "key = \"hunter2\" # hunter2\nlist = [\"hunter2\"]\n[mcp_servers]\n\
             other = { env = { KEY = \"hunter2\" } }\n[mcp_servers.shop]\nargs = [\"serve\", \
             \"--project\", \"/shop\"]\nenv.MINE = \"\"\"\nhunter2 # \"\"\"\n",
        ),
    ] {
        let server = server();
        let entry = Entry::new(kind, &server).unwrap();
        let what = EntryEdit {
            kind,
            server: &server,
            entry: &entry,
            replace: false,
        };
        let after = put(before, &what).unwrap();
        assert!(after.contains("hunter2"), "{after}");
        let shown = difference("settings", Some(before), &after, &what);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("/bin/wayleave"), "{shown}");
    }
}
