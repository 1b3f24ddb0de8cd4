//! Rules for the names and texts of a ledger, which can never be removed from it.
//!
//! A refusal names the rule, never the text: the text may be a pasted secret.

use wayleave_model::grant::{Claim, Claims, Terms};
use wayleave_model::names::NameKind;
use wayleave_model::sensitive::looks_like_dsn;

/// A name or a text that may not be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} {rule}")]
pub struct InvalidText {
    /// What the text is, such as a note.
    what: &'static str,
    /// The rule it broke.
    rule: &'static str,
}

const MAX_WHO_CHARS: usize = 200;
const MAX_NOTE_CHARS: usize = 4_000;
const MAX_LABEL_CHARS: usize = 100;
const MAX_FILTER_BYTES: usize = 16 * 1024;
const MAX_CLAIMS: usize = 32;
const MAX_CLAIM_CHARS: usize = 1_000;

/// A dataset's name.
pub(crate) fn dataset(name: &str) -> Result<(), InvalidText> {
    let rule = "is 1 to 32 of `a-z`, `0-9` and `-`, and begins with a letter";
    ensure(NameKind::Dataset.matches(name), "a dataset's name", rule)
}

/// A source's name.
pub(crate) fn source(name: &str) -> Result<(), InvalidText> {
    let rule = "is 1 to 64 of `a-z`, `0-9`, `_` and `-`, and begins with a letter";
    ensure(NameKind::Source.matches(name), "a source's name", rule)
}

/// The name of an environment variable. A pasted DSN does not fit.
pub(crate) fn env(name: &str) -> Result<(), InvalidText> {
    let fits = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.len() <= 128
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let rule = "is the name of an environment variable (letters, digits and `_`), never a DSN";
    ensure(fits, "a source's `env`", rule)
}

/// A person's own name.
pub(crate) fn who(name: &str) -> Result<(), InvalidText> {
    let what = "the acting person's name";
    ensure(!name.trim().is_empty(), what, "must not be empty")?;
    ensure(
        name.chars().count() <= MAX_WHO_CHARS,
        what,
        "has at most 200 characters",
    )?;
    ensure(
        !name.chars().any(char::is_control),
        what,
        "is one line of plain text",
    )?;
    no_credentials(name, what)
}

/// An owner's name.
pub(crate) fn owner(name: &str) -> Result<(), InvalidText> {
    let what = "an owner's name";
    let fits = !name.is_empty()
        && name.trim() == name
        && name.chars().count() <= MAX_LABEL_CHARS
        && !name.chars().any(char::is_control);
    let rule = "is one line of plain text, at most 100 characters, without blanks around it";
    ensure(fits, what, rule)?;
    no_credentials(name, what)
}

/// A note that gives a reason; may be empty.
pub(crate) fn note(text: &str) -> Result<(), InvalidText> {
    check_note(text, "a note")
}

fn check_note(text: &str, what: &'static str) -> Result<(), InvalidText> {
    ensure(
        text.chars().count() <= MAX_NOTE_CHARS,
        what,
        "has at most 4000 characters",
    )?;
    let plain = !text
        .chars()
        .any(|c| c.is_control() && c != '\n' && c != '\t');
    ensure(plain, what, "is plain text")?;
    no_credentials(text, what)
}

/// The purpose of a grant; may be empty.
pub(crate) fn purpose(text: &str) -> Result<(), InvalidText> {
    check_note(text, "a purpose")
}

/// The label of a token; may be empty.
pub(crate) fn label(text: &str) -> Result<(), InvalidText> {
    let what = "a token's label";
    let fits = text.chars().count() <= MAX_LABEL_CHARS && !text.chars().any(char::is_control);
    ensure(
        fits,
        what,
        "is one line of plain text, at most 100 characters",
    )?;
    no_credentials(text, what)
}

/// A grant's id: `g_` and letters or digits.
pub(crate) fn grant(id: &str) -> Result<(), InvalidText> {
    let rule = "is `g_` and 4 to 32 letters or digits";
    ensure(is_id(id, "g_"), "a grant's id", rule)
}

