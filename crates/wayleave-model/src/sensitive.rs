//! Detects names that look secret and texts that look like credentials.
//!
//! The two heuristics err on opposite sides on purpose. A name is flagged only on whole words,
//! because a human reads the flag. A text is withheld on the slightest resemblance, because a
//! printed password cannot be taken back.

mod names;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

pub use names::{Reason, looks_secret};

/// Replaces withheld text.
pub const WITHHELD: &str = "(withheld)";

/// A connection string, in any of the usual spellings, or a token.
const CONNECTION: &[&str] = &[
    // scheme://user:password@host, scheme://user@host
    r#"(?i)[a-z][a-z0-9+.-]*://(?:[^\s/@"'<>]*|[^\s@"'<>]*:[^\s"'<>]*)@[^\s"'<>]*"#,
    // A database's scheme, whatever follows.
    r#"(?i)\b(?:postgres|postgresql|mysql|mariadb|sqlite|mssql|sqlserver|oracle|mongodb|redis|rediss|amqp|amqps|odbc)(?:\+[a-z0-9_]+)?://[^\s"'<>]*"#,
    r#"(?i)\bjdbc:[^\s"'<>]+"#,
    // user:password@tcp(host)/db, user:password@host:5432, user:password@host/db
    r#"[^\s:/@"'=]+:[^\s@"']+@(?:(?:tcp|unix)\(|[\w.-]+(?::\d+|/\w))[^\s"'<>]*"#,
    // user:password@host
    r#"\b[\w.+%-]+:[^\s@"'\]/][^\s@"']*@\w[\w.-]*"#,
    // A token of Wayleave.
    r"\bwl[cok]_[0-9A-Za-z]{20,}",
];
/// `password=…` inside a text.
const ASSIGNED: &str = r"(?i)\b(?:[a-z]+[_-])?(?:password|passwd|pwd)\s*=\s*[^\s;&]+";
/// `password=…` in a document, where a quoted value may be the name of a column.
const UNQUOTED: &str = r#"(?i)\b(?:[a-z]+[_-])?(?:password|passwd|pwd)=[^\s;&"']+"#;
/// `password: …`, `token = "…"`: redacted in foreign text, but not refused.
const LABELLED: &str = r#"(?i)\b(?:[a-z]+[_-])?(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|authorization)["']?\s*[=:]\s*(?:"[^"]*"|'[^']*'|(?:bearer |basic )?[^\s;,&"'{}\[\]]+)"#;

/// A label followed by a reference to the variable that holds the secret, or by a boolean, as in a
/// client's settings.
const REFERENCE: &str = r#"(?i)^[^=:]*[=:]\s*(?:true\b|false\b|["'](?:bearer |basic )?\$\{(?:(?:env|input):)?[a-z_][\w-]*\}["']|(?:bearer |basic )?\$\{(?:(?:env|input):)?[a-z_][\w-]*\}(?:["',;)}\]\s]|$))"#;

/// An address of a person, which looks like a user with a password.
const ADDRESS: &str = r"(?i)^(?:mailto|acct|sips?|xmpp|im):[^:@]*@";

struct Patterns {
    /// Matches a decoded text that is a connection string.
    text: Regex,
    /// Matches connection strings in a raw document, comments included.
    document: Regex,
    /// Matches what is redacted in printed text.
    printed: Regex,
    /// Matches, at its start, text that only looks like a secret.
    reference: Regex,
    /// Matches, at its start, a connection string that is a person's address.
    address: Regex,
}

impl Patterns {
    /// The ranges that match `pattern` and are not a person's address.
    fn ranges(&self, pattern: &Regex, text: &str) -> impl Iterator<Item = Range<usize>> {
        pattern
            .find_iter(text)
            .filter(|found| !self.address.is_match(found.as_str()))
            .map(|found| found.range())
    }
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let any_of = |more: &[&str]| Regex::new(&[CONNECTION, more].concat().join("|")).ok();
    Some(Patterns {
        text: any_of(&[ASSIGNED])?,
        document: any_of(&[UNQUOTED])?,
        printed: any_of(&[LABELLED, ASSIGNED])?,
        reference: Regex::new(REFERENCE).ok()?,
        address: Regex::new(ADDRESS).ok()?,
    })
});

