//! Checks single values: names, texts, IRIs, words, numbers, patterns.

use std::ops::Range;

use regex::RegexBuilder;
use toml::de::DeValue;

use super::document;
use super::shape::ShapeChecker;
use crate::definitions::{
    MAX_COMPILED_PATTERN_BYTES, MAX_DESCRIPTION_CHARS, MAX_IDENTIFIER_CHARS, MAX_IRI_CHARS,
    MAX_NUMBER_BYTES, MAX_PATTERN_CHARS, Shape,
};
use crate::mapping::{ExactNumber, Expression};
use crate::mask::{MASKS, Mask};
use crate::names::NameKind;
use crate::nearest::nearest;
use crate::problem::{Problem, ProblemCode, quoted};
use crate::sensitive;

/// Reports a value of the wrong TOML type.
pub(super) fn wrong_type(
    walk: &mut ShapeChecker<'_>,
    name: &str,
    expected: &str,
    value: &toml::Spanned<DeValue<'_>>,
) {
    let found = match value.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    let message = format!("{} must be {expected}, and is {found}", quoted(name));
    walk.report(Problem::new(ProblemCode::WrongType, message).at(value.span()));
}

/// Checks a value that is not a list or table.
pub(super) fn single(
    walk: &mut ShapeChecker<'_>,
    shape: Shape,
    key: &str,
    value: &toml::Spanned<DeValue<'_>>,
) {
    let span = value.span();
    match (shape, value.get_ref()) {
        (Shape::Name(kind), DeValue::String(text)) => name(walk, kind, text, &span),
        (Shape::Line(most), DeValue::String(text)) => prose(walk, text, most, false, &span),
        (Shape::Prose, DeValue::String(text)) => {
            prose(walk, text, MAX_DESCRIPTION_CHARS, true, &span);
        }
        (Shape::Identifier, DeValue::String(text)) => identifier(walk, text, &span),
        (Shape::IriBase, DeValue::String(text)) => iri_base(walk, text, &span),
        (Shape::Predicate, DeValue::String(text)) => predicate(walk, text, &span),
        (Shape::Word(words), DeValue::String(text)) => word(walk, words, text, &span),
        (Shape::Pattern, DeValue::String(text)) => pattern(walk, text, &span),
        (Shape::Mask, DeValue::String(text)) => mask(walk, text, &span),
        (Shape::Expression, DeValue::String(text)) => expression(walk, text, &span),
        (Shape::Flag, DeValue::Boolean(_)) => {}
        (Shape::Count, DeValue::Integer(_)) => {
            if count_of(value.get_ref()).is_none() {
                let message = format!("`{key}` must be between 0 and {}", u32::MAX);
                walk.report(Problem::new(ProblemCode::InvalidNumber, message).at(span));
            }
        }
        (Shape::Number, DeValue::Integer(_) | DeValue::Float(_) | DeValue::String(_)) => {
            number(walk, key, value);
        }
        _ => wrong_type(walk, key, shape.expected(), value),
    }
}

/// Reports connection strings and invisible characters, which no text may contain. Returns whether
/// there are none, so that the text can be checked further.
fn check_safe_text(walk: &mut ShapeChecker<'_>, text: &str, span: &Range<usize>) -> bool {
    // If the raw document shows the same, it is reported once, for the document.
    let raw = walk.source.get(span.clone()).unwrap_or("");
    if sensitive::looks_like_dsn(text) {
        if sensitive::dsn_ranges(raw).is_empty() {
            walk.report(document::secret_at(span.clone()));
        }
        return false;
    }
    if let Some((_, c)) = sensitive::first_hidden(text) {
        if sensitive::first_hidden(raw).is_none() {
            walk.report(document::hidden_at(c, span.clone()));
        }
        return false;
    }
    true
}

/// Checks a mask.
fn mask(walk: &mut ShapeChecker<'_>, text: &str, span: &Range<usize>) {
    if check_safe_text(walk, text, span) && text.parse::<Mask>().is_err() {
        let message = format!("{} is not a mask", quoted(text));
        let problem = Problem::new(ProblemCode::UnknownWord, message);
        walk.report(problem.hint(format!("it is {MASKS}")).at(span.clone()));
    }
}