/// A token's id: `t_` and letters or digits. A token itself does not fit.
pub(crate) fn token(id: &str) -> Result<(), InvalidText> {
    let rule = "is `t_` and 4 to 32 letters or digits, never the token itself";
    ensure(is_id(id, "t_"), "a token's id", rule)
}

fn is_id(id: &str, prefix: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|rest| {
        (4..=32).contains(&rest.len()) && rest.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// The terms of a grant: not empty, and within the limits.
pub(crate) fn terms(terms: &Terms) -> Result<(), InvalidText> {
    dataset(&terms.dataset)?;
    let what = "a grant";
    let something = terms.streams.values().all(|it| !it.fields.is_empty());
    ensure(
        something && !terms.streams.is_empty(),
        what,
        "allows at least one field of each of its streams",
    )?;
    for filter in terms.streams.values().filter_map(|it| it.rows.as_ref()) {
        let what = "a row filter";
        ensure(
            filter.as_str().len() <= MAX_FILTER_BYTES,
            what,
            "has at most 16384 bytes",
        )?;
        no_credentials(filter.as_str(), what)?;
    }
    Ok(())
}

/// The claims of a token.
pub(crate) fn claims(claims: &Claims) -> Result<(), InvalidText> {
    let what = "a claim";
    ensure(
        claims.len() <= MAX_CLAIMS,
        "a token",
        "makes at most 32 claims",
    )?;
    for (name, claim) in claims {
        let named = (1..=100).contains(&name.len()) && name.chars().all(|c| c.is_ascii_graphic());
        ensure(
            named,
            what,
            "is named by 1 to 100 letters, digits and marks, without blanks",
        )?;
        if let Claim::Text(text) = claim {
            let fits =
                text.chars().count() <= MAX_CLAIM_CHARS && !text.chars().any(char::is_control);
            ensure(
                fits,
                what,
                "is one line of plain text, at most 1000 characters",
            )?;
            no_credentials(text, what)?;
        }
    }
    Ok(())
}

/// Rejects text that looks like a password, which could never be removed from the ledger.
fn no_credentials(text: &str, what: &'static str) -> Result<(), InvalidText> {
    ensure(
        !looks_like_dsn(text),
        what,
        "must not hold a DSN or a password",
    )
}

fn ensure(fits: bool, what: &'static str, rule: &'static str) -> Result<(), InvalidText> {
    if fits {
        Ok(())
    } else {
        Err(InvalidText { what, rule })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DSN: &str = "postgres://ana:hunter2@db.example.org/crm";

    #[test]
    fn a_pasted_dsn_is_refused_everywhere_and_never_echoed() {
        for refused in [
            dataset(DSN),
            source(DSN),
            env(DSN),
            who(DSN),
            note(DSN),
            note("moved to mysql://root:hunter2@10.0.0.1 today"),
        ] {
            let message = refused.unwrap_err().to_string();
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn ordinary_words_are_accepted() {
        dataset("crm-2").unwrap();
        source("crm_eu-rw").unwrap();
        env("CRM_EU_DSN").unwrap();
        who("Ana Núñez <ana@example.org>").unwrap();
        note("see https://example.org/why?a=b@c\nthen ask ana@example.org: she knows").unwrap();
        note("").unwrap();
    }

    #[test]
    fn names_outside_the_rule_are_refused() {
        for name in ["", "-a", "1a", "A", "a_b", "a b", "é", &"a".repeat(33)] {
            assert!(dataset(name).is_err(), "{name}");
        }
        for name in ["", "_a", "a.b", &"a".repeat(65)] {
            assert!(source(name).is_err(), "{name}");
        }
        for name in ["", "1A", "A-B", "A=B", "$A"] {
            assert!(env(name).is_err(), "{name}");
        }
        assert!(who("  ").is_err() && who("a\nb").is_err());
    }
}
