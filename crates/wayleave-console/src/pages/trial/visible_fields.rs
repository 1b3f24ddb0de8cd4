//! The fields and rows of a stream that a token sees, and the fields it does not see.

use std::collections::BTreeSet;

use maud::{Markup, html};
use wayleave_ledger::Validity;
use wayleave_model::{mapping::Mapping, ratify::Ratified};
use wayleave_project::Explanation;

use crate::{
    pages::{grant::shown_as, masks},
    respond::SignedInRequest,
    sentences::count,
    visible_text::{VisibleText, code},
};

/// Maximum number of streams listed by name.
const MAX_STREAMS: usize = 200;

/// The live mappings, as far as they can be loaded.
#[derive(Default)]
pub(super) struct LiveMappings {
    mappings: Vec<Ratified<Mapping>>,
    /// Why the others cannot be loaded.
    pub(super) faults: Vec<Explanation>,
}

impl LiveMappings {
    pub(super) async fn load(visit: &SignedInRequest<'_>) -> Self {
        let governance = visit.console.project.governance();
        let mut live = Self::default();
        for (_, active) in visit.state.active() {
            match governance.load_as(&active.ratified.act).await {
                Ok(mapping) => live.mappings.push(mapping),
                Err(error) => live.faults.push(error.into()),
            }
        }
        live
    }

    /// The names of their streams.
    pub(super) fn streams(&self) -> BTreeSet<String> {
        let streams = self.mappings.iter().flat_map(|it| &it.streams);
        let names = streams.map(|it| it.name.value.clone());
        names.take(MAX_STREAMS).collect()
    }
}

/// What a token sees of a stream; `None` if no live dataset has the stream.
pub(super) fn sees(
    visit: &SignedInRequest<'_>,
    live: &LiveMappings,
    token: Option<&str>,
    stream: &str,
) -> Option<Markup> {
    let now = visit.state.now(visit.console.now());
    let mut mappings = live.mappings.iter();
    let mapping = mappings.find(|it| it.stream(stream).is_some())?;
    let dataset = mapping.dataset.name.as_str();
    let all: Vec<&str> = mapping
        .stream(stream)?
        .fields
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let Some(token) = token else {
        return Some(html! { div.box { p {
            strong { "This machine, without a token," } " sees all " (count(all.len(), "field"))
            " and every record of " (code(stream)) "."
        } } });
    };
    let token = visit.state.tokens().get(token)?;
    let name = if token.label.is_empty() {
        &token.id
    } else {
        &token.label
    };
    let grants = token.grants.iter().filter_map(|id| visit.state.grant(id));
    let granted: Vec<_> = grants
        .filter(|it| it.validity(now) == Validity::Live && it.terms.dataset == dataset)
        .filter(|it| it.terms.streams.contains_key(stream))
        .collect();
    Some(html! { div.box {
        @if granted.is_empty() {
            p { strong { (VisibleText(name)) } " sees nothing of " (code(stream)) ": to it, it does not exist." }
        }
        @for grant in granted { @if let Some(terms) = grant.terms.streams.get(stream) {
            @let (shown, hidden): (Vec<&str>, Vec<&str>) = all.iter().copied().partition(|it| terms.fields.contains(*it));
            p { strong { (VisibleText(name)) } " sees " (shown.len()) " of " (count(all.len(), "field")) " of "
                (code(stream)) ", under " a href={ "/grants/" (grant.id) } { (code(&grant.id)) } "." }
            dl.facts {
                div { dt { "Sees" } dd { @for field in &shown {
                    (code(field)) (masks::note(shown_as(mapping.stream(stream), terms, field))) " "
                } } }
                @if !hidden.is_empty() { div { dt { "Does not see" } dd.soft { (VisibleText(&hidden.join(", "))) } } }
                div { dt { "Rows" } dd { @match &terms.rows {
                    Some(rows) => { "only where " (code(rows.as_str())) },
                    None => "all",
                } } }
            }
        } }
    } })
}
