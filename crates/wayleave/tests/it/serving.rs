//! Authentication by the program: credentials of owners, tokens revoked by another process, and
//! secrets that appear nowhere.

use std::{
    io::{BufRead as _, BufReader, Read, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::session::{Session, program};

/// Timeout of waits that only a lost message can exceed.
const LOST: Duration = Duration::from_secs(20);

/// A running `wayleave serve --http`, and its output.
pub(crate) struct Serving {
    child: Child,
    address: SocketAddr,
    printed: Vec<thread::JoinHandle<String>>,
}

impl Serving {
    pub(crate) fn start(session: &Session) -> Self {
        let mut command = session.command(program());
        command.args(["serve", "--http", "127.0.0.1:0"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (told, where_it_listens) = mpsc::channel();
        let printed = vec![
            collect(child.stdout.take().unwrap(), None),
            collect(child.stderr.take().unwrap(), Some(told)),
        ];
        let address = where_it_listens.recv_timeout(LOST).unwrap();
        Self {
            child,
            address,
            printed,
        }
    }

    /// Sends a request unchanged, and returns the whole response.
    fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LOST)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = Vec::new();
        // A server that refuses a request may not have read all of it.
        let _ = stream.read_to_end(&mut response);
        String::from_utf8_lossy(&response).into_owned()
    }

    /// Calls a tool; returns the status and the response.
    pub(crate) fn call(
        &self,
        path: &str,
        token: Option<&str>,
        tool: &str,
        arguments: &Value,
    ) -> (u16, String) {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }})
        .to_string();
        let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let response = self.raw(&format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\n{}Accept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            authorization.unwrap_or_default(),
            body.len(),
        ));
        let status = response.split(' ').nth(1).unwrap_or_default();
        (status.parse().unwrap_or(0), response)
    }

    fn arguments(&self) -> String {
        let seen = std::fs::read(format!("/proc/{}/cmdline", self.child.id())).unwrap();
        String::from_utf8(seen).unwrap()
    }

    /// Stops the server; returns everything it printed.
    pub(crate) fn stop(mut self) -> String {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(&id).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
        let printed = std::mem::take(&mut self.printed).into_iter();
        printed.map(|it| it.join().unwrap()).collect()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // For tests that failed; otherwise the server has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the output in a thread, and reports the address of the server.
fn collect(
    from: impl Read + Send + 'static,
    told: Option<mpsc::Sender<SocketAddr>>,
) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut all = String::new();
        let mut from = BufReader::new(from);
        loop {
            let before = all.len();
            if from.read_line(&mut all).unwrap() == 0 {
                return all;
            }
            let address = all[before..]
                .split("://")
                .nth(1)
                .and_then(|it| it.split('/').next());
            if let (Some(told), Some(Ok(address))) = (&told, address.map(str::parse)) {
                let _ = told.send(address);
            }
        }
    })
}

pub(crate) fn issue(session: &Session, more: &[&str]) -> (String, String) {
    let words = [&["token", "create", "--json"], more].concat();
    let document = session.run(&words).exits(0).document();
    let text = |name: &str| document["token"][name].as_str().map(str::to_owned);
    let secret = document["secret"]
        .as_str()
        .map(str::to_owned)
        .or_else(|| text("secret"));
    (secret.unwrap(), text("id").unwrap())
}

