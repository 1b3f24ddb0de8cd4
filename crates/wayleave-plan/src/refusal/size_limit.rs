//! Keeps a refusal within its size limit.

use serde_json::Value as Json;

use super::{Refusal, RefusalBody};

/// Maximum size of a refusal.
pub const MAX_BYTES: usize = 2_048;
/// Maximum size of a refusal that lists connections to choose from.
pub const MAX_CHOICE_BYTES: usize = 4_096;

const MAX_MESSAGE_CHARS: usize = 300;
const MAX_WORD_CHARS: usize = 96;
const MAX_ALLOWED: usize = 40;
const MAX_LABEL_CHARS: usize = 48;
/// Maximum length of a label if not all connections fit with longer ones.
const MAX_SHORT_LABEL_CHARS: usize = 16;
/// Number of connections that stay described until all ids in `allowed` are dropped.
const MIN_DESCRIBED: usize = 1;

/// Writes the refusal as JSON of at most `bytes`.
pub(super) fn to_json_within(refusal: &Refusal, bytes: usize) -> Json {
    let mut refusal: RefusalBody = (**refusal).clone();
    let mut known = apply_limits(&mut refusal);
    let mut json = to_json(&refusal, known);
    let is_whole = |refusal: &RefusalBody| refusal.choice.as_ref().is_none_or(|it| !it.truncated);
    if is_whole(&refusal) {
        if json.to_string().len() > bytes && shorten_labels(&mut refusal) {
            json = to_json(&refusal, known);
        }
        if json.to_string().len() <= bytes {
            return json;
        }
    }
    // Not all connections fit with their labels; more of them fit as bare ids.
    if let Some(choice) = &mut refusal.choice
        && refusal.allowed.is_empty()
    {
        refusal.allowed = std::mem::take(&mut choice.ids);
        known = apply_limits(&mut refusal);
    }
    loop {
        json = to_json(&refusal, known);
        let over = json.to_string().len().saturating_sub(bytes);
        if over == 0 || !shorten(&mut refusal, over) {
            return json;
        }
    }
}

/// Cuts texts and lists to their limits, and returns the number of allowed words before that.
fn apply_limits(refusal: &mut RefusalBody) -> usize {
    refusal.message = cut(&refusal.message, MAX_MESSAGE_CHARS);
    refusal.param = refusal
        .param
        .take()
        .map(|param| cut(&param, MAX_WORD_CHARS));
    refusal
        .did_you_mean
        .take_if(|word| word.len() > MAX_WORD_CHARS);
    if let Some(choice) = &mut refusal.choice {
        for candidate in &mut choice.available_connections {
            candidate.label = cut(&candidate.label, MAX_LABEL_CHARS);
            candidate.grant_id = cut(&candidate.grant_id, MAX_WORD_CHARS);
        }
    }
    let known = refusal.allowed.len();
    refusal.allowed.retain(|word| word.len() <= MAX_WORD_CHARS);
    refusal.allowed.truncate(MAX_ALLOWED);
    known
}

#[expect(clippy::expect_used, reason = "a default would send an empty refusal")]
fn to_json(refusal: &RefusalBody, known: usize) -> Json {
    let json = serde_json::to_value(refusal);
    let mut json = json.expect("texts, numbers and lists of them are JSON");
    if refusal.allowed.len() < known
        && let Json::Object(members) = &mut json
    {
        members.insert("allowed_total".to_owned(), Json::from(known));
    }
    json
}

/// Drops the least important of the remaining parts, about `over` bytes; `false` if nothing is left
/// to drop.
fn shorten(refusal: &mut RefusalBody, over: usize) -> bool {
    if shorten_labels(refusal) || drop_connection(refusal, MIN_DESCRIBED) {
        return true;
    }
    let mut dropped = 0;
    while dropped < over
        && let Some(word) = refusal.allowed.pop()
    {
        dropped += word.len();
    }
    if dropped > 0 || drop_connection(refusal, 0) {
        return true;
    }
    if refusal.next.take().is_some() || refusal.did_you_mean.take().is_some() {
        return true;
    }
    let shorter = refusal.message.chars().count() / 2;
    refusal.message = cut(&refusal.message, shorter);
    refusal.param = None;
    shorter > 8
}

/// Shortens the labels of connections; `false` if all are short.
fn shorten_labels(refusal: &mut RefusalBody) -> bool {
    let Some(choice) = &mut refusal.choice else {
        return false;
    };
    let mut shortened = false;
    for candidate in &mut choice.available_connections {
        let short = cut(&candidate.label, MAX_SHORT_LABEL_CHARS);
        if short.len() < candidate.label.len() {
            candidate.label = short;
            shortened = true;
        }
    }
    shortened
}

/// Removes one connection, unless only `min_described` are left.
fn drop_connection(refusal: &mut RefusalBody, min_described: usize) -> bool {
    let Some(choice) = &mut refusal.choice else {
        return false;
    };
    if choice.available_connections.len() <= min_described {
        return false;
    }
    choice.available_connections.pop();
    choice.truncated = true;
    true
}

/// Cuts a text to `most` characters, and marks the cut.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.split_at(at).0),
        None => text.to_owned(),
    }
}
