//! The contract of every tool that any kind of package lists, one file per tool: name, description,
//! `inputSchema`, annotations and `_meta`, byte for byte.
//!
//! `WAYLEAVE_BLESS=1 cargo test -p wayleave --test it contract` rewrites the files. There is no
//! other way to rename a tool or to change its arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::serving::{hello, issue, over_stdio};
use crate::session::Session;

/// A capability of every kind, over every constraint.
const EVERY: &str = include_str!("../../../wayleave-surface/tests/it/writing/every_keyword.toml");
const DATASET: &str = "every-keyword";

/// The members of a contract.
const HELD: [&str; 5] = ["name", "description", "inputSchema", "annotations", "_meta"];

/// All schema keywords and `_meta` keys that a constraint or a tool can produce.
const GUARDED: [&str; 24] = [
    "\"required\"",
    "\"minLength\"",
    "\"maxLength\"",
    "\"pattern\"",
    "\"enum\"",
    "\"minimum\"",
    "\"maximum\"",
    "\"array\"",
    "\"items\"",
    "\"additionalProperties\"",
    "\"iri\"",
    "\"date\"",
    "\"date-time\"",
    "\"io.wayleave/type\"",
    "No two records have the same",
    "\"kind\": \"runtime\"",
    "\"kind\": \"meta\"",
    "\"scope\"",
    "\"namespace\"",
    "\"op\"",
    "\"idempotent\"",
    "\"dataset\"",
    "\"capability\"",
    "\"action\"",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/contract")
}

/// The contracts of the tools that a token lists, by name.
fn listed(session: &mut Session, token: &str) -> BTreeMap<String, String> {
    session.set("WAYLEAVE_TOKEN", token);
    let messages = [
        hello(None),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
    ];
    let (answers, ..) = over_stdio(session, &messages);
    session.unset("WAYLEAVE_TOKEN");
    let tools = answers[1]["result"]["tools"].as_array().unwrap().iter();
    let tools = tools.map(|tool| {
        let held = HELD.iter().filter_map(|key| Some((*key, tool.get(key)?)));
        let held: Map<String, Value> = held.map(|(key, it)| (key.to_owned(), it.clone())).collect();
        let text = format!("{:#}\n", sorted(&Value::Object(held)));
        (tool["name"].as_str().unwrap().to_owned(), text)
    });
    tools.collect()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().collect();
            let members = members.into_iter();
            members.map(|(key, it)| (key.clone(), sorted(it))).collect()
        }
        other => other.clone(),
    }
}

/// The contracts of the tools that every kind of package lists: a reader's, a writer's, a builder's
/// and a developer's.
fn every_package() -> BTreeMap<String, String> {
    let mut session = Session::in_project();
    let settings =
        "[project]\nname = \"project\"\n[serve]\nscopes = [\"runtime\", \"builder\", \"dev\"]\n";
    session.write("wayleave.toml", settings);
    for source in ["every", "every_rw"] {
        let words = [
            "source", "add", source, "--kind", "postgres", "--env", "NOWHERE",
        ];
        session.run(&words).exits(0);
    }
    session.write(&format!("mappings/{DATASET}.toml"), EVERY);
    session
        .run(&["ratify", DATASET, "--yes", "--offline"])
        .exits(0);
    session.run(&["connect", DATASET, "--offline"]).exits(0);
    let grant = |capabilities: &str| {
        let text = format!(
            "dataset = '{DATASET}'\ncapabilities = {capabilities}\n[streams.things]\n[streams.others]\n"
        );
        session.write("grant.toml", text);
        let made = session.run(&["grant", "create", "--file", "grant.toml", "--json"]);
        let id = &made.exits(0).document()["grant"]["id"];
        id.as_str().unwrap().to_owned()
    };
    let (read, write) = (grant("[]"), grant("['add', 'change', 'remove']"));
    let tokens = [
        issue(&session, &["--grant", &read]),
        issue(&session, &["--grant", &write]),
        issue(&session, &["--grant", &read, "--scope", "builder"]),
        issue(&session, &["--grant", &read, "--scope", "dev"]),
    ];
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    let mut counts = Vec::new();
    for (token, _) in tokens {
        let tools = listed(&mut session, &token);
        counts.push(tools.len());
        for (name, text) in tools {
            // A tool is the same for everyone who sees it.
            let known = all.entry(name.clone()).or_insert_with(|| text.clone());
            assert_eq!(*known, text, "{name}");
        }
    }
    assert_eq!(
        counts[..2],
        [5, 8],
        "readers have five, and a writer its capabilities"
    );
    // No tool requires the scope `dev` today.
    assert!(counts[2] > 5 && counts[3] == 5, "{counts:?}");
    all
}

/// The names of tools without a file, of files without a tool, and of tools that differ from their
/// file.
fn broken(tools: &BTreeMap<String, String>) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder()).into_iter().flatten();
    let files = files.map(|file| {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    });
    let files: BTreeMap<String, String> = files.collect();
    let names: BTreeSet<&String> = tools.keys().chain(files.keys()).collect();
    let broken = names
        .into_iter()
        .filter(|it| tools.get(*it) != files.get(*it));
    broken.cloned().collect()
}

#[test]
fn every_tool_of_every_package_is_as_agreed_and_nothing_changes_it_by_accident() {
    let tools = every_package();
    if std::env::var_os("WAYLEAVE_BLESS").is_some() {
        // Remove the files of tools that are no longer listed.
        let _ = std::fs::remove_dir_all(folder());
    }
    for (name, text) in &tools {
        wayleave_test::assert_golden(folder().join(format!("{name}.json")), text);
    }
    assert_eq!(broken(&tools), BTreeSet::new());
    let all: String = tools.values().map(String::as_str).collect();
    for guarded in GUARDED {
        assert!(all.contains(guarded), "no contract has {guarded}");
    }
    assert!(!all.contains("$ref"));

    // A renamed, a new and a removed tool and a changed schema each break the contract.
    let add = "every_keyword_add";
    let mut renamed = tools.clone();
    let text = renamed.remove(add).unwrap();
    renamed.insert(
        "every_keyword_put".to_owned(),
        text.replace(add, "every_keyword_put"),
    );
    assert_eq!(broken(&renamed).len(), 2);
    let mut changed = tools.clone();
    changed.insert(
        add.to_owned(),
        tools[add].replace("\"minLength\": 2", "\"minLength\": 3"),
    );
    assert_eq!(broken(&changed), BTreeSet::from([add.to_owned()]));
}
