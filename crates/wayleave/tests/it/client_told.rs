//! The entry written for each client: the server's address, and the names of the variables it
//! needs, never their values.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::client::{CLIENTS, shop};
use crate::session::{CommandOutput, Session};

#[test]
fn no_secret_is_printed_or_written() {
    let mut session = shop();
    session.set("SHOP_DSN", "postgres://ana:hunter2@db/shop");
    session.set("WAYLEAVE_TOKEN", "wlc_hunter2");
    for client in CLIENTS {
        for more in [
            &[][..],
            &["--http"],
            &["--url", "https://example.org/mcp"],
            &[
                "--url",
                "https://example.org/mcp",
                "--token-env",
                "WAYLEAVE_TOKEN",
            ],
            &["--token-env", "WAYLEAVE_TOKEN"],
        ] {
            let words: Vec<_> = more.iter().copied().chain(["--write"]).collect();
            let done = client.install(&session, &words);
            assert!(!done.all().contains("hunter2"), "{}", done.all());
            if let Ok(text) = fs::read_to_string(client.path(&session)) {
                assert!(!text.contains("hunter2"), "{text}");
                fs::remove_file(client.path(&session)).unwrap();
            }
        }
    }
    let given = ["client", "print", "codex", "--token-env", "wlc_hunter2"];
    let refused = session.run(&given).exits(2);
    assert!(!refused.all().contains("hunter2"), "{}", refused.all());
}

#[test]
fn the_token_is_named_in_each_clients_own_way() {
    let session = shop();
    let url = [
        "--url",
        "https://example.org/mcp",
        "--token-env",
        "SHOP_TOKEN",
    ];
    for (client, member, named) in [
        (0, "headers", "Bearer ${SHOP_TOKEN}"),
        (2, "headers", "Bearer ${env:SHOP_TOKEN}"),
        (3, "headers", "Bearer ${input:shop-token}"),
        (4, "bearer_token_env_var", "SHOP_TOKEN"),
        (5, "headers", "Bearer ${SHOP_TOKEN}"),
    ] {
        let client = &CLIENTS[client];
        let entry = client.entry(&client.print(&session, &url).stdout, "shop");
        assert_eq!(entry["url"], "https://example.org/mcp");
        let said = match &entry[member] {
            Value::Object(headers) => headers["Authorization"].clone(),
            said => said.clone(),
        };
        assert_eq!(said, named, "{}", client.word);
    }
    let refused = session.run(&["client", "print", "claude-desktop", url[0], url[1]]);
    refused.exits(2).says("takes no address");
}

#[test]
fn where_nobody_is_asked_for_a_token_none_is_named() {
    let session = shop();
    let open = "[project]\nname = \"shop\"\n[serve]\nanonymous = true\n";
    session.write("wayleave.toml", open);
    for client in CLIENTS.iter().filter(|it| it.word != "claude-desktop") {
        let printed = client.print(&session, &["--http"]).all();
        assert!(!printed.to_lowercase().contains("token"), "{printed}");
        let behind = format!("{open}url = \"https://example.org/mcp\"\n");
        session.write("wayleave.toml", &behind);
        let behind = client.print(&session, &["--http"]);
        assert!(
            behind.stdout.to_lowercase().contains("token"),
            "{}",
            behind.all()
        );
        session.write("wayleave.toml", open);
        let elsewhere = client.print(&session, &["--url", "https://example.org/mcp"]);
        assert!(
            elsewhere.stdout.to_lowercase().contains("token"),
            "{}",
            elsewhere.all()
        );
    }
}

#[test]
fn a_server_elsewhere_needs_no_project_here() {
    let session = Session::new();
    let url = [
        "client",
        "print",
        "codex",
        "--url",
        "https://example.org/mcp",
    ];
    session.run(&url).exits(0).says("[mcp_servers.wayleave]");
    session.run(&["client", "print", "codex"]).exits(2);
    for url in [
        "ftp://example.org",
        "example.org",
        "https://example.org/mcp?token=x",
    ] {
        let refused = session.run(&["client", "print", "codex", "--url", url]);
        refused.exits(2).says("the address is not one of a server");
    }
}

