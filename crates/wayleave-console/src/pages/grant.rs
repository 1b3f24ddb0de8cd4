//! One grant: what it allows, what it leaves out, and forms to narrow and revoke it.

mod narrowing;

use http::StatusCode;
use maud::{Markup, html};
use wayleave_ledger::{GrantEntry, Validity};
use wayleave_model::{
    grant::StreamTerms,
    mapping::{Mapping, Stream},
    mask::Mask,
    ratify::Ratified,
};
use wayleave_project::Explanation;

pub(super) use narrowing::narrow;

use super::{grants::ends, masks};
use crate::{
    page::{CardTable, NavSection, csrf, failed, moment, on_command_line, state},
    respond::{PageAnswer, SignedInRequest},
    sentences::{count, sentence},
    signing::{DecisionKind, passphrase_field},
    visible_text::{VisibleText, code},
};

pub(super) async fn show(visit: &SignedInRequest<'_>, id: &str) -> PageAnswer {
    page(visit, id, None, None).await
}

pub(super) async fn revoke(visit: &SignedInRequest<'_>, id: &str) -> PageAnswer {
    match revoked(visit, id).await {
        Ok(()) => PageAnswer::SeeOther("/grants".to_owned()),
        Err(why) => {
            let alert = failed("Nothing was revoked.", &why);
            let answer = page(visit, id, Some(alert), None).await;
            answer.with_status(StatusCode::UNPROCESSABLE_ENTITY)
        }
    }
}

async fn revoked(visit: &SignedInRequest<'_>, id: &str) -> Result<(), Explanation> {
    let project = visit.deciding(DecisionKind::Access).await?;
    let (who, note) = (&visit.session.who, visit.form.get("note"));
    project.governance().revoke_grant(id, who, note).await?;
    Ok(())
}

/// The page, with the outcome of a form, and a preview of what narrowing would remove.
async fn page(
    visit: &SignedInRequest<'_>,
    id: &str,
    alert: Option<Markup>,
    lost: Option<&[String]>,
) -> PageAnswer {
    let Some(grant) = visit.state.grant(id) else {
        let what = html! { "There is no grant " (code(id)) ". " a href="/grants" { "Grants" } };
        return PageAnswer::missing(NavSection::Grants, &what);
    };
    let now = visit.state.now(visit.console.now());
    let validity = grant.validity(now);
    let is_live = validity == Validity::Live;
    let held = visit.state.tokens().values();
    let held = held.filter(|it| it.validity(now) == Validity::Live && it.grants.contains(id));
    let held = held.count();
    let standing = match validity {
        Validity::Live => state("on", "in force"),
        Validity::Revoked => state("off", "revoked"),
        Validity::Expired => state("off", "ended"),
    };
    let governance = visit.console.project.governance();
    let mapping = governance.load(&grant.terms.dataset).await;
    let mapping = mapping.map_err(Explanation::from);
    let rows = rows(mapping.as_ref().ok(), grant);
    let successor = visit.state.grants().values().find(|it| {
        let ended = grant.revoked.as_ref();
        ended.is_some_and(|ended| ended.seq == it.seq)
    });
    let body = html! {
        p.crumb { a href="/grants" { "Grants and tokens" } }
        div.title { h1 { "Grant " (code(id)) } (standing) }
        p.by {
            "Reading of connection " (code(&grant.terms.connection)) ". Made by " (VisibleText(&grant.who)) ", "
            (moment(grant.at))
            @if !grant.purpose.is_empty() { ", " span.agree { "“" (VisibleText(&grant.purpose)) "”" } }
            ". Ends " (ends(grant.expires)) ". Held by " (count(held, "token")) ". "
            a href={ "/activity?dataset=" (crate::form::encode(&grant.terms.dataset)) } { "Calls" }
        }
        @if let Some(successor) = successor {
            div.box { p { strong { "It was narrowed. " } "In its place stands "
                a href={ "/grants/" (successor.id) } { (code(&successor.id)) } "." } }
        }
        @if let Some(alert) = alert { (alert) }
        section aria-labelledby="a" {
            h2 id="a" { span.n { "1" } "What it allows" }
            (CardTable {
                caption: "Streams of this grant",
                heads: &["Stream", "Fields", "Not in it", "Rows"],
                rows,
            }.render())
            @if !grant.terms.capabilities.is_empty() {
                p { (state("weigh", "writes")) " " @for name in &grant.terms.capabilities { (code(name)) " " } }
            }
            @match &mapping {
                Ok(mapping) if is_live => (leaking_relations(mapping, grant)),
                Ok(_) => {},
                Err(why) if is_live => (failed("It was not compared with its dataset.", why)),
                Err(why) => p.soft { "It was not compared with its dataset: " (sentence(&why.message)) "." },
            }
        }
        @if is_live {
            section id="narrow" aria-labelledby="n" {
                h2 id="n" { span.n { "2" } "Narrow" }
                @match &mapping {
                    Ok(mapping) => (narrowing::form(visit, grant, mapping, lost)),
                    Err(_) => p { "Its dataset cannot be read now, so it can only be revoked." },
                }
            }
            (revocation(visit, grant, held))
        }
        (on_command_line(&format!("wayleave grant show {id} · wayleave grant narrow {id} --stream STREAM=FIELD,FIELD · wayleave grant revoke {id}")))
    };
    PageAnswer::page(NavSection::Grants, format!("Grant {id}"), body)
}