/// Whether a text looks like a connection string, or contains a password.
pub fn looks_like_dsn(text: &str) -> bool {
    // Without patterns the guard fails closed.
    PATTERNS
        .as_ref()
        .is_none_or(|patterns| patterns.ranges(&patterns.text, text).next().is_some())
}

/// Whether a raw document, comments included, contains text that looks like a connection string.
pub fn contains_dsn(document: &str) -> bool {
    !dsn_ranges(document).is_empty()
}

/// The ranges of a raw document, comments included, that look like connection strings.
pub(crate) fn dsn_ranges(document: &str) -> Vec<Range<usize>> {
    match PATTERNS.as_ref() {
        Some(patterns) => patterns.ranges(&patterns.document, document).collect(),
        None => std::iter::once(0..document.len()).collect(),
    }
}

/// The ranges of a text that must not be printed.
fn withheld_ranges(text: &str) -> Vec<Range<usize>> {
    let Some(patterns) = PATTERNS.as_ref() else {
        return std::iter::once(0..text.len()).collect();
    };
    patterns
        .ranges(&patterns.printed, text)
        // MySQL's login error says whether a password was given, not which.
        .filter(|range| {
            let said = text.get(range.clone()).unwrap_or_default();
            let said = said.trim_end_matches(')');
            !matches!(said, "password: YES" | "password: NO")
        })
        .filter(|range| {
            let (_, from_here) = text.split_at(range.start);
            !patterns.reference.is_match(from_here)
        })
        .collect()
}

/// Redacts everything that looks like a credential, for printing foreign text such as a driver's
/// error.
pub fn redact(text: &str) -> Cow<'_, str> {
    let ranges = withheld_ranges(text);
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for range in ranges {
        let (before, _) = text.split_at(range.start);
        out.push_str(before.split_at(from).1);
        out.push_str(WITHHELD);
        from = range.end;
    }
    out.push_str(text.split_at(from).1);
    Cow::Owned(out)
}

/// Like [`redact`], but replaces every withheld byte by `*`, so that offsets stay valid, and
/// withholds further ranges.
pub(crate) fn redact_in_place(text: &str, more: impl IntoIterator<Item = Range<usize>>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in withheld_ranges(text).into_iter().chain(more) {
        // The range is of another text: what it should hide is unknown, so nothing is shown.
        let Some(secret) = bytes.get_mut(range) else {
            return "*".repeat(text.len());
        };
        secret
            .iter_mut()
            .filter(|byte| **byte != b'\n')
            .for_each(|byte| *byte = b'*');
    }
    // Ranges end at character boundaries; should one split a character, nothing is shown.
    String::from_utf8(bytes).unwrap_or_else(|_| "*".repeat(text.len()))
}

