//! Parses a mapping: bytes → text → TOML → shapes → values → rules.
//!
//! Every step reports all its problems and passes on what it could read, so one run shows every
//! problem. The meaning of a broken part is never guessed: entries that could not be read are
//! recorded as broken, and rules about them report nothing.

mod document;
mod read;
mod rules;
mod shape;
mod unclosed;
mod value;

pub(crate) use read::Entry;
pub(crate) use value::is_iri;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::definitions::{self, Section};
use crate::mapping::Mapping;
use crate::problem::{self, Problem, ProblemCode};

/// Largest number of problems reported for one document.
const MAX_PROBLEMS: usize = 500;

/// Parses a mapping from the bytes of a document, or reports every problem with it.
pub fn parse(bytes: &[u8]) -> Result<Mapping, Vec<Problem>> {
    parse_with(bytes, |_| Vec::new())
}

/// Like [`parse`], with further rules for as much of the mapping as could be read.
pub(crate) fn parse_with(
    bytes: &[u8],
    more: impl FnOnce(&Mapping) -> Vec<Problem>,
) -> Result<Mapping, Vec<Problem>> {
    let (source, document) = document::read(bytes)?;
    let mut problems = document.problems;
    let table = document.table.get_ref();
    let broken_text = !problems.is_empty();
    problems.extend(document::secrets(source));
    problems.extend(document::hidden(source));
    let found = shape::walk(&definitions::DOCUMENT, table, source);
    if broken_text {
        // In half a document, missing keys and odd values around the break are not mistakes of
        // their own.
        let lines: Vec<_> = problems.iter().filter_map(|p| line_of(source, p)).collect();
        problems.extend(found.into_iter().filter(|problem| {
            let readable = |at: usize| document.unclosed.is_none_or(|unclosed| at < unclosed);
            problem.code != ProblemCode::MissingKey
                && problem
                    .span
                    .as_ref()
                    .is_none_or(|span| readable(span.start))
                && line_of(source, problem).is_none_or(|line| !lines.contains(&line))
        }));
        return Err(finish(problems, source));
    }
    problems.extend(found);
    let (mapping, broken) = read::mapping(table);
    problems.extend(rules::check(&mapping, &broken, source));
    problems.extend(more(&mapping));
    if problems.is_empty() {
        Ok(mapping)
    } else {
        Err(finish(problems, source))
    }
}

/// Parses another kind of document by its section: the same steps, up to the shapes.
pub(crate) fn shapes<'a>(
    bytes: &'a [u8],
    section: &'static Section,
) -> Result<(&'a str, toml::Spanned<toml::de::DeTable<'a>>), Vec<Problem>> {
    let (source, document) = document::read(bytes)?;
    let mut problems = document.problems;
    problems.extend(document::secrets(source));
    problems.extend(document::hidden(source));
    if problems.is_empty() {
        problems.extend(shape::walk(section, document.table.get_ref(), source));
    }
    if problems.is_empty() {
        Ok((source, document.table))
    } else {
        Err(finish(problems, source))
    }
}

/// Entries that exist but could not be read.
#[derive(Debug, Default)]
struct UnreadableEntries {
    streams: BTreeSet<String>,
    fields: BTreeSet<(String, String)>,
    relations: BTreeSet<(String, String)>,
}

/// Offset of the line in which a problem starts.
fn line_of(source: &str, problem: &Problem) -> Option<usize> {
    let Range { start, .. } = problem.span.clone()?;
    let before = source.get(..start.min(source.len()))?;
    Some(before.rfind('\n').map_or(0, |at| at + 1))
}

/// Locates problems, and limits their number for hostile documents.
pub(crate) fn finish(mut problems: Vec<Problem>, source: &str) -> Vec<Problem> {
    problem::locate(&mut problems, source);
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    if more > 0 {
        problems.truncate(MAX_PROBLEMS);
        problems.push(Problem::new(
            ProblemCode::TooMany,
            format!("{more} more problems are not shown"),
        ));
    }
    problems
}
