//! Keeps a refusal within its budget of bytes.

use serde_json::Value as Json;

use super::{Facts, Refusal};

/// The most bytes a refusal is written in.
pub const MAX_BYTES: usize = 2_048;
/// The most bytes of one that describes connections to choose from.
pub const MAX_CHOICE_BYTES: usize = 4_096;

const MESSAGE: usize = 300;
const WORD: usize = 96;
const ALLOWED: usize = 40;
const LABEL: usize = 48;
/// The characters of a label where not all connections have room with longer ones.
const SHORT_LABEL: usize = 16;
/// So many connections are described before the ids of others are told.
const TOLD: usize = 1;

/// The refusal as JSON of at most so many bytes.
pub(super) fn fitted(refusal: &Refusal, bytes: usize) -> Json {
    let mut refusal: Facts = (**refusal).clone();
    let mut known = bound(&mut refusal);
    let mut json = written(&refusal, known);
    let is_whole = |refusal: &Facts| refusal.choice.as_ref().is_none_or(|it| !it.truncated);
    if is_whole(&refusal) {
        if json.to_string().len() > bytes && shorten_labels(&mut refusal) {
            json = written(&refusal, known);
        }
        if json.to_string().len() <= bytes {
            return json;
        }
    }
    // Not all connections have room with their labels; more of them have by their ids alone.
    if let Some(choice) = &mut refusal.choice
        && refusal.allowed.is_empty()
    {
        refusal.allowed = std::mem::take(&mut choice.ids);
        known = bound(&mut refusal);
    }
    loop {
        json = written(&refusal, known);
        let over = json.to_string().len().saturating_sub(bytes);
        if over == 0 || !shorten(&mut refusal, over) {
            return json;
        }
    }
}

/// Cuts texts and lists to their bounds, and tells how many words were allowed.
fn bound(refusal: &mut Facts) -> usize {
    refusal.message = cut(&refusal.message, MESSAGE);
    refusal.param = refusal.param.take().map(|param| cut(&param, WORD));
    refusal.did_you_mean.take_if(|word| word.len() > WORD);
    if let Some(choice) = &mut refusal.choice {
        for candidate in &mut choice.available_connections {
            candidate.label = cut(&candidate.label, LABEL);
            candidate.grant_id = cut(&candidate.grant_id, WORD);
        }
    }
    let known = refusal.allowed.len();
    refusal.allowed.retain(|word| word.len() <= WORD);
    refusal.allowed.truncate(ALLOWED);
    known
}

#[expect(
    clippy::expect_used,
    reason = "a refusal without its words would tell nothing"
)]
fn written(refusal: &Facts, known: usize) -> Json {
    let json = serde_json::to_value(refusal);
    let mut json = json.expect("texts, numbers and lists of them are JSON");
    if refusal.allowed.len() < known
        && let Json::Object(members) = &mut json
    {
        members.insert("allowed_total".to_owned(), Json::from(known));
    }
    json
}

/// Drops what matters least of what is left, about so many bytes of it; `false` when there is
/// nothing more to drop.
fn shorten(refusal: &mut Facts, over: usize) -> bool {
    if shorten_labels(refusal) || leave_out(refusal, TOLD) {
        return true;
    }
    let mut dropped = 0;
    while dropped < over
        && let Some(word) = refusal.allowed.pop()
    {
        dropped += word.len();
    }
    if dropped > 0 || leave_out(refusal, 0) {
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

/// Cuts the labels of connections; `false` when all are short.
fn shorten_labels(refusal: &mut Facts) -> bool {
    let Some(choice) = &mut refusal.choice else {
        return false;
    };
    let mut shortened = false;
    for candidate in &mut choice.available_connections {
        let short = cut(&candidate.label, SHORT_LABEL);
        if short.len() < candidate.label.len() {
            candidate.label = short;
            shortened = true;
        }
    }
    shortened
}

/// Leaves one connection out, unless no more than so many are told.
fn leave_out(refusal: &mut Facts, told: usize) -> bool {
    let Some(choice) = &mut refusal.choice else {
        return false;
    };
    if choice.available_connections.len() <= told {
        return false;
    }
    choice.available_connections.pop();
    choice.truncated = true;
    true
}

/// The first so many characters, and a sign that there were more.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.split_at(at).0),
        None => text.to_owned(),
    }
}
