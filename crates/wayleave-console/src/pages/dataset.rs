//! One dataset: drift, streams, connections, and connecting, disconnecting or retiring it.

use http::StatusCode;
use maud::{Markup, html};
use wayleave_ledger::{Dataset, Validity};
use wayleave_model::{mapping::Mapping, ratify::Ratified};
use wayleave_project::{
    Explanation, index_status::IndexStatuses, overview::DatasetStatus, render,
    source_probe::ConnectionDrift,
};

use super::datasets::{as_of, calls, index_faults, size, status};
use crate::{
    page::{
        CardTable, NavSection, csrf, failed, moment, on_command_line, read_failure, sentence_of,
        state,
    },
    respond::{PageAnswer, SignedInRequest},
    sentences::{count, sentence},
    signing::{DecisionKind, passphrase_field},
    visible_text::{VisibleText, code},
};

/// Maximum number of streams in the table.
const MAX_STREAMS: usize = 60;

pub(super) async fn show(visit: &SignedInRequest<'_>, name: &str) -> PageAnswer {
    page(visit, name, None).await
}

pub(super) async fn act(visit: &SignedInRequest<'_>, name: &str, act: &str) -> PageAnswer {
    let (backend, who) = (&visit.console.backend, &visit.session.who);
    let done = match act {
        "connect" => backend.connect(name, who).await.map(drop),
        "disconnect" => backend.disconnect(name, who).await.map(drop),
        "retire" if visit.form.get("name") != name => {
            Err(Explanation::new("the name typed is not the dataset’s"))
        }
        "retire" => retire(visit, name).await,
        "compare" => Ok(()),
        _ => Err(Explanation::new("there is no such act")),
    };
    match done {
        Ok(()) => PageAnswer::SeeOther(format!("/datasets/{}", crate::form::encode(name))),
        Err(why) => {
            let answer = page(visit, name, Some(failed("Nothing was done.", &why))).await;
            answer.with_status(StatusCode::UNPROCESSABLE_ENTITY)
        }
    }
}

async fn retire(visit: &SignedInRequest<'_>, name: &str) -> Result<(), Explanation> {
    let project = visit.deciding(DecisionKind::Mapping).await?;
    let (who, note) = (&visit.session.who, visit.form.get("note"));
    project.governance().retire(name, who, note).await?;
    Ok(())
}

async fn page(visit: &SignedInRequest<'_>, name: &str, alert: Option<Markup>) -> PageAnswer {
    let Some(known) = visit.state.datasets().get(name) else {
        let what =
            html! { "There is no dataset " (code(name)) ". " a href="/datasets" { "Datasets" } };
        return PageAnswer::missing(NavSection::Datasets, &what);
    };
    let stage = match (&known.ratified, &known.active) {
        (None, _) => DatasetStatus::Retired,
        (Some(_), None) => DatasetStatus::Ratified,
        (Some(_), Some(_)) => DatasetStatus::Active,
    };
    let governance = visit.console.project.governance();
    let act = match (&known.active, &known.ratified) {
        (Some(active), _) => Some(&active.ratified.act),
        (None, Some(ratified)) => Some(&ratified.act),
        (None, None) => None,
    };
    let mapping = match act {
        Some(act) => Some(governance.load_as(act).await),
        None => None,
    };
    let body = html! {
        p.crumb { a href="/datasets" { "Datasets" } }
        div.title { h1 { (code(name)) } (status(stage)) }
        @if let Some(alert) = alert { (alert) }
        @match mapping {
            Some(Ok(mapping)) => (served(visit, name, known, &mapping).await),
            Some(Err(error)) => (failed("It is not served.", &error.into())),
            None => div.box { p { strong { "It is retired." } " Serving it again takes another ratification." } },
        }
        (on_command_line(&format!("wayleave datasets · wayleave check {name} --live · wayleave index status")))
    };
    PageAnswer::page(NavSection::Datasets, name, body)
}

