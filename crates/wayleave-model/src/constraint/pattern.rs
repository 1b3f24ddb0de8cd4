//! Regular expressions for texts, matched in linear time with the semantics of JSON Schema.
//!
//! Mappings are checked with Rust's syntax; clients read the same text as an ECMA pattern. Where
//! the two disagree on the members of a class such as `\d`, ECMA's narrower class applies.

use regex::{Regex, RegexBuilder};

use crate::definitions::MAX_COMPILED_PATTERN_BYTES;

/// Maximum size of a compiled pattern, in bytes. Narrower classes take less than those that
/// mappings are checked with.
const MAX_RUNTIME_PATTERN_BYTES: usize = 2 * MAX_COMPILED_PATTERN_BYTES;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct TextPattern(Regex);

impl TextPattern {
    /// Compiles a pattern of a checked mapping; `None` if it does not compile.
    pub fn new(pattern: &str) -> Option<Self> {
        let compile = |pattern: &str| {
            let mut builder = RegexBuilder::new(pattern);
            builder.size_limit(MAX_RUNTIME_PATTERN_BYTES).build().ok()
        };
        compile(&with_ascii_classes(pattern))
            .or_else(|| compile(pattern))
            .map(Self)
    }

    /// Whether some part of a text matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Replaces the classes that match more characters in Rust than in ECMA.
fn with_ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match rest.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('b') => out.push_str(r"(?-u:\b)"),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

/// Whether a pattern means the same to an ECMA engine, so that clients may be given it.
pub fn is_portable(pattern: &str) -> bool {
    let mut previous = ' ';
    let mut escaped = false;
    let mut in_class = false;
    let characters: Vec<char> = pattern.chars().collect();
    for (place, c) in characters.iter().copied().enumerate() {
        let next = characters.get(place + 1).copied().unwrap_or(' ');
        if escaped {
            escaped = false;
            // Escapes that only one engine supports, or that they interpret differently.
            if c.is_ascii_alphanumeric()
                && !matches!(c, 'd' | 'D' | 'w' | 'W' | 'n' | 'r' | 't' | 'b')
            {
                return false;
            }
            if c == 'b' && in_class {
                return false;
            }
            previous = ' ';
            continue;
        }
        match c {
            '\\' => escaped = true,
            // Of the groups that begin with `(?`, only non-capturing ones have the same syntax.
            '(' if !in_class && next == '?' && characters.get(place + 2) != Some(&':') => {
                return false;
            }
            '[' if in_class => return false,
            '[' => in_class = true,
            ']' => in_class = false,
            '&' | '~' | '-' if in_class && previous == c => return false,
            _ => {}
        }
        previous = c;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_hold_in_ecma() {
        let digit = TextPattern::new(r"^\d+$").unwrap();
        assert!(digit.is_match("42") && !digit.is_match("٤٢"));
        let either = TextPattern::new(r"^[\d_-]{2}\b").unwrap();
        assert!(either.is_match("4_") && !either.is_match("é_"));
    }

    #[test]
    fn only_patterns_that_both_engines_read_alike_are_portable() {
        for pattern in [
            r"^B-[0-9]{4}$",
            r"^\d+(?:\.\d+)?$",
            "a|b",
            r"^[^\s]*$".trim_end(),
        ] {
            let known = !pattern.contains(r"\s");
            assert_eq!(is_portable(pattern), known, "{pattern}");
        }
        for pattern in [
            "(?i)a",
            r"\pL",
            r"\Aa\z",
            "[a&&b]",
            "[[:alpha:]]",
            "(?P<x>a)",
        ] {
            assert!(!is_portable(pattern), "{pattern}");
        }
    }
}