/// A project that serves a dataset, and a token that may read all of it.
pub(crate) fn served() -> (Session, String, String) {
    let session = Session::with_dataset();
    session.run(&["connect", "music"]).exits(0);
    let grant = session.run(&["grant", "create", "--dataset", "music", "--json"]);
    let grant = grant.exits(0).document()["grant"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let (token, id) = issue(&session, &["--grant", &grant]);
    (session, token, id)
}

#[test]
fn with_an_owner_credential_at_hand_nothing_is_served_and_the_exit_code_is_77() {
    let (mut session, _, _) = served();
    let (owner, _) = issue(&session, &["--kind", "owner"]);
    let (control, _) = issue(&session, &["--kind", "control"]);
    for (variable, value) in [
        ("WAYLEAVE_OWNER_TOKEN", owner.as_str()),
        ("WAYLEAVE_OWNER_TOKEN", "whatever-it-is"),
        ("WAYLEAVE_CONTROL_TOKEN", &control),
        ("WAYLEAVE_TOKEN", &owner),
        ("WAYLEAVE_TOKEN", &control),
    ] {
        session.set(variable, value);
        for words in [
            &["serve", "--stdio"][..],
            &["serve", "--http", "127.0.0.1:0"],
        ] {
            let ran = session.run(words).exits(77);
            assert_eq!(ran.stdout, "", "{variable}");
            assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
            assert!(
                ran.stderr.starts_with(&format!("error: `{variable}`")),
                "{}",
                ran.stderr
            );
            assert!(!ran.stderr.contains(value), "{}", ran.stderr);
        }
        session.unset(variable);
    }
}

/// Sends messages to `serve --stdio`. Returns the answers, the exit code and the log.
pub(crate) fn over_stdio(session: &Session, messages: &[Value]) -> (Vec<Value>, i32, String) {
    let mut command = session.command(program());
    converse(command.args(["serve", "--stdio"]), messages)
}

/// Like [`over_stdio`], with a given command.
pub(crate) fn converse(command: &mut Command, messages: &[Value]) -> (Vec<Value>, i32, String) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for message in messages {
        // The server may have closed the pipe already.
        let _ = writeln!(input, "{message}");
    }
    drop(input);
    let ended = child.wait_with_output().unwrap();
    let lines = String::from_utf8(ended.stdout).unwrap();
    let answers = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let printed = String::from_utf8(ended.stderr).unwrap();
    (answers.collect(), ended.status.code().unwrap(), printed)
}

pub(crate) fn hello(bearer: Option<&str>) -> Value {
    let mut client = json!({ "name": "test", "version": "1" });
    if let Some(bearer) = bearer {
        client["authorization"] = json!({ "bearer": bearer });
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client,
    }})
}

#[test]
fn an_owner_bearer_in_the_handshake_ends_the_program_with_77() {
    let (session, _, _) = served();
    let (owner, _) = issue(&session, &["--kind", "owner"]);
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let (answers, status, printed) = over_stdio(&session, &[hello(Some(&owner)), list]);
    assert_eq!(status, 77);
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["error"]["code"], -32001);
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(
        printed.contains("owner") && !printed.contains(&owner),
        "{printed}"
    );
}

#[test]
fn a_stdio_client_is_who_its_token_says_or_local_without_one() {
    let (mut session, token, _) = served();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let schema = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "schema", "arguments": {} } });
    let talk = [hello(None), ready.clone(), schema.clone()];
    let (answers, status, _) = over_stdio(&session, &talk);
    assert_eq!((answers.len(), status), (2, 0), "{answers:?}");
    session.set("WAYLEAVE_TOKEN", &token);
    let (answers, ..) = over_stdio(&session, &talk);
    assert!(answers[1]["result"]["isError"] != true, "{answers:?}");
    session.set("WAYLEAVE_TOKEN", "wlc_wrong");
    let (answers, status, _) = over_stdio(&session, &talk);
    assert_eq!(status, 0);
    assert!(
        answers.iter().all(|it| it["error"]["code"] == -32001),
        "{answers:?}"
    );
}

#[test]
fn a_grant_that_settings_name_and_nobody_made_is_told_by_check_doctor_and_serve() {
    let session = Session::with_dataset();
    session.run(&["connect", "music"]).exits(0);
    let made = session.run(&["grant", "create", "--dataset", "music", "--json"]);
    let made = made.exits(0).document()["grant"]["id"].clone();
    let good = made.as_str().unwrap();
    let settings = |second: &str| {
        format!(
            "[auth.jwt]\nissuer = \"https://id.example.org\"\naudience = \"https://example.org\"\n\
             [[auth.jwt.packages]]\nclaim = \"groups\"\ncontains = \"a\"\ngrants = [\"{good}\"]\n\
             [[auth.jwt.packages]]\ngrants = [\"{good}\", \"{second}\"]\n"
        )
    };
    let said = "rule 2 names grant `nobodys`, and there is no such grant";
    let hint = "`wayleave grant list`";
    for (second, told) in [("nobodys", true), (good, false)] {
        session.write("wayleave.toml", settings(second));
        let checked = session.run(&["check"]).exits(0).all();
        let document = session.run(&["check", "--json"]).exits(0).document();
        let examined = session.run(&["doctor"]).exits(0).all();
        let served = Serving::start(&session).stop();
        for all in [checked, document["settings"].to_string(), examined, served] {
            assert_eq!(
                (all.contains(said), all.contains(hint)),
                (told, told),
                "{all}"
            );
        }
    }
}

