//! Rules for the reasons and comments that the inbox stores.

use wayleave_model::sensitive;

/// Maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 2_000;
/// Maximum length of a comment, in characters.
const MAX_COMMENT_CHARS: usize = 4_000;

/// An invalid reason or comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {what} {rule}")]
pub struct BadProposalText {
    /// `reason` or `comment`.
    pub what: &'static str,
    /// The rule it broke.
    pub rule: &'static str,
}

/// Checks an agent's reason; may be empty.
pub(super) fn reason(text: &str) -> Result<(), BadProposalText> {
    let rule = "has at most 2000 characters";
    check(text, "reason", MAX_REASON_CHARS, rule)
}

/// Checks a person's comment; may be empty.
pub(super) fn comment(text: &str) -> Result<(), BadProposalText> {
    let rule = "has at most 4000 characters";
    check(text, "comment", MAX_COMMENT_CHARS, rule)
}

fn check(
    text: &str,
    what: &'static str,
    most: usize,
    too_long: &'static str,
) -> Result<(), BadProposalText> {
    let bad = |rule| Err(BadProposalText { what, rule });
    if text.chars().count() > most {
        return bad(too_long);
    }
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if !text.chars().all(is_plain) || sensitive::first_hidden(text).is_some() {
        return bad("is plain text: no control, invisible or text-turning characters");
    }
    if sensitive::looks_like_dsn(text) {
        return bad("holds something that looks like a connection string or a password");
    }
    Ok(())
}
