//! The difference in words, grouped by stream, with notes in the margin.

use std::collections::BTreeMap;

use maud::{Markup, html};
use wayleave_model::diff::Change;
use wayleave_project::inbox::InboxProposal;

use crate::{
    risk_notes::RiskNote,
    sentences::{count, sentence, verb_first},
    visible_text::VisibleText,
};

/// Maximum number of changes described in words, unless all are requested.
const MAX_WORDS: usize = 120;

fn sign(change: &Change) -> (&'static str, &'static str) {
    let kind = change.kind.as_str();
    if kind.ends_with("_added") {
        ("add", "+")
    } else if kind.ends_with("_removed") {
        ("del", "−")
    } else {
        ("chg", "~")
    }
}

/// The stream a change belongs to; the dataset for changes of no stream.
fn group_of(path: &str) -> &str {
    let stream = path
        .strip_prefix("streams.")
        .and_then(|it| it.split('.').next());
    stream.unwrap_or("the dataset")
}

pub(super) fn in_words(
    proposal: &InboxProposal,
    changes: &[Change],
    risks: &[RiskNote],
    wants_all: bool,
) -> Markup {
    if changes.is_empty() {
        return html! { p { "It says the same in other words: only comments, order of keys or layout differ." } };
    }
    let notes = |at: usize| risks.iter().filter(move |it| it.change == at);
    let mut order: Vec<usize> = (0..changes.len()).collect();
    let is_cut = changes.len() > MAX_WORDS && !wants_all;
    if is_cut {
        order.retain(|at| notes(*at).next().is_some() || *at < MAX_WORDS / 4);
    }
    let left = changes.len() - order.len();
    let mut last = "";
    let lines: Vec<_> = order
        .into_iter()
        .filter_map(|at| {
            let change = changes.get(at)?;
            let group = group_of(&change.path);
            let is_first = std::mem::replace(&mut last, group) != group;
            Some((at, change, is_first.then_some(group)))
        })
        .collect();
    html! { ul.words {
        @for (at, change, group) in lines {
            @if let Some(group) = group { li.sub { (VisibleText(group)) } }
            @let (class, mark) = sign(change);
            li class=(class) {
                span.sign aria-hidden="true" { (mark) }
                span { (verb_first(&change.words)) }
                @for note in notes(at) {
                    div.note { b { (note.title) } (sentence(&note.text)) }
                }
            }
        }
        @if left > 0 {
            li.sub { "and " (left) " more" }
            li.add {
                span.sign aria-hidden="true" { "+" }
                span { (count(left, "change")) " without risks. "
                    a href={ "/inbox/" (proposal.id) "?all=1" } { "Show all" } }
            }
        }
    } }
}

/// Notes grouped by kind. The ratifier must tick each kind.
pub(super) fn grouped(risks: &[RiskNote]) -> Vec<(&'static str, Vec<&RiskNote>)> {
    let mut groups: BTreeMap<&'static str, Vec<&RiskNote>> = BTreeMap::new();
    for risk in risks {
        groups.entry(risk.title).or_default().push(risk);
    }
    groups.into_iter().collect()
}