#[test]
fn a_dsn_in_a_file_is_handed_on_by_its_path() {
    let mut session = shop();
    let desktop = &CLIENTS[1];
    let told = desktop.print(&session, &[]);
    assert!(
        told.stderr.contains("export SHOP_DSN_FILE=PATH"),
        "{}",
        told.stderr
    );
    assert_eq!(desktop.entry(&told.stdout, "shop").get("env"), None);
    let file = session.home().join("dsn");
    fs::write(&file, session.variable("SHOP_DSN")).unwrap();
    session.unset("SHOP_DSN");
    session.set("SHOP_DSN_FILE", file.to_str().unwrap());
    let told = desktop.print(&session, &[]);
    let entry = desktop.entry(&told.stdout, "shop");
    assert_eq!(entry["env"]["SHOP_DSN_FILE"], file.to_str().unwrap());
    assert!(!told.stderr.contains("remark"), "{}", told.stderr);
    let codex = &CLIENTS[4];
    let entry = codex.entry(&codex.print(&session, &[]).stdout, "shop");
    assert_eq!(entry["env_vars"][0], "SHOP_DSN_FILE");
}

#[test]
fn a_token_in_a_file_is_handed_on_by_its_path_where_nothing_else_can_be() {
    let mut session = shop();
    let desktop = &CLIENTS[1];
    let words = [
        "client",
        "print",
        "claude-desktop",
        "--token-env",
        "SHOP_TOKEN",
    ];
    session
        .run(&words)
        .exits(2)
        .says("never written into settings");
    let file = session.home().join("token");
    session.set("SHOP_TOKEN_FILE", file.to_str().unwrap());
    let told = session.run(&words).exits(0);
    let entry = desktop.entry(&told.stdout, "shop");
    assert_eq!(entry["env"]["WAYLEAVE_TOKEN_FILE"], file.to_str().unwrap());
    assert_eq!(entry["env"].get("WAYLEAVE_TOKEN"), None);
}

/// The answer to a call of a server started according to these settings.
fn answer(session: &Session, entry: &Value) -> CommandOutput {
    let arguments = entry["args"].as_array().unwrap();
    let env = entry["env"].as_object().unwrap();
    let mut server = session
        .command(entry["command"].as_str().unwrap())
        .args(arguments.iter().map(|it| it.as_str().unwrap()))
        .envs(
            env.iter()
                .map(|(name, value)| (name, value.as_str().unwrap())),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "schema", "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    // A server that exits at once may not have read it.
    let _ = writeln!(server.stdin.take().unwrap(), "{call}");
    CommandOutput::from_output(&server.wait_with_output().unwrap())
}

#[test]
fn the_token_in_a_file_decides_as_one_in_a_variable_does() {
    let mut session = shop();
    session.run(&["propose", "shop"]).exits(0);
    session.run(&["ratify", "shop"]).exits(0);
    session.run(&["connect", "shop"]).exits(0);
    let file = session.home().join("token");
    session.set("WAYLEAVE_TOKEN_FILE", file.to_str().unwrap());
    let words = [
        "client",
        "print",
        "claude-desktop",
        "--token-env",
        "WAYLEAVE_TOKEN",
    ];
    let told = session.run(&words).exits(0).stdout;
    session.unset("WAYLEAVE_TOKEN_FILE");
    let entry = CLIENTS[1].entry(&told, "shop");
    answer(&session, &entry).exits(0).says("-32001");
    let token = |more: [&str; 2]| {
        let words = ["token", "create", "--json", more[0], more[1]];
        let made = session.run(&words).exits(0).document();
        made["secret"].as_str().unwrap().to_owned()
    };
    fs::write(&file, "wlc_wrong\n").unwrap();
    answer(&session, &entry).exits(0).says("-32001");
    fs::write(&file, format!("{}\n", token(["--all-of", "shop"]))).unwrap();
    answer(&session, &entry).exits(0).says("structuredContent");
    let owner = token(["--kind", "owner"]);
    fs::write(&file, &owner).unwrap();
    let refused = answer(&session, &entry)
        .exits(77)
        .says("WAYLEAVE_TOKEN_FILE");
    assert!(!refused.all().contains(&owner), "{}", refused.all());
}

#[test]
fn what_is_printed_starts_a_server_that_answers() {
    let session = shop();
    for client in CLIENTS {
        let entry = client.entry(&client.print(&session, &[]).stdout, "shop");
        let arguments = entry["args"].as_array().unwrap();
        let mut server = session
            .command(entry["command"].as_str().unwrap())
            .args(arguments.iter().map(|it| it.as_str().unwrap()))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        writeln!(server.stdin.take().unwrap(), "{hello}").unwrap();
        let said = CommandOutput::from_output(&server.wait_with_output().unwrap()).exits(0);
        let said: Value = serde_json::from_str(said.stdout.lines().next().unwrap()).unwrap();
        assert_eq!(said["result"]["serverInfo"]["title"], "shop", "{said}");
    }
}
