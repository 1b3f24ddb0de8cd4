//! Every dataset: those that need attention first, then all.

use maud::{Markup, html};
use wayleave_project::{
    Explanation,
    call_summary::RecentUse,
    columns::thousands,
    index_status::{IndexReadiness, IndexStatuses},
    overview::{self, DatasetLine, DatasetStatus},
};

use crate::{
    comparisons::ComparedState,
    page::{
        CardTable, NavSection, clock, copy, csrf, failed, on_command_line, read_failure, state,
    },
    respond::{PageAnswer, SignedInRequest},
    sentences::sentence,
    visible_text::{VisibleText, code},
};

/// Maximum number of indexes that a page explains as unreadable.
const MAX_FAULTS: usize = 8;

pub(super) async fn show(visit: &SignedInRequest<'_>) -> PageAnswer {
    let lines = match overview::overview(&visit.console.project).await {
        Ok(lines) => lines,
        Err(error) => return PageAnswer::failed(NavSection::Datasets, &error.into()),
    };
    let indexes = visit.console.backend.indexes().await;
    let used = visit.console.backend.recent_use().await;
    // Connected since the last comparison: compare now, and keep the result for the next request.
    let is_new = |name: &str| visit.console.comparisons.get(name).is_none();
    if visit.state.active().any(|(name, _)| is_new(name)) {
        visit.console.compare_live().await;
    }
    let needy: Vec<Vec<Markup>> = lines.iter().filter_map(|line| needs(visit, line)).collect();
    let rows: Vec<Vec<Markup>> = lines
        .iter()
        .map(|line| {
            vec![
                name(line),
                status(line.state),
                html! {
                    @if let Some(digest) = line.serving.or(line.digest) { code { (digest.short()) } }
                    @if line.serving.is_some() {
                        span.soft { "another is ratified" }
                    }
                },
                html! { @if let Some(many) = line.streams { (many) } },
                compared(visit, line),
                searched(line, &indexes),
                called(line, &used),
            ]
        })
        .collect();
    let body = html! {
        h1 { "Datasets" }
        p.by { "Every mapping a person has ratified or drafted, and what stands in its way. What needs \
                you comes first." }
        (read_failure("What was called is unknown.", &used))
        (index_faults(&indexes))
        @if rows.is_empty() { (none()) }
        @if !needy.is_empty() {
            section aria-labelledby="n" {
                h2 id="n" { "Needs you" }
                (CardTable {
                    caption: "Datasets with problems",
                    heads: &["Dataset", "State", "What is wrong", "What fixes it"],
                    rows: needy,
                }.render())
            }
        }
        @if !rows.is_empty() {
            section aria-labelledby="a" {
                h2 id="a" { "All" }
                (CardTable {
                    caption: "All datasets",
                    heads: &["Dataset", "State", "Version", "Streams", "Source", "Search indexes", "Calls, 24 h"],
                    rows,
                }.render())
            }
        }
        @if lines.iter().any(|it| it.state == DatasetStatus::Active) {
            form.gap method="post" action="/datasets" {
                (csrf(visit.session)) button { "Compare with the sources now" }
            }
        }
        (on_command_line("wayleave datasets · wayleave doctor · wayleave index status"))
    };
    PageAnswer::page(NavSection::Datasets, "Datasets", body)
}

/// Compares every live dataset with its sources.
pub(super) async fn compare(visit: &SignedInRequest<'_>) -> PageAnswer {
    visit.console.compare_live().await;
    PageAnswer::SeeOther("/datasets".to_owned())
}

/// The last comparison of a live dataset with its sources, and its time.
fn compared(visit: &SignedInRequest<'_>, line: &DatasetLine) -> Markup {
    let last = line
        .name
        .as_ref()
        .filter(|_| line.state == DatasetStatus::Active);
    let last = last.map(|it| visit.console.comparisons.get(it));
    html! { @match last {
        None => "",
        Some(None) => (state("off", "not compared yet")),
        Some(Some((at, found))) => {
            @match found {
                ComparedState::Fits => (state("ok", "fits")),
                ComparedState::Drifted(_) => (state("weigh", "drifted")),
                ComparedState::NoAnswer(_) => (state("bad", "no answer")),
            }
            span.soft { "at " (clock(at)) " UTC" }
        },
    } }
}