/// Checks a name.
pub(super) fn name(walk: &mut ShapeChecker<'_>, kind: NameKind, text: &str, span: &Range<usize>) {
    if !check_safe_text(walk, text, span) {
        return;
    }
    let problem = if !kind.matches(text) {
        Problem::new(
            ProblemCode::InvalidName,
            format!("{} is not a {}", quoted(text), kind.noun()),
        )
        .hint(format!("a {} matches `{}`", kind.noun(), kind.pattern()))
    } else if let Some(why) = kind.reserved(text) {
        Problem::new(
            ProblemCode::ReservedName,
            format!("`{text}` cannot be a {}", kind.noun()),
        )
        .hint(format!("choose another name: {why}"))
    } else {
        return;
    };
    walk.report(problem.at(span.clone()));
}

/// Checks a text for people and agents.
fn prose(walk: &mut ShapeChecker<'_>, text: &str, most: usize, lines: bool, span: &Range<usize>) {
    if !check_safe_text(walk, text, span) {
        return;
    }
    let control = |c: char| c.is_control() && !(lines && matches!(c, '\n' | '\t' | '\r'));
    let message = if text.trim().is_empty() {
        "the text is empty".to_owned()
    } else if text.chars().count() > most {
        format!(
            "the text has {} characters, and may have {most}",
            text.chars().count()
        )
    } else if text.chars().any(control) {
        "the text holds control characters".to_owned()
    } else {
        return;
    };
    walk.report(Problem::new(ProblemCode::InvalidText, message).at(span.clone()));
}

/// Checks the name of a table or column.
pub(super) fn identifier(walk: &mut ShapeChecker<'_>, text: &str, span: &Range<usize>) {
    prose(walk, text, MAX_IDENTIFIER_CHARS, false, span);
}

/// Whether every character is allowed in an IRI.
fn iri_characters(text: &str) -> bool {
    !text.is_empty()
        && text.chars().count() <= MAX_IRI_CHARS
        && !text.chars().any(|c| {
            c.is_whitespace()
                || c.is_control()
                || matches!(c, '<' | '>' | '"' | '{' | '}' | '|' | '\\' | '^' | '`')
        })
}

/// Whether a text is an absolute IRI.
pub(crate) fn is_iri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let mut letters = scheme.bytes();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'.'))
        && !rest.is_empty()
        && iri_characters(text)
}

fn iri_base(walk: &mut ShapeChecker<'_>, text: &str, span: &Range<usize>) {
    if !check_safe_text(walk, text, span) {
        return;
    }
    let problem = if !is_iri(text) {
        Problem::new(
            ProblemCode::InvalidIri,
            format!("{} is not an absolute IRI", quoted(text)),
        )
        .hint("write one such as `https://example.org/crm#`")
    } else if !text.ends_with(['#', '/', ':', '=', '_']) {
        Problem::new(
            ProblemCode::InvalidIri,
            format!("names cannot be appended to {}", quoted(text)),
        )
        .hint("end it with `#` or `/`")
    } else {
        return;
    };
    walk.report(problem.at(span.clone()));
}

fn predicate(walk: &mut ShapeChecker<'_>, text: &str, span: &Range<usize>) {
    if !check_safe_text(walk, text, span) {
        return;
    }
    let fit = if text.contains(':') {
        is_iri(text)
    } else {
        iri_characters(text)
    };
    if !fit {
        let problem = Problem::new(
            ProblemCode::InvalidIri,
            format!(
                "{} is neither an absolute IRI nor the end of one",
                quoted(text)
            ),
        )
        .hint("leave `predicate` out to use the field's name");
        walk.report(problem.at(span.clone()));
    }
}

