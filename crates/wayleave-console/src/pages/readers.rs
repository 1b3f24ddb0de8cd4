//! The readers of a proposal's dataset: what each sees now, and after ratification.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use wayleave_ledger::{GrantEntry, State, Validity};
use wayleave_model::mapping::Mapping;

use crate::{
    page::{CardTable, state},
    sentences::count,
    visible_text::{VisibleText, code},
};

/// Maximum number of field names in a cell.
const MAX_NAMES: usize = 12;

type Fields = BTreeMap<String, BTreeSet<String>>;

/// The readers of a dataset, now and after it is ratified and connected.
pub(super) fn table(
    ledger: &State,
    old: Option<&Mapping>,
    new: &Mapping,
    now: wayleave_ledger::Millis,
) -> Markup {
    let dataset = new.dataset.name.as_str();
    let (before, after) = (old.map(fields).unwrap_or_default(), fields(new));
    let mut rows = vec![vec![
        html! { "This machine, without a token" },
        html! { (extent(&before)) },
        html! {
            @let (gains, losses) = (minus(&after, &before), minus(&before, &after));
            @if gains.is_empty() && losses.is_empty() { "the same" } @else {
                @if !gains.is_empty() { (state("weigh", "sees more")) " gains " (names(&gains)) }
                @if !gains.is_empty() && !losses.is_empty() { "; " }
                @if !losses.is_empty() { "loses " (names(&losses)) }
            }
        },
    ]];
    let grants = ledger.grants().values();
    let live =
        grants.filter(|it| it.terms.dataset == dataset && it.validity(now) == Validity::Live);
    for grant in live {
        rows.push(reader(ledger, grant, &before, &after, now));
    }
    html! {
        p { "A grant never grows: what this adds is in nobody’s grant until you put it there." }
        (CardTable {
            caption: "Readers, now and after",
            heads: &["Reader", "Reads of it now", "After ratifying and connecting"],
            rows,
        }.render())
    }
}

fn reader(
    ledger: &State,
    grant: &GrantEntry,
    before: &Fields,
    after: &Fields,
    now: wayleave_ledger::Millis,
) -> Vec<Markup> {
    let holders = ledger.tokens().values();
    let holders = holders.filter(|it| it.grants.contains(&grant.id));
    let holders: Vec<_> = holders
        .filter(|it| it.validity(now) == Validity::Live)
        .collect();
    let granted: Fields = grant
        .terms
        .streams
        .iter()
        .map(|(name, it)| (name.clone(), it.fields.clone()))
        .collect();
    let reads = both(&granted, before);
    let losses = minus(&reads, after);
    vec![
        html! {
            @match holders.as_slice() {
                [] => "nobody yet",
                [only] if only.label.is_empty() => (code(&only.id)),
                [only] => (VisibleText(&only.label)),
                many => (count(many.len(), "token")),
            }
            span.soft { "grant " a href={ "/grants/" (grant.id) } { (code(&grant.id)) } }
            @for note in wide(grant, &reads, before) { span.soft { (state("weigh", note)) } }
        },
        html! { (extent(&reads)) },
        html! {
            @if losses.is_empty() { "the same" } @else { "loses " (names(&losses)) "; gains nothing" }
        },
    ]
}

/// The properties that make a grant wide.
fn wide(grant: &GrantEntry, reads: &Fields, before: &Fields) -> Vec<&'static str> {
    let mut notes = Vec::new();
    let is_filtered = grant.terms.streams.values().any(|it| it.rows.is_some());
    if !reads.is_empty() && reads == before && !is_filtered {
        notes.push("wide: every field, every row");
    }
    if grant.expires.is_none() {
        notes.push("never ends");
    }
    if !grant.terms.capabilities.is_empty() {
        notes.push("writes");
    }
    notes
}

fn fields(mapping: &Mapping) -> Fields {
    let streams = mapping.streams.iter();
    streams
        .map(|stream| {
            let fields = stream.fields.iter().map(|it| it.name.value.clone());
            (stream.name.value.clone(), fields.collect())
        })
        .collect()
}

fn minus(left_side: &Fields, right_side: &Fields) -> Fields {
    let none = BTreeSet::new();
    let mut left = Fields::new();
    for (stream, fields) in left_side {
        let gone: BTreeSet<String> = fields
            .difference(right_side.get(stream).unwrap_or(&none))
            .cloned()
            .collect();
        if !gone.is_empty() {
            left.insert(stream.clone(), gone);
        }
    }
    left
}

fn both(left_side: &Fields, right_side: &Fields) -> Fields {
    let none = BTreeSet::new();
    let shared = left_side.iter().map(|(stream, fields)| {
        let others = right_side.get(stream).unwrap_or(&none);
        let shared: BTreeSet<String> = fields.intersection(others).cloned().collect();
        (stream.clone(), shared)
    });
    shared.filter(|(_, fields)| !fields.is_empty()).collect()
}

fn extent(fields: &Fields) -> String {
    let many = fields.values().map(BTreeSet::len).sum();
    if fields.is_empty() {
        return "nothing".to_owned();
    }
    format!(
        "{}, {}",
        count(fields.len(), "stream"),
        count(many, "field")
    )
}

fn names(fields: &Fields) -> Markup {
    let all: Vec<&String> = fields.values().flatten().collect();
    if all.len() > MAX_NAMES {
        return html! { (extent(fields)) };
    }
    html! { @for (at, name) in all.iter().enumerate() {
        @if at > 0 { ", " } (code(name))
    } }
}
