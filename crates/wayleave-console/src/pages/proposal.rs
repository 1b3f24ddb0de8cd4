//! One proposal, in the order of deciding: its status, the changes in words, who would see them,
//! the bytes, sample rows, the decision.

mod blocked;
mod forms;
mod in_words;

use http::StatusCode;
use maud::{Markup, html};
use wayleave_model::digest::Digest;
use wayleave_project::{
    Explanation,
    inbox::{self, Agreement, InboxError, InboxProposal, InboxStatus, ProposalInbox},
    render,
    review::{RatifiedVersion, Review},
    source_probe::ConnectionDrift,
};

use blocked::blocked;
use forms::{accept_form, ratify_form, send_back_form};
use in_words::{grouped, in_words};

use super::{
    diff_table,
    inbox::{from, outcome},
    ratified, readers, sample,
};
use crate::{
    page::{NavSection, day, failed, moment, on_command_line, state},
    respond::{PageAnswer, SignedInRequest},
    risk_notes::{RiskNote, risk_notes},
    sentences::{count, sentence},
    signing::DecisionKind,
    visible_text::{VisibleText, code},
};

/// The outcome of a submitted form, shown on the page.
#[derive(Default)]
struct FormOutcome {
    /// Why nothing was done.
    alert: Option<Markup>,
    /// The invalid field, and why it is invalid.
    wrong: Option<(&'static str, String)>,
    shown: Option<sample::SampleResult>,
    status: StatusCode,
}

pub(super) async fn show(visit: &SignedInRequest<'_>, id: &str) -> PageAnswer {
    match find(visit, id) {
        Ok(proposal) => page(visit, &proposal, FormOutcome::default()).await,
        Err(answer) => answer,
    }
}

fn find(visit: &SignedInRequest<'_>, id: &str) -> Result<InboxProposal, PageAnswer> {
    let missing = || {
        let what =
            html! { "There is no proposal " (VisibleText(id)) ". " a href="/inbox" { "Inbox" } };
        PageAnswer::missing(NavSection::Inbox, &what)
    };
    let id = id.parse().map_err(|_| missing())?;
    match ProposalInbox::new(&visit.console.project).get(id) {
        Ok(proposal) => Ok(proposal),
        Err(InboxError::Unknown { .. }) => Err(missing()),
        Err(error) => Err(PageAnswer::failed(NavSection::Inbox, &error.into())),
    }
}

/// The whole mapping, as text.
pub(super) fn text(visit: &SignedInRequest<'_>, id: &str) -> PageAnswer {
    match find(visit, id) {
        Ok(proposal) => PageAnswer::Text(proposal.text),
        Err(answer) => answer,
    }
}

pub(super) async fn act(visit: &SignedInRequest<'_>, id: &str, act: &str) -> PageAnswer {
    let proposal = match find(visit, id) {
        Ok(proposal) => proposal,
        Err(answer) => return answer,
    };
    let Ok(read) = visit.form.get("digest").parse::<Digest>() else {
        return PageAnswer::missing(NavSection::Inbox, &html! { "That form names no proposal." });
    };
    match act {
        "rows" => rows(visit, &proposal, read).await,
        "ratify" => ratify(visit, &proposal, read).await,
        "return" => send_back(visit, &proposal, read).await,
        "accept" => accept(visit, &proposal, read).await,
        _ => PageAnswer::missing(NavSection::Inbox, &html! { "There is no such act." }),
    }
}

async fn rows(visit: &SignedInRequest<'_>, proposal: &InboxProposal, read: Digest) -> PageAnswer {
    if proposal.digest != read {
        return page(visit, proposal, changed(proposal, read)).await;
    }
    let shown = match inbox::review(&visit.console.project, proposal).await {
        Ok(review) => sample::read(visit, proposal, &review.proposed).await,
        Err(_) => return page(visit, proposal, FormOutcome::default()).await,
    };
    let attempt = FormOutcome {
        shown: Some(shown),
        ..FormOutcome::default()
    };
    match find(visit, &proposal.id.to_string()) {
        Ok(proposal) => page(visit, &proposal, attempt).await,
        Err(answer) => answer,
    }
}

/// The proposal was replaced since the person read it.
fn changed(proposal: &InboxProposal, read: Digest) -> FormOutcome {
    let alert = html! { div.box.weigh role="alert" {
        p {
            strong { "Nothing was done: it is not what you read." }
            " You read " code { (read.short()) } "; proposal " (proposal.id) " is now "
            code { (proposal.digest.short()) } ". The agent replaced it. Below is what it is now."
        }
    } };
    FormOutcome {
        alert: Some(alert),
        status: StatusCode::CONFLICT,
        ..FormOutcome::default()
    }
}

fn refused(what: &str, why: &Explanation, status: StatusCode) -> FormOutcome {
    FormOutcome {
        alert: Some(failed(what, why)),
        status,
        ..FormOutcome::default()
    }
}

async fn ratify(visit: &SignedInRequest<'_>, proposal: &InboxProposal, read: Digest) -> PageAnswer {
    let form = &visit.form;
    if proposal.digest != read {
        return page(visit, proposal, changed(proposal, read)).await;
    }
    let typed = form.get("name");
    if typed != proposal.dataset {
        let why = format!("This is `{typed}`. What you wrote under “Why” is kept.");
        let link = "The name typed is not the dataset’s";
        return page(visit, proposal, unfilled("name", link, why)).await;
    }
    let Ok(review) = inbox::review(&visit.console.project, proposal).await else {
        return page(visit, proposal, FormOutcome::default()).await;
    };
    let all = risk_notes(&review.changes, review.proposed.mapping());
    let groups = grouped(&all);
    let is_unticked = (0..groups.len()).any(|at| !form.has(&format!("w{at}")));
    if is_unticked {
        let link = "A risk is not ticked";
        let why = "Tick each risk that you have considered.".to_owned();
        return page(visit, proposal, unfilled("risks", link, why)).await;
    }
    let mut note = form.get("note").trim().to_owned();
    if note.is_empty() {
        let why = "Say why, in your words.".to_owned();
        return page(
            visit,
            proposal,
            unfilled("note", "The reason is missing", why),
        )
        .await;
    }
    if !groups.is_empty() {
        let considered: Vec<String> = groups
            .iter()
            .map(|(title, it)| format!("{title} ({})", it.len()))
            .collect();
        note = format!("{note}\nconsidered risks: {}", considered.join("; "));
    }
    let agreement = Agreement {
        read,
        against: form.get("against").parse::<Digest>().ok(),
        who: visit.session.who.clone(),
        note,
    };
    let console = visit.console;
    let probe = Some(console.backend.probe());
    let project = match visit.deciding(DecisionKind::Mapping).await {
        Ok(project) => project,
        Err(why) => {
            let attempt = refused("Not ratified.", &why, StatusCode::FORBIDDEN);
            return page(visit, proposal, attempt).await;
        }
    };
    match inbox::ratify(&project, proposal.id, agreement, probe, console.now()).await {
        Ok(outcome) => {
            let connected = if form.has("connect") {
                let who = &visit.session.who;
                Some(console.backend.connect(&proposal.dataset, who).await)
            } else {
                None
            };
            ratified::show(visit, proposal, &outcome, connected).await
        }
        Err(error) => {
            let why = match render::inbox::not_ratified(error) {
                Ok(rendering) => Explanation::new(rendering.text()),
                Err(why) => why,
            };
            let attempt = refused("Not ratified.", &why, StatusCode::CONFLICT);
            page(visit, proposal, attempt).await
        }
    }
}

/// A form with a missing value: a summary, and a message at the field.
fn unfilled(field: &'static str, link: &str, why: String) -> FormOutcome {
    let alert = html! { div.box.bad role="alert" {
        p { strong { "Not ratified: 1 thing to fix." } }
        ul { li { a href={ "#" (field) } { (link) } } }
    } };
    FormOutcome {
        alert: Some(alert),
        wrong: Some((field, why)),
        status: StatusCode::UNPROCESSABLE_ENTITY,
        ..FormOutcome::default()
    }
}

async fn send_back(
    visit: &SignedInRequest<'_>,
    proposal: &InboxProposal,
    read: Digest,
) -> PageAnswer {
    let (console, who) = (visit.console, &visit.session.who);
    let comment = visit.form.get("comment").trim();
    let (id, now) = (proposal.id, console.now());
    match inbox::send_back(&console.project, id, read, who, comment, now) {
        Ok(_) => PageAnswer::SeeOther("/inbox".to_owned()),
        Err(InboxError::Replaced { .. }) => page(visit, proposal, changed(proposal, read)).await,
        Err(error) => {
            let attempt = refused("Not sent back.", &error.into(), StatusCode::CONFLICT);
            page(visit, proposal, attempt).await
        }
    }
}

async fn accept(visit: &SignedInRequest<'_>, proposal: &InboxProposal, read: Digest) -> PageAnswer {
    let (console, who) = (visit.console, &visit.session.who);
    let overwrite = visit.form.has("overwrite");
    let (id, now) = (proposal.id, console.now());
    match inbox::accept(&console.project, id, read, who, overwrite, now).await {
        Ok(_) => PageAnswer::SeeOther("/inbox".to_owned()),
        Err(error) => {
            let attempt = refused(
                "Not taken into the drafts.",
                &error.into(),
                StatusCode::CONFLICT,
            );
            page(visit, proposal, attempt).await
        }
    }
}

/// The page in its current state, with the outcome of a submitted form.
async fn page(
    visit: &SignedInRequest<'_>,
    proposal: &InboxProposal,
    attempt: FormOutcome,
) -> PageAnswer {
    let console = visit.console;
    let status = attempt.status;
    let title = format!("Proposal {}: {}", proposal.id, proposal.dataset);
    let body = match inbox::review(&console.project, proposal).await {
        Ok(mut review) => {
            review
                .compare(console.backend.probe(), visit.state, &|_| {})
                .await;
            readable(visit, proposal, &review, &attempt).await
        }
        Err(error) => blocked(visit, proposal, error, &attempt),
    };
    PageAnswer::page(NavSection::Inbox, title, body).with_status(status)
}

fn head(proposal: &InboxProposal, standing: &Markup, attempt: &FormOutcome) -> Markup {
    html! {
        p.crumb { a href="/inbox" { "Inbox" } }
        div.title { h1 { "Proposal " (proposal.id) ": " (code(&proposal.dataset)) } (standing) }
        p.by {
            "From " strong { (from(proposal)) } ", " (moment(proposal.revised.unwrap_or(proposal.at)))
            @if proposal.revised.is_some() { " (it replaced an earlier text)" }
            "."
            @if let Some(earlier) = proposal.follows {
                " It follows " a href={ "/inbox/" (earlier) } { "proposal " (earlier) } ", which was sent back."
            }
            " Expires " (day(proposal.expires)) "."
        }
        @if let Some(alert) = &attempt.alert { (alert) }
    }
}

fn reason(proposal: &InboxProposal) -> Markup {
    html! { @if !proposal.reason.is_empty() {
        figure.box {
            blockquote.agree.prose { (VisibleText(&proposal.reason)) }
            figcaption.small.soft { "The agent’s own words. Wayleave has not checked them." }
        }
    } }
}

async fn readable(
    visit: &SignedInRequest<'_>,
    proposal: &InboxProposal,
    review: &Review,
    attempt: &FormOutcome,
) -> Markup {
    let now = visit.console.now();
    let status = proposal.status(now);
    let all = risk_notes(&review.changes, review.proposed.mapping());
    let standing = match (status, review.matches_sources(), all.len()) {
        (InboxStatus::Waiting, false, _) => state("bad", "does not fit its source"),
        (InboxStatus::Waiting, true, 0) => state("ok", "no risks"),
        (InboxStatus::Waiting, true, many) => state("weigh", &count(many, "risk")),
        (status, ..) => {
            let (kind, word) = outcome(status);
            state(kind, word)
        }
    };
    let old = review.current_text.as_deref();
    let old_mapping = old.and_then(|it| wayleave_model::parse::parse(it.as_bytes()).ok());
    let mapping = review.proposed.mapping();
    html! {
        (head(proposal, &standing, attempt))
        (standing_box(proposal, review, status, all.len()))
        (reason(proposal))
        section aria-labelledby="s1" {
            h2 id="s1" { span.n { "1" } "In words" }
            (in_words(proposal, &review.changes, &all, visit.query.has("all")))
        }
        section aria-labelledby="s2" {
            h2 id="s2" { span.n { "2" } "Who would see it" }
            (readers::table(visit.state, old_mapping.as_ref(), mapping, now))
        }
        section aria-labelledby="s3" {
            h2 id="s3" { span.n { "3" } "Side by side" }
            (side_by_side(proposal, review))
        }
        @if status == InboxStatus::Waiting {
            section id="rows" aria-labelledby="s4" {
                h2 id="s4" { span.n { "4" } "Sample rows" }
                (sample::section(visit, proposal, mapping, attempt.shown.as_ref()))
            }
            section id="decide" aria-labelledby="s5" {
                h2 id="s5" { span.n { "5" } "Decide" }
                (decide(visit, proposal, review, &all, attempt).await)
            }
        } @else { (decided(proposal)) }
        @let id = proposal.id;
        (on_command_line(&format!(
            "wayleave inbox show {id} · wayleave inbox ratify {id} · wayleave inbox return {id}"
        )))
    }
}

fn standing_box(
    proposal: &InboxProposal,
    review: &Review,
    status: InboxStatus,
    risks: usize,
) -> Markup {
    let fits = review.matches_sources();
    let kind = match (status, fits, risks) {
        (_, false, _) => "box bad standing",
        (_, true, 0) => "box ok standing",
        _ => "box weigh standing",
    };
    let replaces = match &review.current {
        RatifiedVersion::Nothing => html! { "nothing: all of it is new" },
        RatifiedVersion::Ratified(digest) => html! { code { (digest.short()) } },
        RatifiedVersion::Unreadable { digest, .. } => html! {
            code { (digest.short()) } ", whose frozen copy cannot be read"
        },
    };
    html! { div class=(kind) {
        p {
            @match (status, fits) {
                (InboxStatus::Waiting, true) => {
                    "It checks, and it fits its live source. "
                    @if risks > 0 {
                        strong { "Consider " (count(risks, "risk")) } " before you agree."
                    }
                },
                (InboxStatus::Waiting, false) => {
                    strong { "It does not fit its live source. " }
                    "It cannot be ratified here as it stands."
                },
                _ => "It was decided, and is shown as it was proposed.",
            }
        }
        @if status == InboxStatus::Waiting { a.button href="#decide" { "Decide" } }
        dl.facts {
            div { dt { "Would replace" } dd { (replaces) } }
            div { dt { "Would freeze" } dd { code { (proposal.digest.short()) } } }
            div { dt { "Problems" } dd { (state("ok", "none")) } }
            div { dt { "Live source" } dd { (drift(review)) } }
        }
    } }
}

fn drift(review: &Review) -> Markup {
    html! { @for compared in &review.drift {
        @match &compared.drift {
            Ok(_) if !compared.is_broken() => (state("ok", "fits")),
            Ok(problems) => {
                (state("bad", "differs"))
                @for problem in problems.iter().take(5) { " " (sentence(&problem.message)) ";" }
            },
            Err(error) => {
                (state("off", "not compared")) ": " (sentence(&error.to_string()))
            },
        }
        " "
    } }
}

fn side_by_side(proposal: &InboxProposal, review: &Review) -> Markup {
    let lines = proposal.text.lines().count();
    let whole = html! {
        a href={ "/inbox/" (proposal.id) "/text" } { "The whole mapping" } ", " (count(lines, "line")) "."
    };
    let digest = proposal.digest.short();
    let old = review.current.digest().map(|it| it.short());
    let table = match (&review.current_text, old) {
        (Some(text), Some(old)) => diff_table::render((&old, text), (&digest, &proposal.text)),
        _ => {
            return html! {
                p { "Nothing is ratified under this name, so there is nothing to set it beside. " (whole) }
            };
        }
    };
    html! {
        p { "The exact bytes. " (whole) }
        div.gap { @match table {
            Some(table) => (table),
            None => p { "They differ in more lines than can be read side by side." },
        } }
    }
}

async fn decide(
    visit: &SignedInRequest<'_>,
    proposal: &InboxProposal,
    review: &Review,
    risks: &[RiskNote],
    attempt: &FormOutcome,
) -> Markup {
    let console = visit.console;
    let loses_edits = inbox::would_overwrite(&console.project, proposal, console.now()).await;
    html! { div.split.wide {
        @if review.matches_sources() {
            (ratify_form(visit, proposal, review, risks, attempt))
        } @else {
            (not_offered(&review.drift))
        }
        div {
            (send_back_form(visit, proposal, "", false))
            @match loses_edits {
                Ok(loses_edits) => (accept_form(visit, proposal, loses_edits)),
                Err(error) => (failed("The drafts cannot be compared.", &error.into())),
            }
        }
    } }
}

fn not_offered(drift: &[ConnectionDrift]) -> Markup {
    let unanswered = drift.iter().any(|it| it.drift.is_err());
    html! { div.box.bad {
        p { strong { "Ratify is not offered. " }
            @if unanswered {
                "Its source does not answer, so nobody can say that the mapping fits."
            } @else {
                "The mapping does not fit its live source; what is ratified would not be served."
            }
        }
        p { "Where the project is, " code { "wayleave inbox ratify --offline" } " ratifies without comparing." }
    } }
}

/// A decided proposal, read-only.
fn decided(proposal: &InboxProposal) -> Markup {
    html! { section aria-labelledby="s4" {
        h2 id="s4" { span.n { "4" } "Decided" }
        @match &proposal.decision {
            Some(decision) => {
                p { (VisibleText(&decision.who)) ", " (moment(decision.at)) "." }
                @if !decision.comment.is_empty() {
                    blockquote.agree.prose { (VisibleText(&decision.comment)) }
                }
            },
            None => p { "Nobody decided in time. The agent can propose it again." },
        }
    } }
}
