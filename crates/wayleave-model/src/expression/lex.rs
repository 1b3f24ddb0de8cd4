//! Splits an expression into tokens.

use std::ops::Range;

use super::{ExpressionError, MAX_EXPRESSION_CHARS};
use crate::mapping::ExactNumber;

/// A token, and its byte range in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name or a keyword.
    Word(String),
    Text(String),
    Number(ExactNumber),
    /// One of the signs of [`SIGNS`].
    Sign(&'static str),
}

/// Operators and punctuation, longer ones first.
const SIGNS: &[&str] = &[
    "||", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "(", ")", ",", ".", "=", "<", ">",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let length = text.chars().count();
    if length > MAX_EXPRESSION_CHARS {
        let message =
            format!("the expression has {length} characters, and may have {MAX_EXPRESSION_CHARS}");
        return Err(ExpressionError::new(message, 0..text.len()));
    }
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return Ok(tokens);
        };
        let start = text.len() - rest.len();
        let (kind, after) = if first.is_ascii_alphabetic() || first == '_' {
            let (word, after) = split(rest, |c| c.is_ascii_alphanumeric() || c == '_');
            (TokenKind::Word(word.to_owned()), after)
        } else if first.is_ascii_digit() {
            number(rest, start)?
        } else if first == '\'' {
            quoted(rest, start)?
        } else if let Some((sign, after)) = sign(rest) {
            (TokenKind::Sign(sign), after)
        } else {
            return Err(unexpected_character(first, start));
        };
        let end = text.len() - after.len();
        tokens.push(Token {
            kind,
            span: start..end,
        });
        rest = after;
    }
}

fn sign(text: &str) -> Option<(&'static str, &str)> {
    let mut signs = SIGNS.iter();
    signs.find_map(|sign| Some((*sign, text.strip_prefix(sign)?)))
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text.split_at(end)
}

fn number(text: &str, start: usize) -> Result<(TokenKind, &str), ExpressionError> {
    let (whole, mut after) = split(text, |c| c.is_ascii_digit());
    let mut length = whole.len();
    if let Some(point) = after.strip_prefix('.') {
        let (fraction, rest) = split(point, |c| c.is_ascii_digit());
        length += 1 + fraction.len();
        after = rest;
    }
    let written = text.get(..length).unwrap_or(text);
    match written.parse() {
        Ok(number) if !after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
            Ok((TokenKind::Number(number), after))
        }
        _ => Err(
            ExpressionError::new("not a plain number", start..start + length)
                .hint("write digits, optionally with a decimal point, such as `12.50`"),
        ),
    }
}

/// Reads a text literal. A quote inside is doubled: `'it''s'`.
fn quoted(text: &str, start: usize) -> Result<(TokenKind, &str), ExpressionError> {
    let mut value = String::new();
    let mut rest = text.strip_prefix('\'').unwrap_or(text);
    loop {
        let Some((part, after)) = rest.split_once('\'') else {
            let span = start..start + text.len();
            return Err(ExpressionError::new("the text has no closing quote", span)
                .hint("close it with `'`; a quote inside a text is doubled: `'it''s'`"));
        };
        value.push_str(part);
        if let Some(more) = after.strip_prefix('\'') {
            value.push('\'');
            rest = more;
            continue;
        }
        // Not every store can hold U+0000 in a text, so no literal may.
        if value.contains('\0') {
            let span = start..start + text.len() - after.len();
            return Err(ExpressionError::new("a text cannot hold U+0000", span));
        }
        return Ok((TokenKind::Text(value), after));
    }
}

fn unexpected_character(first: char, start: usize) -> ExpressionError {
    let span = start..start + first.len_utf8();
    let error = |message: &str| ExpressionError::new(message, span.clone());
    match first {
        '"' => error("texts are written in single quotes, and names without quotes")
            .hint("write `'text'` or `name`"),
        ';' => error("an expression is one value; `;` does not belong in it"),
        '%' => error("`%` is not an operator").hint("the arithmetic operators are `+ - * /`"),
        _ => error("this character does not belong in an expression"),
    }
}
