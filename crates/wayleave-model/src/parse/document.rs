//! Parses bytes to a TOML table, and reports the problems of the text itself.

use std::ops::Range;

use toml::de::DeTable;

use super::unclosed;
use crate::definitions::MAX_BYTES;
use crate::problem::{Problem, ProblemCode};
use crate::sensitive;

/// A document as far as it could be read.
pub(super) struct Document<'a> {
    pub(super) table: toml::Spanned<DeTable<'a>>,
    pub(super) problems: Vec<Problem>,
    /// Offset of an unclosed bracket: nothing after it was read as intended.
    pub(super) unclosed: Option<usize>,
}

/// Reads the text. Fails only if there is no readable text at all.
pub(super) fn read(bytes: &[u8]) -> Result<(&str, Document<'_>), Vec<Problem>> {
    if bytes.len() > MAX_BYTES {
        let message = format!("the document has {} bytes", bytes.len());
        let hint = format!("a document may have {MAX_BYTES} bytes; split the dataset");
        return Err(vec![
            Problem::new(ProblemCode::TooLarge, message).hint(hint),
        ]);
    }
    let source = std::str::from_utf8(bytes).map_err(|error| {
        let (before, _) = bytes.split_at(error.valid_up_to());
        let line = before.split(|byte| *byte == b'\n').count();
        let message = format!("line {line} holds a byte that is not UTF-8");
        vec![Problem::new(ProblemCode::NotUtf8, message).hint("save the document as UTF-8")]
    })?;
    let (table, errors) = DeTable::parse_recoverable(source);
    let mut problems = Vec::new();
    let mut too_deep = false;
    for error in &errors {
        let problem = problem_of(error, source);
        // Every further level is another error; one is enough.
        let repeated =
            problem.code == ProblemCode::TooDeep && std::mem::replace(&mut too_deep, true);
        if !repeated {
            problems.push(problem);
        }
    }
    let unclosed = unclosed(&mut problems, source);
    Ok((
        source,
        Document {
            table,
            problems,
            unclosed,
        },
    ))
}

/// Replaces the follow-up problems of an unclosed bracket by one.
fn unclosed(problems: &mut Vec<Problem>, source: &str) -> Option<usize> {
    let is_unclosed =
        |it: &Problem| it.code == ProblemCode::Syntax && it.message.starts_with("unclosed");
    if !problems.iter().any(is_unclosed) {
        return None;
    }
    let (at, bracket) = unclosed::bracket(source)?;
    problems.retain(|it| it.span.as_ref().is_none_or(|span| span.start < at));
    let closing = if bracket == '[' { ']' } else { '}' };
    problems.push(
        Problem::new(
            ProblemCode::Syntax,
            format!("nothing closes this `{bracket}`"),
        )
        .hint(format!(
            "add the closing `{closing}`; the rest is not checked until then"
        ))
        .at(at..at + 1),
    );
    Some(at)
}

fn problem_of(error: &toml::de::Error, source: &str) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    let problem = if message.contains("recurs") {
        Problem::new(
            ProblemCode::TooDeep,
            "arrays or tables are nested too deeply",
        )
        .hint("a mapping needs five levels at most")
    } else if message.contains("duplicate key") {
        let key = source.get(span.clone()).unwrap_or("");
        Problem::new(
            ProblemCode::DuplicateKey,
            format!("{} is written twice", crate::problem::quoted(key)),
        )
        .hint("keep one of the two")
    } else {
        Problem::new(
            ProblemCode::Syntax,
            sensitive::redact(&message).into_owned(),
        )
    };
    problem.at(span)
}

/// Reports connection strings anywhere in the text, comments included.
pub(super) fn secrets(source: &str) -> Vec<Problem> {
    sensitive::dsn_ranges(source)
        .into_iter()
        .map(secret_at)
        .collect()
}

/// The problem of a connection string at these bytes.
pub(super) fn secret_at(place: Range<usize>) -> Problem {
    Problem::new(
        ProblemCode::ConnectionString,
        "this looks like a connection string or a password, and is not repeated here",
    )
    .hint(
        "name a declared source instead; its connection string belongs in the environment \
         variable that the source names, and this one should be changed now",
    )
    .at(place)
}

/// Reports invisible characters anywhere in the text, comments included.
pub(super) fn hidden(source: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut from = 0;
    while let Some((at, c)) = source.get(from..).and_then(sensitive::first_hidden) {
        let start = from + at;
        problems.push(hidden_at(c, start..start + c.len_utf8()));
        // One per line is enough.
        let (_, rest) = source.split_at(start);
        from = start + rest.find('\n').unwrap_or(rest.len());
    }
    problems
}

/// The problem of a hidden character at these bytes.
pub(super) fn hidden_at(c: char, place: Range<usize>) -> Problem {
    let what = if c == '\u{feff}' {
        " (a byte order mark)"
    } else {
        ""
    };
    let message = format!(
        "the text holds the hidden character U+{:04X}{what}",
        u32::from(c)
    );
    Problem::new(ProblemCode::InvalidText, message)
        .hint("remove it: whoever ratifies must see all that agents will see")
        .at(place)
}