async fn served(
    visit: &SignedInRequest<'_>,
    name: &str,
    known: &Dataset,
    mapping: &Ratified<Mapping>,
) -> Markup {
    let compared = visit.console.compare(visit.state, mapping).await;
    let mut indexes = visit.console.backend.indexes().await;
    if let Ok(indexes) = &mut indexes {
        indexes.retain(name);
    }
    let readable = indexes.as_ref().map(|it| it.known.as_slice());
    let readable = readable.unwrap_or_default();
    let bytes: u64 = readable.iter().map(|it| it.bytes).sum();
    let oldest = readable.iter().filter_map(|it| it.as_of.as_deref()).min();
    let active = known.active.as_ref();
    let used = visit.console.backend.recent_use().await;
    html! {
        @if let Some(about) = &mapping.dataset.description { p.by.agree { (VisibleText(about)) } }
        (read_failure("What was called is unknown.", &used))
        (index_faults(&indexes))
        (drift(visit, name, &compared))
        dl.facts.big.gap {
            div { dt { "Version" } dd { code { (mapping.digest().short()) } } }
            @if let Some(active) = active { div { dt { "Revision" } dd { (active.revision) } } }
            div { dt { "Streams" } dd { (mapping.streams.len()) } }
            div { dt { "Indexes" } dd {
                @if indexes.is_ok() { (size(bytes)) } @else { span.soft { "unknown" } }
            } }
            @if let Some(oldest) = oldest { div { dt { "Search sees it as of" } dd { (as_of(oldest)) } } }
            div { dt { "Calls in 24 hours" } dd {
                a href={ "/activity?dataset=" (crate::form::encode(name)) } { (calls(name, &used)) }
            } }
        }
        section aria-labelledby="s" {
            h2 id="s" { span.n { "1" } "Streams" }
            (streams(mapping, &indexes))
        }
        section aria-labelledby="c" {
            h2 id="c" { span.n { "2" } "Connections" }
            (connections(visit, mapping, &compared))
        }
        section id="versions" aria-labelledby="v" {
            h2 id="v" { span.n { "3" } "Versions" }
            (versions(visit, name, known))
        }
        section aria-labelledby="g" {
            h2 id="g" { span.n { "4" } "Who reads it" }
            (readers(visit, name))
        }
        section aria-labelledby="o" {
            h2 id="o" { span.n { "5" } "Out of service" }
            (out_of_service(visit, name, known))
        }
    }
}

fn drift(visit: &SignedInRequest<'_>, name: &str, compared: &[ConnectionDrift]) -> Markup {
    let broken: Vec<_> = compared.iter().filter(|it| it.is_broken()).collect();
    html! { @if !broken.is_empty() {
        div.box.weigh {
            p { strong { "Its source does not match the mapping." } }
            ul { @for it in &broken {
                @match &it.drift {
                    Ok(problems) => { @for problem in problems.iter().take(8) {
                        li { (sentence(&problem.message)) }
                    } },
                    Err(error) => li { (sentence(&error.to_string())) ". " (sentence(&error.hint())) },
                }
            } }
            form method="post" action={ "/datasets/" (name) "/compare" } {
                (csrf(visit.session)) button { "Compare again" }
            }
        }
    } }
}

fn streams(mapping: &Mapping, indexes: &Result<IndexStatuses, Explanation>) -> Markup {
    let rows = mapping.streams.iter().take(MAX_STREAMS).map(|stream| {
        vec![
            html! { a href={ "/try?stream=" (stream.name.value) } { (code(&stream.name)) } },
            html! { (VisibleText(&stream.type_name)) },
            html! { (code(&stream.table)) },
            html! { (stream.fields.len()) },
            index(&stream.name, indexes),
        ]
    });
    let left = mapping.streams.len().saturating_sub(MAX_STREAMS);
    html! {
        (CardTable {
            caption: "Streams",
            heads: &["Stream", "Type", "Table", "Fields", "Index"],
            rows: rows.collect(),
        }.render())
        @if left > 0 { p { "and " (left) " more" } }
    }
}

/// The search index of a stream: its state, size and number of records.
fn index(stream: &str, indexes: &Result<IndexStatuses, Explanation>) -> Markup {
    let Ok(indexes) = indexes else {
        return html! { span.soft { "unknown" } };
    };
    let is_unreadable = indexes.faults.iter().any(|it| it.stream == stream);
    let known = indexes.known.iter().find(|it| it.stream == stream);
    html! { @match known {
        Some(index) => { (VisibleText(index.state.as_str())) span.soft { (size(index.bytes))
            @if let Some(many) = index.documents { ", " (many) " records" } } },
        None if is_unreadable => (state("bad", "unreadable")),
        None => "not searched",
    } }
}

