//! A proposed draft: its contents, guesses and omissions.

use std::fmt::Write as _;

use serde_json::{Value, json};
use wayleave_model::{
    mapping::Mapping,
    parse,
    problem::{Problem, ProblemCode, quoted},
    propose::Omission,
};

use crate::{
    Explanation, Rendering, columns,
    proposal::{Proposal, Sampling},
    source_probe::UnsampledColumn,
};

/// Maximum number of lines shown of a list.
const MAX_LINES: usize = 20;
/// Where the lines beyond the maximum can be found.
const MARKED: &str = "marked in the draft";

/// The proposal that was written to `file`.
pub fn proposal(file: &str, proposal: &Proposal) -> Rendering {
    let checked = parse::parse(proposal.text.as_bytes());
    let (mapping, problems) = match &checked {
        Ok(mapping) => (Some(mapping), &[][..]),
        Err(problems) => (None, problems.as_slice()),
    };
    let next = if problems.is_empty() {
        format!("read {file}, then: wayleave ratify {}", proposal.dataset)
    } else {
        format!("wayleave check {}", proposal.dataset)
    };
    let guesses = guesses(&proposal.text);
    let mut document = json!({
        "dataset": proposal.dataset,
        "file": file,
        "is_new": proposal.is_new,
        "is_unchanged": proposal.is_unchanged,
        "changes": proposal.changes,
        "guesses": guesses.iter().map(|it| json!({ "entry": it.entry, "note": it.note })).collect::<Vec<_>>(),
        "left_out": proposal.left_out.iter().map(left_out).collect::<Vec<_>>(),
        "notes": proposal.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "problems": problems,
        "next": next,
    });
    let mut text = headline(file, proposal, mapping);
    if let (Some(sampling), Some(members)) = (&proposal.sampling, document.as_object_mut()) {
        members.insert("samples".to_owned(), samples(sampling));
        let _ = write!(text, "\n{}", sampled(sampling));
    }
    section(&mut text, "the source changed", MARKED, &changes(proposal));
    if proposal.is_new {
        let rows = guesses
            .iter()
            .map(|it| vec![it.entry.clone(), it.note.clone()]);
        section(&mut text, "guessed", MARKED, &rows.collect::<Vec<_>>());
    }
    let rows: Vec<_> = proposal.left_out.iter().map(left_out_row).collect();
    section(&mut text, "left out", MARKED, &rows);
    let unsampled = proposal.sampling.iter().flat_map(|it| &it.unsampled);
    let rows: Vec<_> = unsampled.map(unsampled_row).collect();
    section(&mut text, "not sampled", "listed with `--json`", &rows);
    for note in &proposal.notes {
        let _ = write!(text, "\nnote: {note}");
    }
    if !problems.is_empty() {
        let _ = write!(
            text,
            "\nthe draft does not pass `wayleave check` yet: {}",
            columns::count(problems.len(), "problem")
        );
    }
    let _ = write!(text, "\nnext: {next}");
    Rendering::new(document, text)
}

/// The draft itself, for printing instead of writing. Fails if it contains a connection string,
/// which must not be repeated.
pub fn draft(proposal: &Proposal) -> Result<Value, Explanation> {
    let problems = parse::parse(proposal.text.as_bytes()).err();
    let secret = |it: &Problem| it.code == ProblemCode::ConnectionString;
    if problems.is_some_and(|problems| problems.iter().any(secret)) {
        return Err(Explanation::new(
            "the draft holds something that looks like a connection string; it is not repeated here",
        )
        .hint(format!("`wayleave check {}` shows where", proposal.dataset)));
    }
    Ok(json!({ "dataset": proposal.dataset, "text": proposal.text }))
}

fn headline(file: &str, proposal: &Proposal, mapping: Option<&Mapping>) -> String {
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

fn section(text: &mut String, title: &str, rest: &str, rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let shown = rows.get(..MAX_LINES).unwrap_or(rows);
    let _ = write!(text, "\n{title}:\n{}", columns::indented(shown));
    let more = rows.len() - shown.len();
    if more > 0 {
        let _ = write!(text, "\n  and {more} more, {rest}");
    }
}

/// States that the draft contains stored data.
pub fn sampled(sampling: &Sampling) -> String {
    let elsewhere = if sampling.has_other_sources {
        "; the draft's other sources may hold more, and were not read"
    } else {
        ""
    };
    format!(
        "sampled {}: the values in `one_of` are stored data, and the draft holds them{elsewhere}",
        columns::count(sampling.columns, "text column")
    )
}

fn samples(sampling: &Sampling) -> Value {
    let unsampled = sampling.unsampled.iter().map(
        |it| json!({ "table": it.table, "column": it.column, "reason": it.reason.to_string() }),
    );
    json!({ "columns": sampling.columns, "unsampled": unsampled.collect::<Vec<_>>() })
}

fn unsampled_row(it: &UnsampledColumn) -> Vec<String> {
    let column = format!("{}.{}", quoted(&it.table), quoted(&it.column));
    vec![column, it.reason.to_string()]
}

fn changes(proposal: &Proposal) -> Vec<Vec<String>> {
    let changes = proposal.changes.iter();
    changes.map(|change| vec![change.to_string()]).collect()
}

fn left_out(it: &Omission) -> Value {
    json!({ "table": it.table, "column": it.column, "reason": it.reason.to_string() })
}

fn left_out_row(it: &Omission) -> Vec<String> {
    let what = match &it.column {
        Some(column) => format!("{}.{}", quoted(&it.table), quoted(column)),
        None => quoted(&it.table),
    };
    vec![what, it.reason.to_string()]
}

/// A guess that a human should check.
struct Guess {
    entry: String,
    note: String,
}

/// The guesses, taken from the draft's own comments.
fn guesses(text: &str) -> Vec<Guess> {
    let mut stream = "";
    let mut guesses = Vec::new();
    for line in text.lines() {
        if let Some(header) = line.strip_prefix("[streams.") {
            stream = header.split([']', '.']).next().unwrap_or(header);
        }
        let marked = ["  # guess: ", "  # review: ", "  # weigh: "]
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
