//! Parses a command line into arguments, without ever repeating a secret.
//!
//! A DSN belongs into an environment variable. A DSN on the command line is refused before anything
//! else reads it, and no error message repeats a word unless it is plainly no secret.

use std::{ffi::OsString, net::SocketAddr};

use clap::{
    CommandFactory as _, Parser as _,
    error::{ContextKind, ContextValue, ErrorKind},
};
use wayleave_model::{
    grant::TokenKind,
    names::NameKind,
    sensitive::{self, WITHHELD},
};

use crate::{cli::Cli, failure::Failure};

/// The result of parsing.
pub(crate) enum ParsedArguments {
    Run(Box<Cli>),
    /// The requested help or version.
    Print(String),
}

/// Parses a command line, the program's name first.
pub(crate) fn parse(words: Vec<OsString>) -> Result<ParsedArguments, Failure> {
    for (place, word) in words.iter().enumerate().skip(1) {
        let word = word.to_string_lossy();
        if sensitive::looks_like_dsn(&word) {
            let (what, hint) = if TokenKind::from_prefix_of(&word).is_some() {
                (
                    "a token",
                    "name a token by its id, as `wayleave token list` shows it",
                )
            } else {
                (
                    "a connection string or a password",
                    "put the DSN into an environment variable and name that: \
                     `wayleave source add NAME --kind KIND --env VARIABLE`",
                )
            };
            return Err(Failure::usage(format!(
                "argument {place} looks like {what}; it is not repeated here"
            ))
            .hint(hint));
        }
    }
    let help = help_of(&words);
    match Cli::try_parse_from(words) {
        Ok(cli) => Ok(ParsedArguments::Run(Box::new(cli))),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                Ok(ParsedArguments::Print(error.render().to_string()))
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                Err(Failure::usage("no command is given").hint(format!("`{help}` lists them")))
            }
            _ => Err(failure(&error).hint(format!("`{help}` shows how it is used"))),
        },
    }
}

/// Whether `--json` is given, even when the rest cannot be parsed.
pub(crate) fn wants_json(words: &[OsString]) -> bool {
    words.iter().any(|word| word == "--json")
}

/// The parser's error, with words that may be secrets withheld.
fn failure(error: &clap::Error) -> Failure {
    let mut text = error.render().to_string();
    for (kind, value) in error.context() {
        let given = matches!(
            kind,
            ContextKind::InvalidArg | ContextKind::InvalidSubcommand | ContextKind::InvalidValue
        );
        let words = match value {
            ContextValue::String(word) => vec![word.as_str()],
            ContextValue::Strings(words) => words.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        for word in words.into_iter().filter(|_| given) {
            if !is_plain(word) {
                text = text.replace(word, WITHHELD);
            }
        }
    }
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    let details = lines
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:"))
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let message = details.fold(message, |message, line| {
        let line = line.strip_prefix("tip: ").unwrap_or(line);
        let joint = if message.ends_with(':') { "" } else { ";" };
        format!("{message}{joint} {line}")
    });
    Failure::usage(message)
}

/// The help command for the subcommand that these words name, as far as they do. Contains only our
/// own names.
fn help_of(words: &[OsString]) -> String {
    let mut known = Cli::command();
    let mut named = String::from("wayleave");
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        let Some(inner) = known.find_subcommand(word).cloned() else {
            continue;
        };
        named.push(' ');
        named.push_str(inner.get_name());
        known = inner;
    }
    named + " --help"
}

/// Whether a word is an option, a command or a name of ours, or spelt like one.
fn is_plain(word: &str) -> bool {
    let spelt = word.trim_start_matches('-');
    let like_ours = spelt
        .chars()
        .all(|c| c.is_ascii_alphabetic() || c == '-' || c == '_');
    let mut known = Cli::command();
    known.build();
    (like_ours && !spelt.is_empty() && spelt.len() <= 32) || is_argument(&known, word)
}