/// The form that revokes the grant, which this number of live tokens hold.
fn revocation(visit: &SignedInRequest<'_>, grant: &GrantEntry, held: usize) -> Markup {
    let id = &grant.id;
    html! {
        section id="revoke" aria-labelledby="r" {
            h2 id="r" { span.n { "3" } "Revoke" }
            form.box.bad method="post" action={ "/grants/" (id) "/revoke" } {
                (csrf(visit.session))
                p { (count(held, "token")) @if held == 1 { " loses " } @else { " lose " } (code(&grant.terms.connection)) " from the next \
                     call, and what is open ends. It cannot be taken back; make another grant instead." }
                div.row {
                    div.field { label for="rw" { "Why" }
                        input id="rw" name="note" required autocomplete="off"; }
                    (passphrase_field(visit, "rp"))
                    button.danger { "Revoke " (VisibleText(id)) }
                }
            }
        }
    }
}

/// Warns of a stream with a row filter that an unfiltered stream has a relation to.
fn leaking_relations(mapping: &Ratified<Mapping>, grant: &GrantEntry) -> Markup {
    let streams = &grant.terms.streams;
    let is_held = |name: &str| streams.get(name).is_some_and(|it| it.rows.is_some());
    let open = mapping.streams.iter().filter(|stream| {
        streams
            .get(stream.name.as_str())
            .is_some_and(|it| it.rows.is_none())
    });
    let leaks: Vec<_> = open
        .filter_map(|stream| {
            let to = stream.relations.iter().find(|it| is_held(&it.to))?;
            Some((stream.name.as_str(), to.to.as_str()))
        })
        .collect();
    html! { @if !leaks.is_empty() { div.box.weigh {
        p { strong { "A filtered stream can be inferred through an unfiltered one." } }
        ul { @for (open, held) in &leaks {
            li { (code(held)) " shows only some rows; " (code(open)) ", which leads to it, shows all of its own." }
        } }
    } } }
}

/// The mask of a field under a grant: the grant's own, else the mapping's.
pub(super) fn shown_as(stream: Option<&Stream>, terms: &StreamTerms, field: &str) -> Option<Mask> {
    let required = || stream?.field(field)?.mask.as_ref().map(|it| it.value);
    terms.masks.get(field).copied().or_else(required)
}

fn rows(mapping: Option<&Ratified<Mapping>>, grant: &GrantEntry) -> Vec<Vec<Markup>> {
    let rows = grant.terms.streams.iter().map(|(name, terms)| {
        let stream = mapping.and_then(|it| it.stream(name));
        let others: Vec<&str> = stream
            .iter()
            .flat_map(|it| it.fields.iter())
            .map(|it| it.name.as_str())
            .filter(|it| !terms.fields.contains(*it))
            .collect();
        vec![
            code(name),
            html! { @for (at, field) in terms.fields.iter().enumerate() {
                @if at > 0 { ", " } (code(field)) (masks::note(shown_as(stream, terms, field)))
            } },
            html! { span.soft {
                @if mapping.is_none() { "unknown" }
                @else if others.is_empty() { "nothing" }
                @else { (VisibleText(&others.join(", "))) }
            } },
            html! { @match &terms.rows {
                Some(filter) => { "only where " (code(filter.as_str())) },
                None => "all",
            } },
        ]
    });
    rows.collect()
}
