//! Grants and tokens.

use maud::{Markup, html};
use wayleave_ledger::{GrantEntry, Millis, TokenEntry, Validity};

use crate::{
    page::{CardTable, NavSection, moment, on_command_line, read_failure, state},
    respond::{PageAnswer, SignedInRequest},
    sentences::count,
    visible_text::{VisibleText, code},
};

pub(super) async fn show(visit: &SignedInRequest<'_>) -> PageAnswer {
    let used = visit.console.backend.recent_use().await;
    let now = visit.state.now(visit.console.now());
    let grants: Vec<Vec<Markup>> = visit
        .state
        .grants()
        .values()
        .filter(|it| it.validity(now) == Validity::Live)
        .map(|it| {
            let mut row = grant_row(visit, it, now);
            row.push(last_used(used.as_ref().map(|used| used.grants.get(&it.id))));
            row
        })
        .collect();
    let tokens: Vec<Vec<Markup>> = visit
        .state
        .tokens()
        .values()
        .filter(|it| it.validity(now) == Validity::Live)
        .map(|it| {
            let mut row = token_row(it);
            row.push(last_used(used.as_ref().map(|used| used.tokens.get(&it.id))));
            row
        })
        .collect();
    let body = html! {
        div.title {
            h1 { "Grants and tokens" }
            a.button.primary href="/grants/new" { "New grant" }
        }
        p.by { "A grant says what may be read of one connection. A token is the credential that an agent \
                presents. Neither can be widened: make another, and revoke this one." }
        (read_failure("When they were last used is unknown.", &used))
        section aria-labelledby="g" {
            h2 id="g" { "Grants" }
            @if grants.is_empty() { div.state {
                h3 { "Nothing is granted" }
                p { "Clients on this machine read everything live without a token. To let others read \
                     some of it, make a grant and issue a token." }
            } } @else {
                (CardTable {
                    caption: "Grants",
                    heads: &["Grant", "Allows", "Rows", "Held by", "Ends", "Last used"],
                    rows: grants,
                }.render())
            }
        }
        section aria-labelledby="t" {
            h2 id="t" { "Tokens" }
            p { a.button href="/tokens/new" { "New token" } }
            @if tokens.is_empty() { div.state { p { "No token is issued." } } } @else {
                (CardTable {
                    caption: "Tokens",
                    heads: &["Token", "Kind", "Scopes", "Grants", "Ends", "Issued", "Last used"],
                    rows: tokens,
                }.render())
            }
        }
        (on_command_line("wayleave grant list · wayleave token list"))
    };
    PageAnswer::page(NavSection::Grants, "Grants and tokens", body)
}

fn grant_row(visit: &SignedInRequest<'_>, grant: &GrantEntry, now: Millis) -> Vec<Markup> {
    let tokens = visit.state.tokens().values();
    let held = tokens
        .filter(|it| it.validity(now) == Validity::Live && it.grants.contains(&grant.id))
        .count();
    let streams = &grant.terms.streams;
    let filtered = streams.values().filter(|it| it.rows.is_some()).count();
    vec![
        html! {
            a href={ "/grants/" (grant.id) } { (code(&grant.id)) }
            @if !grant.purpose.is_empty() { span.soft.agree { "“" (VisibleText(&grant.purpose)) "”" } }
        },
        html! {
            (code(&grant.terms.connection)) ": "
            @for (at, (name, terms)) in streams.iter().take(4).enumerate() {
                @if at > 0 { ", " } (code(name)) " " (count(terms.fields.len(), "field"))
            }
            @if streams.len() > 4 { ", and " (streams.len() - 4) " more" }
        },
        html! { @if filtered == 0 { "all" } @else { "filtered in " (count(filtered, "stream")) } },
        html! { @if held == 0 { (state("weigh", "nobody")) } @else { (count(held, "token")) } },
        ends(grant.expires),
    ]
}

fn token_row(token: &TokenEntry) -> Vec<Markup> {
    let scopes: Vec<String> = token.scopes.iter().map(|it| it.to_string()).collect();
    vec![
        html! {
            a href={ "/tokens/" (token.id) } { (code(&token.id)) }
            @if !token.label.is_empty() { span.soft { (VisibleText(&token.label)) } }
        },
        html! { (token.kind) },
        html! { (scopes.join(", ")) },
        html! { @if token.grants.is_empty() { (state("weigh", "none")) } @else {
            @for (at, id) in token.grants.iter().take(4).enumerate() {
                @if at > 0 { ", " } a href={ "/grants/" (id) } { (code(id)) }
            }
        } },
        ends(token.expires),
        html! { (moment(token.at)) span.soft { "by " (VisibleText(&token.who)) } },
    ]
}

/// The time of the last use, from the calls of one day, if they can be read.
fn last_used<E>(at: Result<Option<&u64>, E>) -> Markup {
    let at = at.map(|at| at.and_then(|it| Millis::try_from(*it).ok()));
    html! { @match at {
        Ok(Some(at)) => (moment(at)),
        Ok(None) => span.soft { "not in 24 hours" },
        Err(_) => span.soft { "unknown" },
    } }
}

/// An expiry. `never` is marked as worth attention.
pub(super) fn ends(expires: Option<Millis>) -> Markup {
    match expires {
        Some(at) => moment(at),
        None => state("weigh", "never"),
    }
}
