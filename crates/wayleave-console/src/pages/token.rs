//! Tokens: issue one, show its text once, revoke it.

use http::StatusCode;
use maud::{Markup, html};
use wayleave_ledger::{IssuedToken, TokenEntry, TokenRequest, Validity};
use wayleave_model::grant::{Claims, Scope, Scopes, TokenKind};
use wayleave_project::{Explanation, render};

use super::{grant_new, grants::ends};
use crate::{
    page::{NavSection, csrf, failed, moment, on_command_line, sentence_of, state},
    respond::{PageAnswer, SignedInRequest},
    sentences::sentence,
    signing::{DecisionKind, passphrase_field},
    visible_text::{VisibleText, code},
};

/// The form for a new token.
pub(super) fn new(visit: &SignedInRequest<'_>, alert: Option<Markup>) -> PageAnswer {
    let now = visit.state.now(visit.console.now());
    let asked = visit.query.get("grant");
    let wants_builder = visit.query.get("scope") == "builder" || visit.form.has("builder");
    let grants = visit.state.grants().values();
    let live: Vec<_> = grants
        .filter(|it| it.validity(now) == Validity::Live)
        .collect();
    let body = html! {
        p.crumb { a href="/grants" { "Grants and tokens" } }
        h1 { "New token" }
        p.by { "A token is the credential that an agent presents. It reads what its grants allow, and nothing else." }
        @if let Some(alert) = alert { (alert) }
        form.decide.gap method="post" action="/tokens/new" {
            (csrf(visit.session))
            div.row {
                div.field { label for="label" { "Who or what it is for" }
                    input id="label" name="label" value=(visit.form.get("label")) maxlength="100" required autocomplete="off"; }
                (grant_new::expiry_field("30d"))
            }
            fieldset { legend { "Grants" }
                @if live.is_empty() { p { "There is none yet. " a href="/grants/new" { "New grant" } } }
                @for grant in &live {
                    label.tick {
                        input type="checkbox" name="grant" value=(grant.id) checked[grant.id == asked];
                        span { (code(&grant.id)) " of " (code(&grant.terms.connection))
                            @if !grant.purpose.is_empty() { " " span.soft.agree { "“" (VisibleText(&grant.purpose)) "”" } } }
                    }
                }
            }
            label.tick {
                input type="checkbox" name="builder" checked[wants_builder];
                span { "Scope builder: it may propose mappings into your inbox and connect what is ratified." }
            }
            (passphrase_field(visit, "ip"))
            button.primary { "Issue the token" }
        }
        (on_command_line("wayleave token create --grant GRANT"))
    };
    PageAnswer::page(NavSection::Grants, "New token", body)
}

pub(super) async fn issue(visit: &SignedInRequest<'_>) -> PageAnswer {
    match issued(visit).await {
        Ok(issued) => match visit.console.project.governance().ledger().state().await {
            Ok(state) => {
                let after = SignedInRequest {
                    console: visit.console,
                    session: visit.session,
                    state: &state,
                    query: visit.query.clone(),
                    form: visit.form.clone(),
                };
                show(&after, &issued.id, Some(&issued))
            }
            Err(error) => PageAnswer::failed(NavSection::Grants, &error.into()),
        },
        Err(why) => {
            let answer = new(visit, Some(failed("Not issued.", &why)));
            answer.with_status(StatusCode::UNPROCESSABLE_ENTITY)
        }
    }
}

async fn issued(visit: &SignedInRequest<'_>) -> Result<IssuedToken, Explanation> {
    let form = &visit.form;
    let now = visit.state.now(visit.console.now());
    let mut scopes = vec![Scope::Runtime];
    if form.has("builder") {
        scopes.push(Scope::Builder);
    }
    let request = TokenRequest {
        kind: TokenKind::Client,
        scopes: scopes.into_iter().collect::<Scopes>(),
        grants: form.all("grant").map(str::to_owned).collect(),
        claims: Claims::default(),
        label: form.get("label").trim().to_owned(),
        expires: grant_new::expiry_at(form.get("ends"), now)?,
    };
    let project = visit.deciding(DecisionKind::Access).await?;
    let issued = project
        .governance()
        .issue_token(request, &visit.session.who);
    Ok(issued.await?)
}

