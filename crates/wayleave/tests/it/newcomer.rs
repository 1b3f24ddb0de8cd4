//! The experience of someone who has read only the first page: the demo, a store that differs from
//! its declaration, and the next step after each refusal.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use crate::session::{CommandOutput, Session, program};

/// A project with a live dataset `odd` over this SQLite store.
fn odd(sql: &str) -> Session {
    let mut session = Session::in_project();
    let path = session.keep_sqlite("odd.db", sql);
    session.set("ODD_DSN", path.to_str().unwrap());
    for words in [
        "source add odd --kind sqlite --env ODD_DSN",
        "propose odd",
        "ratify odd",
        "connect odd",
    ] {
        let words: Vec<_> = words.split(' ').collect();
        session.run(&words).exits(0);
    }
    session
}

fn readme() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    std::fs::read_to_string(path).unwrap()
}

/// Checks that the demo's answers are those shown in the README.
fn is_as_the_readme_shows(demo: &Session) {
    let readme = readme();
    for words in [
        &[
            "query",
            "port_calls",
            "--filter",
            "{\"vessel.flag\": \"PA\"}",
            "--fields",
            "arrived_at,vessel.name",
            "--limit",
            "3",
            "--json",
        ][..],
        &[
            "aggregate",
            "cargo",
            "--metric",
            "sum:tonnes",
            "--metric",
            "count",
            "--by",
            "commodity",
            "--filter",
            "{\"call.vessel.kind\": \"tanker\"}",
            "--limit",
            "3",
            "--json",
        ],
    ] {
        let data = &demo.run(words).exits(0).document()["data"];
        let rows = data["rows"].as_array().unwrap();
        for row in rows.iter().chain([&data["fields"]]) {
            let cells = row.as_array().unwrap().iter();
            let line: String = cells
                .map(|cell| match cell.as_str() {
                    Some(text) => format!("|{text}"),
                    None => format!("|{cell}"),
                })
                .collect();
            assert!(readme.contains(&format!("\n{line}\n")), "{line}");
        }
    }
    let refused = demo.run(&["query", "pilots", "--fields", "password_hash"]);
    refused.exits(2).says("one of: id, name, licence");
}

