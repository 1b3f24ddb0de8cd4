//! Only a person at a terminal can answer a question.

use std::io::Write as _;
use std::process::Stdio;

use crate::session::{CommandOutput, Session, program};

/// Runs `wayleave` on its own terminal, and types keys there.
fn type_keys(session: &Session, words: &str, keys: &str) -> CommandOutput {
    type_line(session, &format!("{} {words}", program().display()), keys)
}

/// Runs a shell line on its own terminal, and types keys there.
fn type_line(session: &Session, line: &str, keys: &str) -> CommandOutput {
    session.on_terminal(line, keys)
}

fn state(session: &Session) -> String {
    let listed = session.run(&["datasets", "--json"]).document();
    listed["datasets"][0]["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_person_who_types_the_name_has_ratified_and_one_who_types_anything_else_has_not() {
    let session = Session::with_draft();
    for keys in ["n\n", "\n", "y\n", "yes\n", "musi\n", "Music\n"] {
        type_keys(&session, "ratify music", keys)
            .exits(1)
            .says("to ratify `music` as")
            .says("type its name")
            .says("nothing was ratified");
        assert_eq!(state(&session), "draft");
    }
    type_keys(&session, "ratify music", "music\n")
        .exits(0)
        .says("ratified `music` by");
    assert_eq!(state(&session), "ratified");
    type_keys(&session, "retire music", "y\n")
        .exits(1)
        .says("nothing was retired");
    assert_eq!(state(&session), "ratified");
    type_keys(&session, "retire music", "music\n").exits(0);
    assert_eq!(state(&session), "retired");
}

#[test]
fn a_name_through_a_pipe_is_no_answer_even_on_a_terminal() {
    let session = Session::with_draft();
    let mut child = session
        .command(program())
        .args(["ratify", "music"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may end before the input is written.
    let _ = child.stdin.take().unwrap().write_all(b"music\nmusic\n");
    CommandOutput::from_output(&child.wait_with_output().unwrap())
        .exits(2)
        .says("only a person at a terminal can answer here");
    assert_eq!(state(&session), "draft");
    let line = format!("echo music | {} ratify music", program().display());
    type_line(&session, &line, "")
        .exits(2)
        .says("only a person at a terminal can answer here");
    assert_eq!(state(&session), "draft");
}

#[test]
fn names_from_a_store_do_not_move_the_cursor_even_on_a_terminal() {
    let mut session = Session::in_project();
    let sql =
        "CREATE TABLE \"a\u{1b}]0;owned\u{7}b\" (id integer PRIMARY KEY, \"c\u{9b}2J\" text);";
    let path = session.keep_sqlite("evil.db", sql);
    session.set("EVIL_DSN", path.to_str().unwrap());
    session
        .run(&[
            "source", "add", "evil", "--kind", "sqlite", "--env", "EVIL_DSN",
        ])
        .exits(0);
    for words in [
        "introspect evil",
        "propose evil --stdout",
        "propose evil",
        "check --live",
    ] {
        let shown = type_keys(&session, words, "").all();
        assert!(
            !shown.contains("\u{1b}]0;") && !shown.contains('\u{9b}'),
            "{words}: {shown:?}"
        );
        assert!(!shown.contains('\u{7}'), "{words}: {shown:?}");
    }
}

#[test]
fn logs_are_coloured_on_a_terminal_unless_nobody_wants_colours() {
    let mut session = Session::with_dataset();
    session.run(&["connect", "music"]).exits(0);
    session.set("MUSIC_DSN", "nowhere.db");
    let coloured = |session: &Session| {
        let shown = type_keys(session, "query album", "").says("a read failed");
        shown.all().contains('\u{1b}')
    };
    assert!(coloured(&session));
    session.set("NO_COLOR", "1");
    assert!(!coloured(&session));
}

#[test]
fn a_table_that_a_terminal_cannot_hold_is_told_record_by_record() {
    let session = Session::with_dataset();
    session.run(&["connect", "music"]).exits(0);
    let sql = "INSERT INTO Genre (GenreId, Name) VALUES (901, 'Harbour rock')";
    wayleave_test::sqlite_execute(session.variable("MUSIC_DSN"), sql).unwrap();
    let query = r#"query genre --filter '{"GenreId": 901}'"#;
    for (columns, shown) in [
        (80, "GenreId  Name\r\n901      Harbour rock"),
        (20, "GenreId  901\r\nName     Harbour rock"),
    ] {
        let line = format!("stty cols {columns}; {} {query}", program().display());
        type_line(&session, &line, "").exits(0).says(shown);
    }
}

#[test]
fn the_calls_are_drawn_again_and_again_on_a_terminal() {
    let session = Session::in_project();
    let program = program();
    let line = format!("timeout 10 '{}' top --interval 1", program.display());
    let shown = type_line(&session, &line, "");
    let drawn = shown.stdout.matches("calls in 60 s").count();
    assert!(drawn > 1, "{drawn}: {}", shown.stdout);
    assert_eq!(
        shown.status, 124,
        "it ends when it is stopped: {}",
        shown.stdout
    );
}