/// The search indexes of a dataset: their size, how many are ready, and as of when.
fn searched(line: &DatasetLine, indexes: &Result<IndexStatuses, Explanation>) -> Markup {
    let Ok(indexes) = indexes else {
        let is_live = line.state == DatasetStatus::Active;
        return html! { @if is_live { span.soft { "unknown" } } };
    };
    let is_own = |dataset: &String| Some(dataset) == line.name.as_ref();
    let own: Vec<_> = indexes
        .known
        .iter()
        .filter(|it| is_own(&it.dataset))
        .collect();
    let faults = indexes
        .faults
        .iter()
        .filter(|it| is_own(&it.dataset))
        .count();
    let bytes: u64 = own.iter().map(|it| it.bytes).sum();
    let oldest = own.iter().filter_map(|it| it.as_of.as_deref()).min();
    let ready = own
        .iter()
        .filter(|it| it.state == IndexReadiness::Ready)
        .count();
    let all = own.len() + faults;
    html! { @if all > 0 {
        (size(bytes)) span.soft { (ready) " of " (all) " ready"
            @if let Some(oldest) = oldest { ", as of " (as_of(oldest)) } }
    } }
}

/// Why the search indexes, or some of them, cannot be read.
pub(super) fn index_faults(indexes: &Result<IndexStatuses, Explanation>) -> Markup {
    html! {
        (read_failure("The search indexes cannot be read.", indexes))
        @if let Ok(indexes) = indexes {
            @for fault in indexes.faults.iter().take(MAX_FAULTS) {
                (failed("Not all of the search indexes are known.", &fault.why))
            }
        }
    }
}

/// How many calls used a live dataset.
fn called(line: &DatasetLine, used: &Result<RecentUse, Explanation>) -> Markup {
    let name = line
        .name
        .as_ref()
        .filter(|_| line.state == DatasetStatus::Active);
    html! { @if let Some(name) = name { (calls(name, used)) } }
}

/// The number of recent calls that used a dataset.
pub(super) fn calls(dataset: &str, used: &Result<RecentUse, Explanation>) -> Markup {
    html! { @match used {
        Ok(used) => (thousands(used.datasets.get(dataset).copied().unwrap_or(0))),
        Err(_) => span.soft { "unknown" },
    } }
}

/// The time of an index, for display: `2026-11-16 07:02 UTC`.
pub(super) fn as_of(rfc3339: &str) -> String {
    let text: String = rfc3339.chars().take(16).collect();
    format!("{} UTC", text.replace('T', " "))
}

fn none() -> Markup {
    html! { div.state {
        h2 { "No dataset yet" }
        p { "A dataset is a mapping a person has ratified. First declare where the data is, by the name \
             of the variable that holds its DSN:" }
        (copy("add", "wayleave source add shop --kind postgres --env SHOP_DSN && wayleave propose shop"))
    } }
}

fn name(line: &DatasetLine) -> Markup {
    html! { @match (&line.name, line.state) {
        (Some(name), DatasetStatus::Draft) => (code(name)),
        (Some(name), _) => a href={ "/datasets/" (name) } { (code(name)) },
        (None, _) => span.soft { (VisibleText(&line.drafts.join(", "))) },
    } }
}

/// The state of a dataset as a mark and a word.
pub(super) fn status(status: DatasetStatus) -> Markup {
    match status {
        DatasetStatus::Active => state("on", "active"),
        DatasetStatus::Ratified => state("half", "ratified"),
        DatasetStatus::Draft => state("off", "draft"),
        DatasetStatus::Retired => state("off", "retired"),
    }
}

fn needs(visit: &SignedInRequest<'_>, line: &DatasetLine) -> Option<Vec<Markup>> {
    let compared = line
        .name
        .as_ref()
        .and_then(|it| visit.console.comparisons.get(it));
    let compared = compared.filter(|_| line.state == DatasetStatus::Active);
    let (wrong, fix) = if let Some(reason) = &line.refused {
        (reason.clone(), "restore the frozen copy, or ratify again")
    } else if !line.suspended.is_empty() {
        let wrong = format!(
            "suspended, because their source changed: {}",
            line.suspended.join(", ")
        );
        (
            wrong,
            "fix the source, or ratify a draft that fits it (`wayleave propose --fit`)",
        )
    } else if let Some((_, ComparedState::Drifted(first))) = compared {
        let wrong = format!("its source does not match the mapping: {first}");
        (
            wrong,
            "`wayleave propose --fit` writes the mapping that fits; read it here, or ratify it there",
        )
    } else if let Some((_, ComparedState::NoAnswer(why))) = compared {
        (
            why,
            "`wayleave doctor` says what it needs; then compare again",
        )
    } else if let Some(serving) = line.serving {
        let wrong = format!(
            "`{}` is served on; another was ratified since",
            serving.short()
        );
        (wrong, "connect the new one on the dataset’s page")
    } else if let Some(problem) = &line.draft_problem {
        (format!("draft: {problem}"), "`wayleave check` shows where")
    } else if line.state == DatasetStatus::Ratified {
        (
            "it is ratified and not connected".to_owned(),
            "connect it on the dataset’s page",
        )
    } else {
        return None;
    };
    Some(vec![
        name(line),
        status(line.state),
        html! { (sentence(&wrong)) },
        html! { (sentence(fix)) },
    ])
}

/// A human-readable size: `393 KiB`.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}
