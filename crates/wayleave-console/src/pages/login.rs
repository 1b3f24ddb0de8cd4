//! Signing in and out.

use http::StatusCode;
use maud::html;

use crate::{
    console::Console,
    form::FormFields,
    page::{NavSection, clock, copy},
    respond::PageAnswer,
    visible_text::VisibleText,
};

/// The page of a link. Opening it does not redeem the link, so a link previewer cannot.
pub(crate) fn show(console: &Console, query: &FormFields) -> PageAnswer {
    let code = query.get("code");
    let Some(link) = console.links.find(code, console.now()) else {
        return used();
    };
    let project = &console.project.settings().name;
    let body = html! { div.narrow {
        h1 { "Sign in to " span.nowrap { (VisibleText(project)) } }
        p.by {
            "This link was printed on the terminal of whoever runs this project. It works once, \
             until " (clock(link.expires)) " UTC, in this browser."
        }
        form.decide.gap method="post" action="/login" {
            p.agree {
                "You sign in as " strong { (VisibleText(&link.who)) } ", an owner of this project. You can \
                 read proposals, ratify, grant and revoke. What you do is recorded under your name."
            }
            input type="hidden" name="code" value=(code);
            button.primary { "Sign in as " (VisibleText(&link.who)) }
        }
        (another())
    } };
    PageAnswer::page(NavSection::Outside, "Sign in", body)
}

fn another() -> maud::Markup {
    html! { section {
        h2 { "No link, or it was used?" }
        p { "Ask for another one where the project is:" }
        (copy("cmd", "wayleave console link"))
        p.soft {
            "The console never asks for a database password or a token. Tokens that agents use do \
             not sign in here."
        }
    } }
}

/// The page of a link that was used.
pub(crate) fn used() -> PageAnswer {
    let body = html! { div.narrow {
        div.state {
            h1 { "This link was used, or its 5 minutes are over" }
            p { "A link signs in one browser, once. If it was not you who used it, stop the console: \
                 that ends all sessions." }
        }
        (another())
    } };
    PageAnswer::page(NavSection::Outside, "Link used", body).with_status(StatusCode::GONE)
}

/// The page after signing out.
pub(crate) fn signed_out() -> PageAnswer {
    let body = html! { div.narrow {
        div.state { h1 { "You are signed out" } p { "This session has ended." } }
        (another())
    } };
    PageAnswer::page(NavSection::Outside, "Signed out", body)
}