/// Whether a word is the parser's spelling of one of our own arguments.
fn is_argument(command: &clap::Command, word: &str) -> bool {
    command.get_arguments().any(|it| it.to_string() == word)
        || command.get_subcommands().any(|it| is_argument(it, word))
}

/// Parses the name of a dataset.
pub(crate) fn dataset(word: &str) -> Result<String, String> {
    parse_name(NameKind::Dataset, word)
}

/// Parses the name of a source.
pub(crate) fn source(word: &str) -> Result<String, String> {
    parse_name(NameKind::Source, word)
}

/// Parses the address to listen on.
pub(crate) fn address(word: &str) -> Result<SocketAddr, String> {
    let needs = "write a numeric address and a port up to 65535, such as `127.0.0.1:7411`";
    word.parse().map_err(|_| needs.to_owned())
}

fn parse_name(kind: NameKind, word: &str) -> Result<String, String> {
    if kind.matches(word) {
        Ok(word.to_owned())
    } else {
        Err(format!("a {} matches `{}`", kind.noun(), kind.pattern()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(words: &[&str]) -> String {
        let words = words.iter().map(OsString::from).collect();
        match parse(words) {
            Err(failure) => {
                let lines = failure.why.lines();
                let texts = lines.iter().map(|(kind, text)| format!("{kind}: {text}"));
                texts.collect::<Vec<_>>().join("\n")
            }
            Ok(_) => panic!("it parsed"),
        }
    }

    #[test]
    fn no_complaint_repeats_a_word_that_could_be_a_secret() {
        for words in [
            &["wayleave", "postgres://u:hunter2@h/db"][..],
            &["wayleave", "diff", "postgres://u:hunter2 with spaces@h/db"],
            &["wayleave", "diff", "root:hunter2@db"],
            &["wayleave", "root:hunter2@db"],
            &["wayleave", "--hunter2=x@y", "diff"],
            &[
                "wayleave",
                "source",
                "add",
                "a",
                "--kind",
                "root:hunter2@db",
            ],
            &["wayleave", "source", "add", "a", "--kind=root:hunter2@db"],
            &["wayleave", "source", "add", "root:hunter2@db"],
            &["wayleave", "source", "test", "a", "root:hunter2@db"],
            &["wayleave", "audit", "--limit", "hunter2"],
            &["wayleave", "audit", "--head", "hunter2"],
            &["wayleave", "completions", "hunter2"],
            &["wayleave", "datasets", "hunter2"],
        ] {
            let complaint = complaint(words);
            assert!(!complaint.contains("hunter2"), "{words:?} gave {complaint}");
        }
    }

    #[test]
    fn a_complaint_is_one_sentence_and_names_the_help_of_its_command() {
        for (words, expected) in [
            (
                &["wayleave", "source"][..],
                "error: no command is given\nhint: `wayleave source --help` lists them",
            ),
            (
                &["wayleave"],
                "error: no command is given\nhint: `wayleave --help` lists them",
            ),
            (
                &["wayleave", "grant", "create"],
                "error: the following required arguments were not provided: --dataset <DATASET>\n\
                 hint: `wayleave grant create --help` shows how it is used",
            ),
            (
                &["wayleave", "query", "people", "--limit", "many"],
                "error: invalid value 'many' for '--limit <N>': invalid digit found in string\n\
                 hint: `wayleave query --help` shows how it is used",
            ),
            (
                &["wayleave", "serve", "--http", "localhost:7411"],
                "error: invalid value '(withheld)' for '--http <ADDRESS:PORT>': write a numeric \
                 address and a port up to 65535, such as `127.0.0.1:7411`\n\
                 hint: `wayleave serve --help` shows how it is used",
            ),
        ] {
            assert_eq!(complaint(words), expected);
        }
    }

    #[test]
    fn a_plain_slip_is_told_with_what_was_meant() {
        let complaint = complaint(&["wayleave", "ratfy", "crm"]);
        assert!(
            complaint.contains("'ratfy'") && complaint.contains("'ratify'"),
            "{complaint}"
        );
    }
}
