//! The reference of the command line, generated from its definition and compared with the docs.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::{Cli, EXIT_CODES};

const HEAD: &str = "# Command line

Written from the program's own definition: `WAYLEAVE_BLESS=1 cargo test -p wayleave` rewrites this
page, and a test compares it.

With `--json` the answer is one JSON document on standard output; a failure is
`{\"error\": {\"message\", \"because\", \"hint\"}}`. Remarks, questions and progress go to standard error.
";

fn reference() -> String {
    let mut root = Cli::command();
    root.build();
    let mut text = HEAD.to_owned();
    text.push_str("\n| exit code | meaning |\n| --- | --- |\n");
    for (code, meaning) in EXIT_CODES {
        let _ = writeln!(text, "| {code} | {meaning} |");
    }
    text.push_str("\nEvery command takes:\n");
    text.push_str(&table(root.get_arguments().filter(|it| it.is_global_set())));
    for command in root.get_subcommands().filter(|it| !it.is_hide_set()) {
        one(&mut text, "wayleave", command);
    }
    text
}

fn one(text: &mut String, above: &str, command: &Command) {
    if command.get_name() == "help" {
        return;
    }
    let name = format!("{above} {}", command.get_name());
    let _ = write!(text, "\n## `{name}`\n\n{}\n", about(command));
    let own: Vec<_> = command
        .get_arguments()
        .filter(|it| !it.is_global_set() && it.get_id() != "help" && it.get_id() != "version")
        .collect();
    // A command that only groups others is not run by itself.
    if !own.is_empty() || !command.has_subcommands() {
        let _ = write!(text, "\n```text\n{name}{}\n```\n", usage(&own));
    }
    if !own.is_empty() {
        text.push_str(&table(own.into_iter()));
    }
    for inner in command.get_subcommands() {
        one(text, &name, inner);
    }
}

fn about(command: &Command) -> String {
    sentence(command.get_about().map(ToString::to_string))
}

/// Restores the full stop that clap removes.
fn sentence(words: Option<String>) -> String {
    let words = words.unwrap_or_default();
    if words.ends_with('.') || words.is_empty() {
        words
    } else {
        format!("{words}.")
    }
}

fn usage(arguments: &[&Arg]) -> String {
    let words = arguments.iter().map(|it| {
        let word = spelling(it);
        let many = matches!(it.get_action(), ArgAction::Append);
        let word = if many { format!("{word}…") } else { word };
        if it.is_required_set() {
            format!(" {word}")
        } else {
            format!(" [{word}]")
        }
    });
    words.collect()
}

/// An argument as typed: `--note TEXT`, `DATASET`.
fn spelling(argument: &Arg) -> String {
    let value = argument
        .get_value_names()
        .and_then(|names| names.first())
        .map(ToString::to_string)
        .unwrap_or_default();
    match argument.get_long() {
        Some(long) if argument.get_action().takes_values() => format!("--{long} {value}"),
        Some(long) => format!("--{long}"),
        None => value,
    }
}

fn table<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let mut text = "\n| argument | meaning |\n| --- | --- |\n".to_owned();
    for argument in arguments {
        let mut meaning = sentence(argument.get_help().map(ToString::to_string));
        if argument.get_action().takes_values() {
            let words: Vec<_> = argument
                .get_possible_values()
                .iter()
                .map(|it| format!("`{}`", it.get_name()))
                .collect();
            if !words.is_empty() {
                let _ = write!(meaning, " One of {}.", words.join(", "));
            }
        }
        let defaults: Vec<_> = argument
            .get_default_values()
            .iter()
            .filter(|_| {
                argument.get_action().takes_values() && !argument.is_hide_default_value_set()
            })
            .map(|it| format!("`{}`", it.to_string_lossy()))
            .collect();
        if !defaults.is_empty() {
            let _ = write!(meaning, " Default: {}.", defaults.join(", "));
        }
        let spelt = spelling(argument).replace('|', "\\|");
        let _ = writeln!(text, "| `{spelt}` | {} |", meaning.replace('|', "\\|"));
    }
    text
}

#[test]
fn the_reference_is_what_the_program_takes() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
    wayleave_test::assert_golden(page, &reference());
}

#[test]
fn the_definition_holds_together() {
    Cli::command().debug_assert();
}