#[test]
fn what_another_process_revokes_is_refused_on_the_next_call() {
    let (session, token, id) = served();
    let server = Serving::start(&session);
    let schema = |token| server.call("/mcp", Some(token), "schema", &json!({}));
    let (status, body) = schema(&token);
    assert!(status == 200 && body.contains("artist"), "{body}");
    // A token issued meanwhile is valid at once, with exactly its own access.
    let (late, _) = issue(&session, &[]);
    let (status, body) = schema(&late);
    assert!(status == 200 && !body.contains("artist"), "{body}");
    session.run(&["token", "revoke", &id]).exits(0);
    let (status, refused) = schema(&token);
    assert_eq!(status, 401);
    assert!(refused.contains("the token was revoked"), "{refused}");
    server.stop();
}

#[test]
fn no_token_dsn_or_key_comes_out_anywhere_whatever_is_sent() {
    let (mut session, token, id) = served();
    let (owner, _) = issue(&session, &["--kind", "owner"]);
    let (revoked, revoked_id) = issue(&session, &[]);
    session.run(&["token", "revoke", &revoked_id]).exits(0);
    let jwt = "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0.eyJzdWIiOiJodXNoLWh1c2gifQ.c2VjcmV0c2ln";
    session.set("WAYLEAVE_LOG", "trace");
    session.set("RUST_LOG", "trace");
    let dsn = session.variable("MUSIC_DSN").to_owned();
    let server = Serving::start(&session);
    let mut seen = vec![server.arguments()];
    let send = |path: &str, token: Option<&str>, arguments: &Value| {
        ["schema", "query_records", "connect_dataset", "nonsense"].map(|tool| {
            let (status, response) = server.call(path, token, tool, arguments);
            assert_ne!(status, 0);
            response
        })
    };
    let broken = json!({ "stream": "artist", "filter": { "Name": { "like": 1 } } });
    for given in [
        &token,
        &owner,
        &revoked,
        jwt,
        "wlc_nonsense-hush-hush",
        "hush-hush",
    ] {
        for arguments in [json!({}), json!({ "stream": "artist" }), broken.clone()] {
            seen.extend(send("/mcp", Some(given), &arguments));
        }
        seen.extend(send(
            &format!("/mcp?access_token={given}"),
            None,
            &json!({}),
        ));
        seen.extend(send(&format!("/mcp/{given}"), Some(given), &json!({})));
        seen.push(server.raw(&format!(
            "GET /mcp HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer {given}\r\n\
             Connection: close\r\n\r\n"
        )));
        seen.push(server.raw(&format!(
            "GET /{given} HTTP/1.1\r\nConnection: close\r\nAuthorization: {given}\r\n\r\n"
        )));
    }
    seen.push(server.stop());
    for text in &seen {
        for secret in [
            &token,
            &owner,
            &revoked,
            jwt,
            "hush-hush",
            &dsn,
            "c2VjcmV0c2ln",
        ] {
            assert!(!text.contains(secret), "{secret} in:\n{text}");
        }
    }
    assert!(
        seen.iter().any(|text| text.contains("artist")),
        "nothing was read at all"
    );
    // The files of the program contain none either.
    let shown = session
        .run(&["token", "list", "--all", "--json"])
        .exits(0)
        .stdout;
    assert!(shown.contains(&id));
    let kept = Command::new("grep")
        .args(["-rlaF", "-e", &token, "-e", &owner, "-e", &revoked, "."])
        .current_dir(session.here())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(kept.stdout).unwrap(), "");
}
