//! `wayleave propose`: writes a draft over a source, or brings one up to date.

use std::{fmt::Write as _, path::Path, process::ExitCode};

use serde_json::json;
use wayleave_model::{
    parse,
    problem::{Problem, ProblemCode, shown},
    propose::{LeftOut, ProposeOptions},
};
use wayleave_project::proposal::{DraftTarget, Proposal};

use crate::{arguments, columns, failure::Failure, output::Output, progress::Spinner};

/// The most lines of a list that are shown.
const MAX_LINES: usize = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The source.
    #[arg(value_name = "SOURCE", value_parser = arguments::source)]
    source: String,
    /// What to call the dataset [default: as the source].
    #[arg(long, value_name = "NAME", value_parser = arguments::dataset)]
    dataset: Option<String>,
    /// The schema (PostgreSQL) or database (MySQL) [default: the draft's, else the session's own].
    #[arg(long, value_name = "SCHEMA")]
    schema: Option<String>,
    /// Print the draft and write nothing.
    #[arg(long)]
    stdout: bool,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let state = project.governance().ledger().state().await?;
    let mut options = ProposeOptions::for_source(&arguments.source);
    if let Some(dataset) = arguments.dataset {
        // A source may have several datasets; a connection belongs to one.
        options.connection.clone_from(&dataset);
        options.dataset = dataset;
    }
    let target = DraftTarget::prepare(&project, options, arguments.schema.as_deref())?;
    let spinner = Spinner::start("reading the catalogue");
    let catalogue = super::source_probe()
        .catalogue(&state, &arguments.source, target.schema(), &|step| {
            spinner.hear(step);
        })
        .await?;
    drop(spinner);
    let proposal = target.propose(&catalogue)?;
    let checked = parse::parse(proposal.text.as_bytes());
    let problems = checked
        .as_ref()
        .err()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if arguments.stdout {
        return print(&proposal, problems, output);
    }
    if !proposal.is_unchanged {
        target.write(&proposal)?;
    }
    let next = if problems.is_empty() {
        format!(
            "read {}, then: wayleave ratify {}",
            target.shown, proposal.dataset
        )
    } else {
        format!("wayleave check {}", proposal.dataset)
    };
    let guesses = guesses(&proposal.text);
    let document = json!({
        "dataset": proposal.dataset,
        "file": target.shown,
        "is_new": proposal.is_new,
        "is_unchanged": proposal.is_unchanged,
        "changes": proposal.changes,
        "guesses": guesses.iter().map(|it| json!({ "entry": it.entry, "note": it.note })).collect::<Vec<_>>(),
        "left_out": proposal.left_out.iter().map(left_out).collect::<Vec<_>>(),
        "notes": proposal.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "problems": problems,
        "next": next,
    });
    let mut text = headline(&target.shown, &proposal, checked.as_ref().ok());
    section(&mut text, "the source changed", &changes(&proposal));
    if proposal.is_new {
        let rows = guesses
            .iter()
            .map(|it| vec![it.entry.clone(), it.note.clone()]);
        section(&mut text, "guessed", &rows.collect::<Vec<_>>());
    }
    let rows: Vec<_> = proposal.left_out.iter().map(left_out_row).collect();
    section(&mut text, "left out", &rows);
    for note in &proposal.notes {
        let _ = write!(text, "\nnote: {note}");
    }
    if !problems.is_empty() {
        let _ = write!(
            text,
            "\nit does not check yet: {}",
            columns::count(problems.len(), "problem")
        );
    }
    let _ = write!(text, "\nnext: {next}");
    output.answer(&document, text);
    Ok(ExitCode::SUCCESS)
}

/// The draft itself. One that holds a connection string is not repeated.
fn print(proposal: &Proposal, problems: &[Problem], output: Output) -> Result<ExitCode, Failure> {
    let secret = |it: &&Problem| it.code == ProblemCode::ConnectionString;
    if problems.iter().any(|it| secret(&it)) {
        return Err(Failure::usage(
            "the draft holds something that looks like a connection string; it is not repeated here",
        )
        .hint(format!("`wayleave check {}` shows where", proposal.dataset)));
    }
    output.document_or(
        &json!({ "dataset": proposal.dataset, "text": proposal.text }),
        &proposal.text,
    );
    Ok(ExitCode::SUCCESS)
}

fn headline(
    file: &str,
    proposal: &Proposal,
    mapping: Option<&wayleave_model::mapping::Mapping>,
) -> String {
    let did = match (proposal.is_new, proposal.is_unchanged) {
        (_, true) => "nothing to change in",
        (true, _) => "wrote",
        (false, _) => "brought up to date:",
    };
    let mut text = format!("{did} {file}");
    if let Some(mapping) = mapping {
        let fields = mapping.streams.iter().map(|it| it.fields.len()).sum();
        let relations = mapping.streams.iter().map(|it| it.relations.len()).sum();
        let _ = write!(
            text,
            " ({}, {}, {})",
            columns::count(mapping.streams.len(), "stream"),
            columns::count(fields, "field"),
            columns::count(relations, "relation")
        );
    }
    text
}

fn section(text: &mut String, title: &str, rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let shown = rows.get(..MAX_LINES).unwrap_or(rows);
    let _ = write!(text, "\n{title}:\n{}", columns::indented(shown));
    let more = rows.len() - shown.len();
    if more > 0 {
        let _ = write!(text, "\n  and {more} more, marked in the draft");
    }
}

fn changes(proposal: &Proposal) -> Vec<Vec<String>> {
    let changes = proposal.changes.iter();
    changes.map(|change| vec![change.to_string()]).collect()
}

fn left_out(it: &LeftOut) -> serde_json::Value {
    json!({ "table": it.table, "column": it.column, "reason": it.reason.to_string() })
}

fn left_out_row(it: &LeftOut) -> Vec<String> {
    let what = match &it.column {
        Some(column) => format!("{}.{}", shown(&it.table), shown(column)),
        None => shown(&it.table),
    };
    vec![what, it.reason.to_string()]
}

/// Something a human should weigh.
struct Guess {
    entry: String,
    note: String,
}

/// The guesses, as the draft's own comments tell them.
fn guesses(text: &str) -> Vec<Guess> {
    let mut stream = "";
    let mut guesses = Vec::new();
    for line in text.lines() {
        if let Some(header) = line.strip_prefix("[streams.") {
            stream = header.split([']', '.']).next().unwrap_or_default();
        }
        let marked = ["  # guess: ", "  # weigh: "]
            .into_iter()
            .find_map(|mark| line.split_once(mark));
        if let Some((entry, note)) = marked.filter(|(entry, _)| !entry.starts_with('#')) {
            let entry = entry.split(" = {").next().unwrap_or(entry);
            guesses.push(Guess {
                entry: format!("{stream}: {entry}"),
                note: note.to_owned(),
            });
        }
    }
    guesses
}
