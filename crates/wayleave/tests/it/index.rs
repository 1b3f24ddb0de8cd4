//! Full-text indexes through the program: shown, rebuilt, and built while serving.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};

use crate::session::{Session, program};

/// A project with a live dataset that has a known genre.
fn music() -> Session {
    let session = Session::with_dataset();
    let path = session.variable("MUSIC_DSN");
    let sql = "INSERT INTO Genre (GenreId, Name) VALUES (901, 'Harbour rock'), (902, 'Tidal jazz')";
    wayleave_test::sqlite_execute(path, sql).unwrap();
    session
}

/// Every word file of every index of the project.
fn files(project: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![project.join(".wayleave/index")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|it| it == "term") {
                found.push(entry.path());
            }
        }
    }
    found
}

fn damage(project: &Path) {
    for file in files(project) {
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        fs::write(&file, bytes).unwrap();
    }
}

fn states(session: &Session, status: i32) -> Vec<String> {
    let ran = session.run(&["index", "status", "--json"]).exits(status);
    let document = ran.document();
    let indexes = document["indexes"].as_array().unwrap();
    indexes
        .iter()
        .map(|it| it["state"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn indexes_are_looked_at_and_made_again() {
    let session = music();
    session
        .run(&["index", "status"])
        .exits(0)
        .says("nothing to index");
    session.run(&["connect", "music"]).exits(0);
    let absent = states(&session, 0);
    assert!(
        !absent.is_empty() && absent.iter().all(|it| it == "absent"),
        "{absent:?}"
    );
    session
        .run(&["index", "rebuild", "musik"])
        .exits(2)
        .says("no active dataset `musik`");
    session
        .run(&["index", "rebuild", "music"])
        .exits(0)
        .says("ready");
    assert!(states(&session, 0).iter().all(|it| it == "ready"));
    damage(session.here());
    // An index without records has no words to damage.
    assert!(states(&session, 1).contains(&"damaged".to_owned()));
    session
        .run(&["doctor"])
        .says("is damaged, and is never searched");
    session.run(&["index", "rebuild"]).exits(0);
    assert!(states(&session, 0).iter().all(|it| it == "ready"));
}

struct Agent {
    server: Child,
    ask: ChildStdin,
    hear: BufReader<ChildStdout>,
}

impl Agent {
    /// Starts a server, and connects a client to it.
    fn new(session: &Session) -> Self {
        let mut server = Command::new(program())
            .args(["serve", "--stdio"])
            .current_dir(session.here())
            .env("MUSIC_DSN", session.variable("MUSIC_DSN"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut agent = Self {
            ask: server.stdin.take().unwrap(),
            hear: BufReader::new(server.stdout.take().unwrap()),
            server,
        };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        agent.ask(0, "initialize", &hello);
        agent.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn leaves(self) {
        let Self {
            mut server,
            ask,
            hear,
        } = self;
        drop((ask, hear));
        assert!(server.wait().unwrap().success());
    }

    fn tell(&mut self, message: &Json) {
        writeln!(self.ask, "{message}").unwrap();
    }

    fn ask(&mut self, id: u64, method: &str, params: &Json) -> Json {
        self.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.answer_to(id)
    }

    fn answer_to(&mut self, id: u64) -> Json {
        loop {
            let mut line = String::new();
            assert!(
                self.hear.read_line(&mut line).unwrap() > 0,
                "the server left"
            );
            let message: Json = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }
}

#[test]
fn serving_makes_what_is_missing_and_never_searches_what_is_damaged() {
    let session = music();
    session.run(&["connect", "music"]).exits(0);
    session.run(&["index", "rebuild"]).exits(0);
    damage(session.here());
    let mut agent = Agent::new(&session);
    let rock = json!({ "name": "search", "arguments": { "q": "rock", "streams": ["genre"] } });
    // Until the index is built, every answer says that it is being built.
    let found = (1..).find_map(|id| {
        let result = agent.ask(id, "tools/call", &rock);
        if result["isError"] == true {
            let reason = &result["structuredContent"]["error"]["reason"];
            assert_eq!(reason, "indexing", "{result}");
            return None;
        }
        Some(result)
    });
    let found = found.unwrap();
    let hits = found["structuredContent"]["data"]["results"]
        .as_array()
        .unwrap();
    assert!(!hits.is_empty(), "{found}");
    let id = &hits[0]["id"];
    let fetch = json!({ "name": "fetch", "arguments": { "id": id } });
    let fetched = agent.ask(1_000_000, "tools/call", &fetch);
    assert_eq!(&fetched["structuredContent"]["id"], id);
    agent.leaves();
}

#[test]
fn what_is_indexed_already_is_found_by_the_first_call() {
    let session = music();
    session.run(&["connect", "music"]).exits(0);
    session.run(&["index", "rebuild"]).exits(0);
    let mut agent = Agent::new(&session);
    let rock = json!({ "name": "search", "arguments": { "q": "harbour rock" } });
    let found = agent.ask(1, "tools/call", &rock);
    let hits = &found["structuredContent"]["data"]["results"];
    assert_eq!(hits[0]["title"], "Harbour rock", "{found}");
    agent.leaves();
}

/// The file that names the current index of a stream, replaced by a pipe: opening the index blocks
/// until [`release`](Self::release).
struct HeldIndex {
    current: PathBuf,
    name: String,
}

impl HeldIndex {
    fn new(session: &Session, stream: &str) -> Self {
        let current = session.here().join(".wayleave/index/music");
        let current = current.join(stream).join("CURRENT");
        let name = fs::read_to_string(&current).unwrap();
        fs::remove_file(&current).unwrap();
        let pipe = Command::new("mkfifo").arg(&current).status().unwrap();
        assert!(pipe.success());
        Self { current, name }
    }

    /// Waits until the server has begun to open the index, runs `meanwhile`, then releases it.
    fn release(self, meanwhile: impl FnOnce()) {
        let mut reader = fs::File::options().write(true).open(&self.current).unwrap();
        meanwhile();
        let whole = self.current.with_extension("whole");
        fs::write(&whole, &self.name).unwrap();
        fs::rename(&whole, &self.current).unwrap();
        reader.write_all(self.name.as_bytes()).unwrap();
    }
}

#[test]
fn serving_begins_before_indexes_are_opened_and_a_search_waits_for_its_own() {
    let session = music();
    session.run(&["connect", "music"]).exits(0);
    session.run(&["index", "rebuild"]).exits(0);
    let held = HeldIndex::new(&session, "genre");
    let mut agent = Agent::new(&session);
    let rock = json!({ "name": "search", "arguments": { "q": "harbour", "streams": ["genre"] } });
    held.release(|| {
        let listed = agent.ask(1, "tools/list", &json!({}));
        assert!(listed["tools"].is_array(), "{listed}");
        agent.tell(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": rock }));
        // Answered while the search before it is still waiting.
        let fetch = json!({ "name": "fetch", "arguments": { "id": "music/genre:901" } });
        let fetched = agent.ask(3, "tools/call", &fetch);
        assert_eq!(fetched["structuredContent"]["id"], "music/genre:901");
    });
    let found = agent.answer_to(2);
    let hits = &found["structuredContent"]["data"]["results"];
    assert_eq!(hits[0]["title"], "Harbour rock", "{found}");
    agent.leaves();
}