fn connections(
    visit: &SignedInRequest<'_>,
    mapping: &Mapping,
    compared: &[ConnectionDrift],
) -> Markup {
    let rows = mapping.connections.iter().map(|connection| {
        let source = visit.state.sources().get(connection.source.as_str());
        let drift = compared.iter().find(|it| it.connection == *connection.id);
        vec![
            html! { (code(&connection.id)) },
            html! {
                (code(&connection.source))
                @if let Some(source) = source { ", " (source.kind) ", DSN in " (code(&source.env)) }
            },
            html! { @match drift.map(|it| (&it.drift, it.is_broken())) {
                Some((Ok(_), false)) => (state("ok", "fits")),
                Some((Ok(_), true)) => (state("weigh", "drifted")),
                Some((Err(_), _)) => (state("bad", "no answer")),
                None => "",
            } },
        ]
    });
    CardTable {
        caption: "Connections",
        heads: &["Connection", "Source", "Compared"],
        rows: rows.collect(),
    }
    .render()
}

fn versions(visit: &SignedInRequest<'_>, name: &str, known: &Dataset) -> Markup {
    let live = known.active.as_ref().map(|it| it.digest);
    let mut entries = Vec::new();
    if let Some(ratified) = &known.ratified {
        entries.push(ratified);
    }
    if let Some(active) = known.active.as_ref().filter(|it| {
        known
            .ratified
            .as_ref()
            .is_none_or(|ratified| ratified.act.digest != it.digest)
    }) {
        entries.push(&active.ratified);
    }
    let rows = entries.iter().map(|entry| {
        let is_live = Some(entry.act.digest) == live;
        vec![
            html! { code { (entry.act.digest.short()) } },
            html! {
                @if is_live { (state("on", "live")) } @else { (state("half", "ratified")) }
            },
            html! { (VisibleText(&entry.act.who)) },
            html! { @if !entry.act.note.is_empty() { span.agree { "“" (VisibleText(&entry.act.note)) "”" } } },
            html! {
                (moment(entry.at))
                @if !is_live { form method="post" action={ "/datasets/" (name) "/connect" } {
                    (csrf(visit.session)) button.plain { "Connect this one" }
                } }
            },
        ]
    });
    CardTable {
        caption: "Versions",
        heads: &["Digest", "State", "Ratified by", "Why", "When"],
        rows: rows.collect(),
    }
    .render()
}

fn readers(visit: &SignedInRequest<'_>, name: &str) -> Markup {
    let now = visit.state.now(visit.console.now());
    let grants = visit.state.grants().values();
    let live: Vec<_> = grants
        .filter(|it| it.terms.dataset == name && it.validity(now) == Validity::Live)
        .collect();
    let tokens = visit.state.tokens().values();
    let held = tokens.filter(|it| {
        it.validity(now) == Validity::Live && live.iter().any(|grant| it.grants.contains(&grant.id))
    });
    html! { p {
        (count(live.len(), "grant")) ", " (count(held.count(), "token")) ", and this machine without a token. "
        a href="/grants" { "Grants and tokens" }
    } }
}

fn out_of_service(visit: &SignedInRequest<'_>, name: &str, known: &Dataset) -> Markup {
    html! { div.split.half {
        @if known.active.is_some() {
            form.box method="post" action={ "/datasets/" (name) "/disconnect" } {
                (csrf(visit.session))
                p { strong { "Disconnect" } " takes it out of service for everyone. It stays ratified and \
                     can be connected again." }
                button { "Disconnect " (VisibleText(name)) }
            }
        } @else {
            form.box method="post" action={ "/datasets/" (name) "/connect" } {
                (csrf(visit.session))
                p { strong { "Connect" } " serves it to every client that may read it." }
                button.primary { "Connect " (VisibleText(name)) }
            }
        }
        form.box.bad method="post" action={ "/datasets/" (name) "/retire" } {
            (csrf(visit.session))
            p { strong { "Retire" } " withdraws the agreement and revokes its grants. Serving it again \
                 takes another ratification." }
            @if let Some(ratified) = &known.ratified {
                p { (sentence(&sentence_of(&render::retirement::announcement(visit.state, ratified)))) }
            }
            div.field {
                label for="r" { "Type " (code(name)) " to retire it" }
                span.hint id="r-h" { "Say why below; it is kept for ever " span id="r-s" role="status" {} }
                input.mono id="r" name="name" data-expect=(name) data-say="r-s" aria-describedby="r-h"
                    autocomplete="off" required;
            }
            div.field { label for="rw" { "Why" } input id="rw" name="note" autocomplete="off" required; }
            (passphrase_field(visit, "rp"))
            button.danger { "Retire " (VisibleText(name)) }
        }
    } }
}
