//! One grant: what it allows, and what is not in it.

use http::StatusCode;
use maud::{Markup, html};
use wayleave_ledger::{GrantEntry, Validity};
use wayleave_project::Explanation;

use super::grants::ends;
use crate::{
    names::{Plain, code},
    page::{CardTable, NavSection, csrf, failed, moment, on_command_line, state},
    respond::{PageAnswer, Visit},
    signing::{DecisionKind, passphrase_field},
    words::count,
};

pub(super) async fn show(visit: &Visit<'_>, id: &str) -> PageAnswer {
    page(visit, id, None).await
}

pub(super) async fn revoke(visit: &Visit<'_>, id: &str) -> PageAnswer {
    match revoked(visit, id).await {
        Ok(()) => PageAnswer::SeeOther("/grants".to_owned()),
        Err(why) => {
            let alert = failed("Nothing was revoked.", &why);
            let answer = page(visit, id, Some(alert)).await;
            answer.with_status(StatusCode::UNPROCESSABLE_ENTITY)
        }
    }
}

async fn revoked(visit: &Visit<'_>, id: &str) -> Result<(), Explanation> {
    let project = visit.deciding(DecisionKind::Access).await?;
    let (who, note) = (&visit.session.who, visit.form.get("note"));
    project.governance().revoke_grant(id, who, note).await?;
    Ok(())
}

async fn page(visit: &Visit<'_>, id: &str, alert: Option<Markup>) -> PageAnswer {
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
    let rows = rows(visit, grant).await;
    let body = html! {
        p.crumb { a href="/grants" { "Grants and tokens" } }
        div.title { h1 { "Grant " (code(id)) } (standing) }
        p.by {
            "Reading of connection " (code(&grant.terms.connection)) ". Made by " (Plain(&grant.who)) ", "
            (moment(grant.at))
            @if !grant.purpose.is_empty() { ", " span.agree { "“" (Plain(&grant.purpose)) "”" } }
            ". Ends " (ends(grant.expires)) ". Held by " (count(held, "token")) "."
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
                p { "Writes: " @for name in &grant.terms.capabilities { (code(name)) " " } }
            }
        }
        @if is_live {
            section aria-labelledby="n" {
                h2 id="n" { span.n { "2" } "Narrow" }
                p { "A grant cannot be changed. Make a narrower one with these ticks as the beginning, \
                     issue a token that holds it, then revoke this one." }
                p { a.button href={ "/grants/new?like=" (id) } { "Make a narrower grant" } }
            }
            section id="revoke" aria-labelledby="r" {
                h2 id="r" { span.n { "3" } "Revoke" }
                form.box.bad method="post" action={ "/grants/" (id) "/revoke" } {
                    (csrf(visit.session))
                    p { (count(held, "token")) " lose " (code(&grant.terms.connection)) " from their next \
                         call, and what is open ends. It cannot be taken back; make another grant instead." }
                    div.row {
                        div.field { label for="rw" { "Why" }
                            input id="rw" name="note" required autocomplete="off"; }
                        (passphrase_field(visit, "rp"))
                        button.danger { "Revoke " (Plain(id)) }
                    }
                }
            }
        }
        (on_command_line(&format!("wayleave grant show {id} · wayleave grant revoke {id}")))
    };
    PageAnswer::page(NavSection::Grants, format!("Grant {id}"), body)
}

async fn rows(visit: &Visit<'_>, grant: &GrantEntry) -> Vec<Vec<Markup>> {
    let governance = visit.console.project.governance();
    let mapping = governance.load(&grant.terms.dataset).await.ok();
    let rows = grant.terms.streams.iter().map(|(name, terms)| {
        let stream = mapping.as_ref().and_then(|it| it.stream(name));
        let others: Vec<&str> = stream
            .iter()
            .flat_map(|it| it.fields.iter())
            .map(|it| it.name.as_str())
            .filter(|it| !terms.fields.contains(*it))
            .collect();
        vec![
            code(name),
            html! { @for (at, field) in terms.fields.iter().enumerate() {
                @if at > 0 { ", " } (code(field))
            } },
            html! { span.soft { (Plain(&others.join(", "))) } },
            html! { @match &terms.rows {
                Some(filter) => { "only where " (code(filter.as_str())) },
                None => "all",
            } },
        ]
    });
    rows.collect()
}