#[test]
fn the_mapping_in_the_readme_is_a_part_of_the_demo() {
    let readme = readme();
    let (_, after) = readme.split_once("This is what a person ratifies").unwrap();
    let (_, block) = after.split_once("```toml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let mapping = include_str!("../../src/commands/demo/harbour.toml");
    assert!(block.contains("[streams.pilots]"), "{block}");
    assert!(mapping.contains(block), "not in the demo:\n{block}");
}

#[test]
fn the_demo_is_a_project_like_any_other() {
    let mut session = Session::new();
    let mut demo = session
        .command(program())
        .args(["demo", "--http", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "Ctrl-C stops."));
    demo.kill().unwrap();
    demo.wait().unwrap();
    let mut remarks = String::new();
    let mut stderr = demo.stderr.take().unwrap();
    stderr.read_to_string(&mut remarks).unwrap();
    // The suggested command works.
    let offered = "look around in another terminal: ";
    let offered = remarks.lines().find_map(|it| it.strip_prefix(offered));
    let ran = session
        .command("sh")
        .args(["-c", offered.unwrap()])
        .output();
    CommandOutput::from_output(&ran.unwrap())
        .exits(0)
        .says("of vessels");
    session.set("WAYLEAVE_DEMO_DSN", "harbour.db");
    session.enter("wayleave-demo");
    session.run(&["check", "--live"]).exits(0);
    is_as_the_readme_shows(&session);
    session.run(&["doctor"]).exits(0).says("no problems found");
    session.run(&["index", "rebuild"]).exits(0);
    session.run(&["doctor"]).exits(0).says("all 4 are built");
}

#[test]
fn a_value_that_is_not_what_its_column_declares_can_be_served_as_text() {
    let session = odd("CREATE TABLE visits (id integer PRIMARY KEY, day DATE);
                       INSERT INTO visits VALUES (1, '2024-01-31'), (2, '31/01/2024');");
    session
        .run(&["query", "visits"])
        .exits(2)
        .says("column `day` is not of datatype `date`")
        .says("give its field another datatype or none");
    let draft = session.read("mappings/odd.toml");
    let draft = draft.replace(
        "day = { datatype = \"date\" }",
        "day = { datatype = \"string\" }",
    );
    let lines = draft.lines().filter(|line| !line.starts_with("event_time"));
    let draft = lines.collect::<Vec<_>>().join("\n");
    session.write("mappings/odd.toml", draft);
    session.run(&["check", "--live"]).exits(0);
    session.run(&["ratify", "odd"]).exits(0);
    session.run(&["connect", "odd"]).exits(0);
    session
        .run(&["query", "visits", "--sort", "day"])
        .exits(0)
        .says("1   2024-01-31\n2   31/01/2024");
}

#[test]
fn a_read_of_what_changed_says_how_the_draft_is_brought_up_to_date() {
    let session = odd("CREATE TABLE visits (id integer PRIMARY KEY, guest text);");
    let path = session.variable("ODD_DSN");
    wayleave_test::sqlite_execute(path, "ALTER TABLE visits RENAME guest TO visitor").unwrap();
    session
        .run(&["query", "visits"])
        .exits(2)
        .says("wayleave check --live")
        .says("wayleave propose");
}

#[test]
fn a_search_at_the_terminal_finds_what_is_indexed_and_says_what_is_not() {
    let session = odd("CREATE TABLE notes (id integer PRIMARY KEY, body text);
                       INSERT INTO notes VALUES (1, 'a <b> tidal & harbour'), (2, 'inland');");
    session
        .run(&["search", "harbour"])
        .exits(2)
        .says("wayleave index rebuild");
    session.run(&["index", "rebuild"]).exits(0);
    session
        .run(&["search", "harbour"])
        .exits(0)
        .says("1 hit")
        .says("odd/notes:1")
        .says("a <b> tidal & *harbour*");
    let none = session.run(&["search", "zebra"]).exits(0).says("0 hits");
    assert!(!none.stdout.contains("\n\n"), "{}", none.stdout);
    let found = session.run(&["search", "harbour", "--json"]).exits(0);
    assert_eq!(found.document()["data"]["results"][0]["id"], "odd/notes:1");
}

#[test]
fn nobody_to_ask_is_told_in_words_that_fit_the_command() {
    let session = Session::with_dataset();
    session
        .run_unattended(&["retire", "music"])
        .exits(2)
        .says("only a person at a terminal can answer here")
        .says("nothing was retired");
}

#[test]
fn a_reader_that_has_gone_away_is_no_failure() {
    let session = Session::with_dataset();
    for words in ["--help", "datasets", "diff music", "completions bash"] {
        let mut child = session
            .command(program())
            .args(words.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ran = CommandOutput::from_output(&child.wait_with_output().unwrap()).exits(0);
        assert_eq!(ran.stderr, "", "{words}");
    }
}

#[test]
fn a_slip_in_the_settings_is_told_with_what_was_meant() {
    let session = Session::in_project();
    session.write("wayleave.toml", "[serve]\nanonymus = true\n");
    for command in ["datasets", "serve"] {
        session
            .run(&[command])
            .exits(2)
            .says("line 2")
            .says("did you mean `anonymous`?");
    }
    session.run(&["doctor"]).exits(1).says("did you mean");
}

#[test]
fn two_datasets_of_one_source_are_served_beside_each_other() {
    let session = odd("CREATE TABLE visits (id integer PRIMARY KEY);");
    for words in [
        "propose odd --dataset other",
        "check --live",
        "ratify other",
        "connect other",
        "query visits --connection odd",
        "query visits --connection other",
    ] {
        let words: Vec<_> = words.split(' ').collect();
        session.run(&words).exits(0);
    }
}

#[test]
fn a_token_is_listed_with_those_of_its_grants_that_have_ended() {
    let session = Session::with_dataset();
    let token = ["token", "create", "--all-of", "music", "--json"];
    session.run(&token).exits(0);
    let listed = session.run(&["grant", "list", "--json"]).document();
    let grant = listed["grants"][0]["id"].as_str().unwrap();
    let tokens = session.run(&["token", "list"]).exits(0).says(grant);
    assert!(!tokens.stdout.contains("ended"), "{}", tokens.stdout);
    session.run(&["grant", "revoke", grant]).exits(0);
    let ended = format!("{grant}(ended)");
    session.run(&["token", "list"]).exits(0).says(&ended);
}

#[test]
fn a_text_that_no_answer_has_room_for_is_read_in_pieces() {
    let session = odd("CREATE TABLE letters (id INTEGER PRIMARY KEY, body TEXT);
         INSERT INTO letters VALUES (1, hex(zeroblob(40000)));");
    let page = session.run(&["query", "letters"]).exits(0);
    page.says("cut: body of row 1 shows 1000 of 80000 characters");
    let first = session.run(&["fetch", "odd/letters:1"]).exits(0);
    let all = first.all();
    let (_, next) = all.split_once("next: the same with `--offset ").unwrap();
    let next = next.split('`').next().unwrap();
    let last = session
        .run(&["fetch", "odd/letters:1", "--offset", next])
        .exits(0);
    let zeros = |ran: &CommandOutput| ran.stdout.matches('0').count();
    assert_eq!(zeros(&first) + zeros(&last), 80_000);
    assert!(!last.all().contains("--offset"), "{}", last.stderr);
}

#[test]
fn a_source_whose_variable_is_not_set_is_told_as_that_and_not_as_out_of_reach() {
    let mut session = odd("CREATE TABLE letters (id INTEGER PRIMARY KEY);");
    let install = session.run(&["client", "install", "claude-code"]).exits(0);
    install.says("start Claude Code where `ODD_DSN` is set");
    session.unset("ODD_DSN");
    let read = session.run(&["query", "letters", "--json"]).exits(2);
    let error = &read.document()["error"];
    assert_eq!(
        (&error["reason"], &error["retryable"]),
        (&"no_dsn".into(), &false.into())
    );
    let read = session.run(&["query", "letters"]).exits(2);
    read.says("wayleave doctor").says("has no usable DSN");
    let connect = session.run(&["connect", "odd"]).exits(1);
    connect
        .says("`ODD_DSN` is not set")
        .says("hint: see that the source can be read");
}

#[test]
fn what_is_not_live_is_looked_for_where_it_would_be() {
    let session = Session::in_project();
    let read = session.run(&["query", "letters"]).exits(2);
    read.says("no stream `letters`").says("`wayleave datasets`");
}

#[test]
fn a_ledger_that_cannot_be_written_says_where_to_look() {
    let session = odd("CREATE TABLE letters (id INTEGER PRIMARY KEY);");
    // Permissions do not stop root; a folder in place of the log's file stops every user.
    let folder = session.here().join(".wayleave");
    for name in ["ledger.db-wal", "ledger.db-shm"] {
        let _ = std::fs::remove_file(folder.join(name));
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    for words in [&["query", "letters"][..], &["doctor"]] {
        let ran = session.run(words);
        assert_ne!(ran.status, 0);
        ran.says("may write to the `.wayleave` folder");
    }
}
