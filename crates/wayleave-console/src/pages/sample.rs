//! Sample rows: shown after a recorded click, never stored.

use maud::{Markup, html};
use serde_json::Value;
use wayleave_model::mapping::Mapping;
use wayleave_project::{
    Explanation,
    inbox::{InboxProposal, ProposalInbox, ProposalRowAccess},
    row_access::{self, RowAccess},
};

use crate::{
    backend::SampleRows,
    page::{csrf, failed, moment},
    respond::SignedInRequest,
    visible_text::{VisibleText, code},
};

/// Maximum length of a value in a cell, in characters.
const MAX_CELL_CHARS: usize = 80;
/// Maximum number of streams offered.
const MAX_STREAMS: usize = 12;

/// The requested stream, and its rows or why there are none.
pub(super) struct SampleResult {
    pub(super) stream: String,
    pub(super) rows: Result<SampleRows, Explanation>,
}

/// The sample section of a proposal's page.
pub(super) fn section(
    visit: &SignedInRequest<'_>,
    proposal: &InboxProposal,
    mapping: &Mapping,
    shown: Option<&SampleResult>,
) -> Markup {
    html! {
        p {
            "Reviewing a mapping reads no rows. You can ask for sample rows: that you looked is \
             recorded, what you saw is not."
        }
        @if let Some(last) = proposal.row_accesses.last() {
            div.box { p {
                "Shown to " (VisibleText(&last.who)) " at " (moment(last.at)) ", " (code(&last.stream))
                ". The rows are not kept, and no agent has seen them."
            } }
        }
        @if let Some(shown) = shown {
            @match &shown.rows {
                Ok(rows) => {
                    h3 { (code(&shown.stream)) ", the fields this proposal would serve" }
                    (table(rows, &format!("Sample rows of {}", shown.stream)))
                },
                Err(why) => (failed("No rows.", why)),
            }
        }
        div.row.gap {
            @for stream in mapping.streams.iter().take(MAX_STREAMS) {
                form method="post" action={ "/inbox/" (proposal.id) "/rows#rows" } {
                    (csrf(visit.session))
                    input type="hidden" name="digest" value=(proposal.digest);
                    input type="hidden" name="stream" value=(stream.name.value);
                    button { "Show 5 rows of " (code(&stream.name)) }
                }
            }
        }
    }
}

/// Records who views the rows, then reads them. Unrecorded views read nothing.
pub(super) async fn read(
    visit: &SignedInRequest<'_>,
    proposal: &InboxProposal,
    proposed: &wayleave_model::ratify::Proposed,
) -> SampleResult {
    let stream = visit.form.get("stream").to_owned();
    let shown = ProposalRowAccess {
        who: visit.session.who.clone(),
        at: visit.console.now(),
        stream: stream.clone(),
    };
    if proposed.mapping().stream(&stream).is_none() {
        let rows = Err(Explanation::new("there is no such stream"));
        return SampleResult { stream, rows };
    }
    let project = &visit.console.project;
    let entry = RowAccess {
        who: &visit.session.who,
        how: "sample",
        stream: &stream,
        proposal: Some(proposal.id),
        token: None,
    };
    let recorded = row_access::record(project, &entry, visit.console.now());
    let recorded = recorded.map_err(|error| Explanation::from_error(&error));
    let kept = recorded
        .and_then(|()| Ok(ProposalInbox::new(project).record_row_access(proposal.id, shown)?));
    let rows = match kept {
        Ok(()) => visit.console.backend.sample(proposed, &stream).await,
        Err(why) => Err(why),
    };
    SampleResult { stream, rows }
}

/// A table of data: keeps its columns on narrow screens, and scrolls.
pub(super) fn table(rows: &SampleRows, label: &str) -> Markup {
    html! {
        div.scroll role="region" aria-label=(label) tabindex="0" { table {
            thead { tr { @for field in &rows.fields { th scope="col" { (code(field)) } } } }
            tbody { @for row in &rows.rows { tr {
                @for (at, value) in row.iter().enumerate() {
                    @if at == 0 { th scope="row" { (cell(value)) } } @else { td { (cell(value)) } }
                }
            } } }
        } }
        @if rows.rows.is_empty() { p.soft { "No records." } }
    }
}

fn cell(value: &Value) -> Markup {
    let text = match value {
        Value::Null => return html! { span.null { "null" } },
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let short: String = text.chars().take(MAX_CELL_CHARS).collect();
    let is_cut = short.len() < text.len();
    html! { (VisibleText(&short)) @if is_cut { "…" } }
}
