//! Every dataset: what needs a person first, then all.

use maud::{Markup, html};
use wayleave_project::overview::{self, DatasetLine, DatasetStatus};

use crate::{
    names::{Plain, code},
    page::{CardTable, NavSection, copy, on_command_line, state},
    respond::{PageAnswer, Visit},
    words::sentence,
};

pub(super) async fn show(visit: &Visit<'_>) -> PageAnswer {
    let lines = match overview::overview(&visit.console.project).await {
        Ok(lines) => lines,
        Err(error) => return PageAnswer::failed(NavSection::Datasets, &error.into()),
    };
    let indexes = visit.console.backend.indexes().await;
    let needy: Vec<Vec<Markup>> = lines.iter().filter_map(needs).collect();
    let rows: Vec<Vec<Markup>> = lines
        .iter()
        .map(|line| {
            let own = indexes.iter().filter(|it| Some(&it.dataset) == line.name.as_ref());
            let bytes: u64 = own.clone().map(|it| it.bytes).sum();
            let (all, ready) = (own.clone().count(), own.filter(|it| it.state == "ready").count());
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
                html! { (Plain(&line.connections.join(", "))) },
                html! { @if all > 0 { (size(bytes)) span.soft { (ready) " of " (all) " ready" } } },
            ]
        })
        .collect();
    let body = html! {
        h1 { "Datasets" }
        p.by { "Every mapping a person has ratified or drafted, and what stands in its way. What needs \
                you comes first." }
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
                    heads: &["Dataset", "State", "Version", "Streams", "Connections", "Search indexes"],
                    rows,
                }.render())
            }
        }
        (on_command_line("wayleave datasets"))
    };
    PageAnswer::page(NavSection::Datasets, "Datasets", body)
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
        (None, _) => span.soft { (Plain(&line.drafts.join(", "))) },
    } }
}

/// The state of a dataset: a mark and a word.
pub(super) fn status(status: DatasetStatus) -> Markup {
    match status {
        DatasetStatus::Active => state("on", "active"),
        DatasetStatus::Ratified => state("half", "ratified"),
        DatasetStatus::Draft => state("off", "draft"),
        DatasetStatus::Retired => state("off", "retired"),
    }
}

fn needs(line: &DatasetLine) -> Option<Vec<Markup>> {
    let (wrong, fix) = if let Some(reason) = &line.refused {
        (reason.clone(), "restore the frozen copy, or ratify again")
    } else if !line.suspended.is_empty() {
        let wrong = format!(
            "suspended, because their source changed: {}",
            line.suspended.join(", ")
        );
        (
            wrong,
            "mend the source, or ratify a draft that fits it (`wayleave propose --fit`)",
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

/// A size for people: `393 KiB`.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}
