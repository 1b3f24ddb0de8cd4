//! Keeps a refusal within its budget of bytes.

use serde_json::Value as Json;

use super::{Facts, Refusal};

/// The most bytes a refusal is written in.
pub const MOST_BYTES: usize = 2_048;

const MESSAGE: usize = 300;
const WORD: usize = 96;
const ALLOWED: usize = 40;
const LABEL: usize = 48;

/// The refusal as JSON of at most so many bytes.
pub(super) fn fitted(refusal: &Refusal, bytes: usize) -> Json {
    let mut refusal: Facts = (**refusal).clone();
    refusal.message = cut(&refusal.message, MESSAGE);
    refusal.param = refusal.param.map(|param| cut(&param, WORD));
    refusal.did_you_mean = refusal.did_you_mean.filter(|word| word.len() <= WORD);
    let known = refusal.allowed.len();
    refusal.allowed.retain(|word| word.len() <= WORD);
    refusal.allowed.truncate(ALLOWED);
    if let Some(choice) = &mut refusal.choice {
        for candidate in &mut choice.available_connections {
            candidate.label = cut(&candidate.label, LABEL);
            candidate.grant_id = cut(&candidate.grant_id, WORD);
        }
    }
    loop {
        let json = written(&refusal, known);
        let over = json.to_string().len().saturating_sub(bytes);
        if over == 0 || !shorten(&mut refusal, over) {
            return json;
        }
    }
}

fn written(refusal: &Facts, known: usize) -> Json {
    let mut json = serde_json::to_value(refusal).unwrap_or(Json::Null);
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
    if let Some(choice) = &mut refusal.choice
        && choice.available_connections.pop().is_some()
    {
        choice.truncated = true;
        return true;
    }
    let mut dropped = 0;
    while dropped < over
        && let Some(word) = refusal.allowed.pop()
    {
        dropped += word.len();
    }
    if dropped > 0 {
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

/// The first so many characters, and a sign that there were more.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