/// The page of a token, with its text only right after it was issued.
pub(super) fn show(
    visit: &SignedInRequest<'_>,
    id: &str,
    issued: Option<&IssuedToken>,
) -> PageAnswer {
    let Some(token) = visit.state.tokens().get(id) else {
        let what = html! { "There is no token " (code(id)) ". " a href="/grants" { "Grants" } };
        return PageAnswer::missing(NavSection::Grants, &what);
    };
    let now = visit.state.now(visit.console.now());
    let is_live = token.validity(now) == Validity::Live;
    let standing = match token.validity(now) {
        Validity::Live => state("on", "issued"),
        Validity::Revoked => state("off", "revoked"),
        Validity::Expired => state("off", "ended"),
    };
    let scopes: Vec<String> = token.scopes.iter().map(|it| it.to_string()).collect();
    let body = html! {
        p.crumb { a href="/grants" { "Grants and tokens" } }
        div.title {
            h1 { "Token " (code(id)) @if !token.label.is_empty() { ", “" (VisibleText(&token.label)) "”" } }
            (standing)
        }
        p.by {
            "Holds "
            @if token.grants.is_empty() { "no grant, so it reads nothing" }
            @for (at, grant) in token.grants.iter().enumerate() {
                @if at > 0 { ", " } a href={ "/grants/" (grant) } { (code(grant)) }
            }
            ". Scopes " (scopes.join(", ")) ". Ends " (ends(token.expires)) ". Issued by "
            (VisibleText(&token.who)) ", " (moment(token.at)) "."
        }
        @if let Some(issued) = issued { (secret(issued)) }
        @if is_live { (shortcomings(visit, token)) }
        @if is_live {
            section id="revoke" aria-labelledby="r" {
                h2 id="r" { "Revoke" }
                form.box.bad method="post" action={ "/tokens/" (id) "/revoke" } {
                    (csrf(visit.session))
                    p { "Requests with it are refused from the next call on." }
                    div.row {
                        div.field { label for="rw" { "Why" }
                            input id="rw" name="note" required autocomplete="off"; }
                        (passphrase_field(visit, "rp"))
                        button.danger { "Revoke " (VisibleText(id)) }
                    }
                }
            }
        }
        (on_command_line(&format!("wayleave token list · wayleave token revoke {id}")))
    };
    PageAnswer::page(NavSection::Grants, format!("Token {id}"), body)
}

/// Why the token can read less than its grants seem to allow.
fn shortcomings(visit: &SignedInRequest<'_>, token: &TokenEntry) -> Markup {
    let now = visit.state.now(visit.console.now());
    let all = render::issuing::shortcomings(visit.state, &token.grants, &token.claims, now);
    html! { @if !all.is_empty() { div.box.weigh {
        p { strong { "It reads less than its grants seem to allow." } }
        ul { @for it in &all { li { (sentence(&sentence_of(it))) } } }
    } } }
}

fn secret(issued: &IssuedToken) -> Markup {
    html! {
        div.secret.gap {
            h2 { "Copy it now" }
            p { "Its text is shown this once and kept nowhere. Leave this page and it is gone; a lost \
                 token is replaced, never shown again." }
            div.copy {
                code id="tok" { (issued.secret.expose()) }
                button type="button" data-copy="tok" hidden { "Copy" }
            }
        }
        section aria-labelledby="u" {
            h2 id="u" { "Where it goes" }
            p { "Into " code { "WAYLEAVE_TOKEN" } " where the client is started. Never into a file that is \
                 shared, an address, or a chat." }
            div.row.gap {
                a.button.primary href="/connect" { "I have kept it: connect a client" }
                a.button href={ "/try?as=" (issued.id) } { "Try a query as it" }
            }
        }
    }
}

pub(super) async fn revoke(visit: &SignedInRequest<'_>, id: &str) -> PageAnswer {
    match revoked(visit, id).await {
        Ok(()) => PageAnswer::SeeOther("/grants".to_owned()),
        Err(why) => {
            let body = html! { h1 { "Not revoked" } (failed("Nothing was revoked.", &why)) };
            let answer = PageAnswer::page(NavSection::Grants, "Not revoked", body);
            answer.with_status(StatusCode::UNPROCESSABLE_ENTITY)
        }
    }
}

async fn revoked(visit: &SignedInRequest<'_>, id: &str) -> Result<(), Explanation> {
    let project = visit.deciding(DecisionKind::Access).await?;
    let (who, note) = (&visit.session.who, visit.form.get("note"));
    project.governance().revoke_token(id, who, note).await?;
    Ok(())
}