/// Checks one word of a closed vocabulary.
pub(super) fn word(
    walk: &mut ShapeChecker<'_>,
    words: &'static [&'static str],
    text: &str,
    span: &Range<usize>,
) {
    if words.contains(&text) || !check_safe_text(walk, text, span) {
        return;
    }
    let all: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    let hint = match nearest(text, words.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`? the words are {}", all.join(", ")),
        None => format!("the words are {}", all.join(", ")),
    };
    let message = format!("{} is not one of the words allowed here", quoted(text));
    walk.report(
        Problem::new(ProblemCode::UnknownWord, message)
            .hint(hint)
            .at(span.clone()),
    );
}

fn pattern(walk: &mut ShapeChecker<'_>, text: &str, span: &Range<usize>) {
    if !check_safe_text(walk, text, span) {
        return;
    }
    if text.chars().count() > MAX_PATTERN_CHARS {
        let message = format!("the pattern has more than {MAX_PATTERN_CHARS} characters");
        walk.report(Problem::new(ProblemCode::InvalidPattern, message).at(span.clone()));
        return;
    }
    if let Err(error) = compile(text) {
        let reason = match error {
            regex::Error::CompiledTooBig(_) => "it is too large once compiled".to_owned(),
            other => {
                let text = other.to_string();
                let last = text
                    .lines()
                    .last()
                    .unwrap_or("")
                    .trim_start_matches("error: ");
                sensitive::redact(last).into_owned()
            }
        };
        let message = format!("the pattern cannot be used: {reason}");
        walk.report(Problem::new(ProblemCode::InvalidPattern, message).at(span.clone()));
    }
}

fn expression(walk: &mut ShapeChecker<'_>, text: &str, span: &Range<usize>) {
    if !check_safe_text(walk, text, span) {
        return;
    }
    if let Err(error) = Expression::parse(text) {
        let span = within_text(walk.source, text, span, &error.span);
        let mut problem = Problem::new(ProblemCode::InvalidExpression, error.message);
        problem.hint = error.hint;
        walk.report(problem.at(span));
    }
}

/// Maps a byte range in a string to the document; gives the whole string if it is written with
/// escapes.
pub(super) fn within_text(
    source: &str,
    text: &str,
    written: &Range<usize>,
    part: &Range<usize>,
) -> Range<usize> {
    let literal = source.get(written.clone()).unwrap_or("");
    match literal.find(text) {
        Some(start) if !text.is_empty() => {
            let start = written.start + start;
            start + part.start..start + part.end
        }
        _ => written.clone(),
    }
}

/// Compiles a pattern within the limits.
pub(super) fn compile(pattern: &str) -> Result<regex::Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(MAX_COMPILED_PATTERN_BYTES)
        .build()
}

fn number(walk: &mut ShapeChecker<'_>, key: &str, value: &toml::Spanned<DeValue<'_>>) {
    if let DeValue::String(text) = value.get_ref()
        && !check_safe_text(walk, text, &value.span())
    {
        return;
    }
    if number_of(value.get_ref()).is_none() {
        let message = format!("`{key}` must be a finite number");
        let problem = Problem::new(ProblemCode::InvalidNumber, message)
            .hint("write a TOML number, or an exact one in quotes such as \"0.01\"");
        walk.report(problem.at(value.span()));
    }
}

/// Checks one value of `one_of`.
pub(super) fn scalar(
    walk: &mut ShapeChecker<'_>,
    shape: Shape,
    key: &str,
    value: &toml::Spanned<DeValue<'_>>,
) {
    match value.get_ref() {
        DeValue::String(text) => {
            if check_safe_text(walk, text, &value.span()) && text.chars().any(char::is_control) {
                let problem = Problem::new(
                    ProblemCode::InvalidText,
                    "the text holds control characters",
                );
                walk.report(problem.at(value.span()));
            }
        }
        DeValue::Integer(_) | DeValue::Float(_) => number(walk, key, value),
        _ => wrong_type(walk, key, shape.expected(), value),
    }
}

/// A value as comparable text, to find duplicates in a list.
pub(super) fn spelling(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(format!("\"{text}")),
        DeValue::Array(list) => {
            let parts: Option<Vec<_>> = list.iter().map(|v| spelling(v.get_ref())).collect();
            let mut parts = parts?;
            // A set of fields is the same set in any order.
            parts.sort();
            Some(parts.join(","))
        }
        _ => number_of(value).map(|number| number.to_string()),
    }
}

/// The exact number of a value.
pub(super) fn number_of(value: &DeValue<'_>) -> Option<ExactNumber> {
    match value {
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .map(ExactNumber::from),
        DeValue::Float(float) => float.as_str().parse().ok().and_then(ExactNumber::from_f64),
        DeValue::String(text) if text.len() <= MAX_NUMBER_BYTES => text.parse().ok(),
        _ => None,
    }
}

/// The count of a value.
pub(super) fn count_of(value: &DeValue<'_>) -> Option<u32> {
    match value {
        DeValue::Integer(integer) => u32::from_str_radix(integer.as_str(), integer.radix()).ok(),
        _ => None,
    }
}