/// Whether a character is invisible or reorders its neighbours: a human ratifies what they see, and
/// an agent must not see more.
pub fn is_hidden(c: char) -> bool {
    is_joiner(c)
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character is a joiner or an emoji's variation selector: invisible, but part of the
/// spelling of some scripts and emoji.
pub fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

/// The first hidden character of a text, with its offset. A joiner directly after a visible
/// non-ASCII character is part of the spelling, and is allowed.
pub fn first_hidden(text: &str) -> Option<(usize, char)> {
    let mut joinable = false;
    for (at, c) in text.char_indices() {
        if is_hidden(c) && !(is_joiner(c) && joinable) {
            return Some((at, c));
        }
        // An emoji's variation selector may itself be followed by a joiner.
        joinable = !c.is_ascii() && (!is_joiner(c) || c == '\u{fe0f}');
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_strings_are_known_in_every_spelling() {
        for text in [
            "postgres://crm:hunter2@db.example.org/crm",
            "postgresql://db.example.org/crm?password=hunter2",
            "POSTGRES+ssl://db/crm",
            "mysql://root:p@ss/w:rd@127.0.0.1:3306/shop",
            "https://ghp_abcdef@github.com/x",
            "jdbc:postgresql://db/crm?user=a",
            "host=db user=crm password=hunter2",
            "Server=db;User Id=sa;Pwd = hunter2;",
            "root:hunter2@tcp(127.0.0.1:3306)/shop",
            "root:hunter2@db:5432",
            "root:hunter2@db",
            "moved to svc.crm:hunter2@db.internal today",
            "see redis://:hunter2@cache for details",
            "DB_PASSWORD=hunter2",
            "it was wlc_hunter2hunter2hunter2 all along",
        ] {
            assert!(looks_like_dsn(text), "{text}");
            assert!(
                !redact(text).contains("hunter2"),
                "{text} -> {}",
                redact(text)
            );
            assert!(
                !redact_in_place(text, []).contains("hunter2"),
                "{text} -> {}",
                redact_in_place(text, [])
            );
        }
    }

    #[test]
    fn ordinary_texts_are_not_connection_strings() {
        for text in [
            "https://example.org/crm#",
            "urn:wayleave:crm#",
            "mailto:joe@example.org",
            "write to joe@example.org",
            "https://medium.example/@joe",
            "^[a-z]+@[a-z]+$",
            "^(?:[a-z]+@[a-z]+)$",
            "^[[:alpha:]]+@x$",
            "see mailto:joe@example.org, acct:joe@example.org",
            "the password column is left out",
            "12:30 @ the office",
            "",
        ] {
            assert!(!looks_like_dsn(text), "{text}");
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn redaction_keeps_what_helps_and_drops_what_hurts() {
        for (text, redacted) in [
            (
                "cannot reach postgres://u:p@h/db now",
                "cannot reach (withheld) now",
            ),
            (
                r#"bad config: {"password": "p w", "port": 1}"#,
                r#"bad config: {"(withheld), "port": 1}"#,
            ),
            ("Authorization: Bearer abc.def", "(withheld)"),
            (
                "Access denied for user 'a'@'b' (using password: YES)",
                "Access denied for user 'a'@'b' (using password: YES)",
            ),
        ] {
            assert_eq!(redact(text), redacted);
        }
    }

    #[test]
    fn the_name_of_a_variable_is_no_secret() {
        for text in [
            r#""Authorization": "Bearer ${SHOP_TOKEN}""#,
            r#"{"Authorization": "Bearer ${env:SHOP_TOKEN}"}"#,
            r#""WAYLEAVE_TOKEN": "${input:shop-token}","#,
            "--header 'Authorization: Bearer ${SHOP_TOKEN}' next",
            r#""password": true"#,
        ] {
            assert_eq!(redact(text), text);
        }
        for text in [
            r#""Authorization": "Bearer hunter2""#,
            r#""token": "${SHOP_TOKEN:-hunter2}""#,
            r#""token": "${SHOP_TOKEN} hunter2""#,
            "password: truehunter2",
        ] {
            assert!(!redact(text).contains("hunter2"), "{}", redact(text));
        }
    }

    #[test]
    fn redaction_in_place_keeps_every_offset() {
        let text = "a = 1\npassword = \"żółć\"\nb = 2\n";
        let redacted = redact_in_place(text, []);
        assert_eq!(redacted.len(), text.len());
        assert_eq!(redacted.find("b = 2"), text.find("b = 2"));
        assert!(!redacted.contains('ż'));
    }

    #[test]
    fn what_a_reader_cannot_see_is_found_and_spelling_is_not() {
        for text in [
            "a\u{202e}b",
            "\u{feff}a",
            "a\u{200d}b",
            "é\u{200d}\u{200d}",
            "\u{e0041}",
            "a\u{200b}",
        ] {
            assert!(first_hidden(text).is_some(), "{text:?}");
        }
        for text in [
            "plain",
            "naïve",
            "می\u{200c}خواهم",
            "👩\u{200d}💻",
            "⚠\u{fe0f}",
            "🏳\u{fe0f}\u{200d}🌈",
        ] {
            assert_eq!(first_hidden(text), None, "{text:?}");
        }
    }
}
