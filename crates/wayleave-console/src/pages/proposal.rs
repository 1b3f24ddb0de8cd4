//! One proposal, in the order in which one decides: how it stands, what changes in words, who would
//! see it, the bytes, sample rows, decide.

use std::collections::BTreeMap;

use http::StatusCode;
use maud::{Markup, html};
use wayleave_model::{diff::Change, digest::Digest};
use wayleave_project::{
    Explanation,
    inbox::{self, Agreement, Inbox, InboxError, InboxProposal, InboxStatus},
    render,
    review::{RatifiedVersion, Review, ReviewError},
    source_probe::ConnectionDrift,
};

use super::{
    diff_table,
    inbox::{from, outcome},
    ratified, readers, sample,
};
use crate::{
    names::{Plain, code},
    page::{CardTable, Section, csrf, day, failed, moment, on_command_line, state},
    respond::{Answer, Visit},
    weigh::{Weight, weights},
    words::{count, sentence, verb_first},
};

/// Most lines of the difference in words, unless all are asked for.
const MAX_WORDS: usize = 120;

/// What a form that was not accepted leaves on the page.
#[derive(Default)]
struct Attempt {
    /// Why nothing was done.
    alert: Option<Markup>,
    /// The field that is wrong, and why.
    wrong: Option<(&'static str, String)>,
    shown: Option<sample::Shown>,
    status: StatusCode,
}

pub(super) async fn show(visit: &Visit<'_>, id: &str) -> Answer {
    match find(visit, id) {
        Ok(proposal) => page(visit, &proposal, Attempt::default()).await,
        Err(answer) => answer,
    }
}

fn find(visit: &Visit<'_>, id: &str) -> Result<InboxProposal, Answer> {
    let missing = || {
        let what = html! { "There is no proposal " (Plain(id)) ". " a href="/inbox" { "Inbox" } };
        Answer::missing(Section::Inbox, what)
    };
    let id = id.parse().map_err(|_| missing())?;
    match Inbox::new(&visit.console.project).get(id) {
        Ok(proposal) => Ok(proposal),
        Err(InboxError::Unknown { .. }) => Err(missing()),
        Err(error) => Err(Answer::failed(Section::Inbox, &error.into())),
    }
}

/// The whole mapping, as text.
pub(super) fn text(visit: &Visit<'_>, id: &str) -> Answer {
    match find(visit, id) {
        Ok(proposal) => Answer::Text(proposal.text),
        Err(answer) => answer,
    }
}

pub(super) async fn act(visit: &Visit<'_>, id: &str, act: &str) -> Answer {
    let proposal = match find(visit, id) {
        Ok(proposal) => proposal,
        Err(answer) => return answer,
    };
    let Ok(read) = visit.form.get("digest").parse::<Digest>() else {
        return Answer::missing(Section::Inbox, html! { "That form names no proposal." });
    };
    match act {
        "rows" => rows(visit, &proposal, read).await,
        "ratify" => ratify(visit, &proposal, read).await,
        "return" => send_back(visit, &proposal, read).await,
        "accept" => accept(visit, &proposal, read).await,
        _ => Answer::missing(Section::Inbox, html! { "There is no such act." }),
    }
}

async fn rows(visit: &Visit<'_>, proposal: &InboxProposal, read: Digest) -> Answer {
    if proposal.digest != read {
        return page(visit, proposal, changed(proposal, read)).await;
    }
    let shown = match inbox::review(&visit.console.project, proposal).await {
        Ok(review) => sample::look(visit, proposal, &review.proposed).await,
        Err(_) => return page(visit, proposal, Attempt::default()).await,
    };
    let attempt = Attempt {
        shown: Some(shown),
        ..Attempt::default()
    };
    match find(visit, &proposal.id.to_string()) {
        Ok(proposal) => page(visit, &proposal, attempt).await,
        Err(answer) => answer,
    }
}

/// The proposal is not what was read.
fn changed(proposal: &InboxProposal, read: Digest) -> Attempt {
    let alert = html! { div.box.weigh role="alert" {
        p {
            strong { "Nothing was done: it is not what you read." }
            " You read " code { (read.short()) } "; proposal " (proposal.id) " is now "
            code { (proposal.digest.short()) } ". The agent replaced it. Below is what it is now."
        }
    } };
    Attempt {
        alert: Some(alert),
        status: StatusCode::CONFLICT,
        ..Attempt::default()
    }
}

fn refused(what: &str, why: &Explanation, status: StatusCode) -> Attempt {
    Attempt {
        alert: Some(failed(what, why)),
        status,
        ..Attempt::default()
    }
}

async fn ratify(visit: &Visit<'_>, proposal: &InboxProposal, read: Digest) -> Answer {
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
    let review = match inbox::review(&visit.console.project, proposal).await {
        Ok(review) => review,
        Err(_) => return page(visit, proposal, Attempt::default()).await,
    };
    let all = weights(&review.changes, review.proposed.mapping());
    let groups = grouped(&all);
    let unweighed = (0..groups.len()).any(|at| !form.has(&format!("w{at}")));
    if unweighed {
        let link = "Something is not weighed";
        let why = "Tick each thing you have weighed.".to_owned();
        return page(visit, proposal, unfilled("weighed", link, why)).await;
    }
    let mut note = form.get("note").trim().to_owned();
    if note.is_empty() {
        let why = "Say why, in your words.".to_owned();
        return page(visit, proposal, unfilled("note", "The reason is missing", why)).await;
    }
    if !groups.is_empty() {
        let weighed: Vec<String> = groups.iter().map(|(title, it)| format!("{title} ({})", it.len())).collect();
        note = format!("{note}\nweighed: {}", weighed.join("; "));
    }
    let agreement = Agreement {
        read,
        against: form.get("against").parse::<Digest>().ok(),
        who: visit.session.who.clone(),
        note,
    };
    let console = visit.console;
    let probe = Some(console.backend.probe());
    match inbox::ratify(&console.project, proposal.id, agreement, probe, console.now()).await {
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

/// A form that is not filled in: the summary, and the text at the field.
fn unfilled(field: &'static str, link: &str, why: String) -> Attempt {
    let alert = html! { div.box.bad role="alert" {
        p { strong { "Not ratified: 1 thing to fix." } }
        ul { li { a href={ "#" (field) } { (link) } } }
    } };
    Attempt {
        alert: Some(alert),
        wrong: Some((field, why)),
        status: StatusCode::UNPROCESSABLE_ENTITY,
        ..Attempt::default()
    }
}

async fn send_back(visit: &Visit<'_>, proposal: &InboxProposal, read: Digest) -> Answer {
    let (console, who) = (visit.console, &visit.session.who);
    let comment = visit.form.get("comment").trim();
    let (id, now) = (proposal.id, console.now());
    match inbox::send_back(&console.project, id, read, who, comment, now) {
        Ok(_) => Answer::SeeOther("/inbox".to_owned()),
        Err(InboxError::Replaced { .. }) => page(visit, proposal, changed(proposal, read)).await,
        Err(error) => {
            let attempt = refused("Not sent back.", &error.into(), StatusCode::CONFLICT);
            page(visit, proposal, attempt).await
        }
    }
}

async fn accept(visit: &Visit<'_>, proposal: &InboxProposal, read: Digest) -> Answer {
    let (console, who) = (visit.console, &visit.session.who);
    let overwrite = visit.form.has("overwrite");
    let (id, now) = (proposal.id, console.now());
    match inbox::accept(&console.project, id, read, who, overwrite, now).await {
        Ok(_) => Answer::SeeOther("/inbox".to_owned()),
        Err(error) => {
            let attempt = refused("Not taken into the drafts.", &error.into(), StatusCode::CONFLICT);
            page(visit, proposal, attempt).await
        }
    }
}

/// The page: as it stands now, with what a form that was not accepted leaves.
async fn page(visit: &Visit<'_>, proposal: &InboxProposal, attempt: Attempt) -> Answer {
    let console = visit.console;
    let status = attempt.status;
    let title = format!("Proposal {}: {}", proposal.id, proposal.dataset);
    let body = match inbox::review(&console.project, proposal).await {
        Ok(mut review) => {
            review.compare(console.backend.probe(), visit.state, &|_| {}).await;
            readable(visit, proposal, &review, &attempt).await
        }
        Err(error) => blocked(visit, proposal, error, &attempt),
    };
    Answer::page(Section::Inbox, title, body).with_status(status)
}

fn head(proposal: &InboxProposal, standing: &Markup, attempt: &Attempt) -> Markup {
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
            blockquote.agree.prose { (Plain(&proposal.reason)) }
            figcaption.small.soft { "The agent’s own words. Wayleave has not checked them." }
        }
    } }
}

async fn readable(
    visit: &Visit<'_>,
    proposal: &InboxProposal,
    review: &Review,
    attempt: &Attempt,
) -> Markup {
    let now = visit.console.now();
    let status = proposal.status(now);
    let all = weights(&review.changes, review.proposed.mapping());
    let standing = match (status, review.is_live(), all.len()) {
        (InboxStatus::Waiting, false, _) => state("bad", "does not fit its source"),
        (InboxStatus::Waiting, true, 0) => state("ok", "nothing to weigh"),
        (InboxStatus::Waiting, true, many) => state("weigh", &format!("{many} to weigh")),
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
    to_weigh: usize,
) -> Markup {
    let is_live = review.is_live();
    let kind = match (status, is_live, to_weigh) {
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
            @match (status, is_live) {
                (InboxStatus::Waiting, true) => {
                    "It checks, and it fits its live source. "
                    @if to_weigh > 0 {
                        strong { "Weigh " (count(to_weigh, "thing")) } " before you agree."
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
            div { dt { "Live source" } dd { (live(review)) } }
        }
    } }
}

fn live(review: &Review) -> Markup {
    html! { @for compared in &review.live {
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

fn sign(change: &Change) -> (&'static str, &'static str) {
    let kind = change.kind.as_str();
    if kind.ends_with("_added") {
        ("add", "+")
    } else if kind.ends_with("_removed") {
        ("del", "−")
    } else {
        ("chg", "~")
    }
}

/// The stream a change belongs to; the dataset for all others.
fn group_of(path: &str) -> &str {
    let stream = path.strip_prefix("streams.").and_then(|it| it.split('.').next());
    stream.unwrap_or("the dataset")
}

fn in_words(
    proposal: &InboxProposal,
    changes: &[Change],
    weights: &[Weight],
    wants_all: bool,
) -> Markup {
    if changes.is_empty() {
        return html! { p { "It says the same in other words: only comments, order of keys or layout differ." } };
    }
    let notes = |at: usize| weights.iter().filter(move |it| it.change == at);
    let mut order: Vec<usize> = (0..changes.len()).collect();
    let is_cut = changes.len() > MAX_WORDS && !wants_all;
    if is_cut {
        order.retain(|at| notes(*at).next().is_some() || *at < MAX_WORDS / 4);
        order.truncate(MAX_WORDS);
    }
    let left = changes.len() - order.len();
    let mut last = "";
    let lines = order.into_iter().filter_map(|at| Some((at, changes.get(at)?)));
    html! { ul.words {
        @for (at, change) in lines {
            @let group = group_of(&change.path);
            @if group != last { li.sub { (Plain(group)) } }
            @let _unit = { last = group; };
            @let (class, mark) = sign(change);
            li class=(class) {
                span.sign aria-hidden="true" { (mark) }
                span { (verb_first(&change.words)) }
                @for note in notes(at) {
                    div.note { b { (note.title) } (sentence(&note.text)) }
                }
            }
        }
        @if left > 0 {
            li.sub { "and " (left) " more" }
            li.add {
                span.sign aria-hidden="true" { "+" }
                span { (count(left, "change")) " without anything to weigh. "
                    a href={ "/inbox/" (proposal.id) "?all=1" } { "Show all" } }
            }
        }
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
        _ => return html! {
            p { "Nothing is ratified under this name, so there is nothing to set it beside. " (whole) }
        },
    };
    html! {
        p { "The exact bytes. " (whole) }
        div.gap { @match table {
            Some(table) => (table),
            None => p { "They differ in more lines than can be read side by side." },
        } }
    }
}

/// Things to weigh by kind, each a tick that the ratifier must set.
fn grouped(weights: &[Weight]) -> Vec<(&'static str, Vec<&Weight>)> {
    let mut groups: BTreeMap<&'static str, Vec<&Weight>> = BTreeMap::new();
    for weight in weights {
        groups.entry(weight.title).or_default().push(weight);
    }
    groups.into_iter().collect()
}

async fn decide(
    visit: &Visit<'_>,
    proposal: &InboxProposal,
    review: &Review,
    weights: &[Weight],
    attempt: &Attempt,
) -> Markup {
    let console = visit.console;
    let loses_edits = inbox::would_overwrite(&console.project, proposal, console.now()).await;
    html! { div.split.wide {
        @if review.is_live() {
            (ratify_form(visit, proposal, review, weights, attempt))
        } @else {
            (not_offered(&review.live))
        }
        div {
            (send_back_form(visit, proposal, "", false))
            (accept_form(visit, proposal, loses_edits))
        }
    } }
}

fn not_offered(live: &[ConnectionDrift]) -> Markup {
    let unanswered = live.iter().any(|it| it.drift.is_err());
    html! { div.box.bad {
        p { strong { "Ratify is not offered. " }
            @if unanswered {
                "Its source gives no answer, so nobody can say that the mapping fits."
            } @else {
                "The mapping does not fit its live source; what is ratified would not be served."
            }
        }
        p { "Where the project is, " code { "wayleave inbox ratify --offline" } " ratifies unseen." }
    } }
}

fn ratify_form(
    visit: &Visit<'_>,
    proposal: &InboxProposal,
    review: &Review,
    weights: &[Weight],
    attempt: &Attempt,
) -> Markup {
    let wrong = |field| {
        let wrong = attempt.wrong.as_ref();
        wrong.filter(|(name, _)| *name == field).map(|(_, why)| why.as_str())
    };
    let against = review.current.digest().map(|it| it.to_string()).unwrap_or_default();
    let groups = grouped(weights);
    let kept = |name: &str| visit.form.get(name).to_owned();
    html! {
        form.decide method="post" action={ "/inbox/" (proposal.id) "/ratify#decide" } {
            (csrf(visit.session))
            input type="hidden" name="digest" value=(proposal.digest);
            input type="hidden" name="against" value=(against);
            h3 { "Ratify" }
            p.agree { "I, " (Plain(&visit.session.who)) ", agree that agents may be served "
                (code(&proposal.dataset)) " as these exact bytes say:" }
            p { code { (proposal.digest) } }
            @if !groups.is_empty() {
                fieldset id="weighed" {
                    legend { "I have weighed" }
                    @for (at, (title, all)) in groups.iter().enumerate() {
                        label.tick {
                            input type="checkbox" name={ "w" (at) } required checked[visit.form.has(&format!("w{at}"))];
                            span { (title) ": " (weighed(all)) }
                        }
                    }
                    @if let Some(why) = wrong("weighed") { span.error { (why) } }
                }
            }
            div.field {
                label for="note" { "Why" }
                span.hint id="note-h" { "Kept in the ledger for ever" }
                input id="note" name="note" value=(kept("note")) aria-describedby="note-h" autocomplete="off"
                    required maxlength="3000" aria-invalid=[wrong("note").map(|_| "true")];
                @if let Some(why) = wrong("note") { span.error { (why) } }
            }
            div.field {
                label for="name" { "Type the dataset’s name" }
                span.hint id="name-h" { (code(&proposal.dataset)) " " span id="name-s" role="status" {} }
                input.mono id="name" name="name" value=(kept("name")) data-expect=(proposal.dataset)
                    data-say="name-s" aria-describedby="name-h" autocomplete="off" autocapitalize="none"
                    spellcheck="false" required aria-invalid=[wrong("name").map(|_| "true")];
                @if let Some(why) = wrong("name") { span.error { (sentence(why)) } }
            }
            label.tick {
                input type="checkbox" name="connect" checked;
                span { "Connect it at once, so that agents are served it." }
            }
            button.primary { "Ratify " (Plain(&proposal.dataset)) }
        }
    }
}

fn weighed(all: &[&Weight]) -> Markup {
    const MAX_NAMED: usize = 8;
    html! {
        @for (at, weight) in all.iter().take(MAX_NAMED).enumerate() {
            @if at > 0 { ", " } (sentence(&weight.about))
        }
        @if all.len() > MAX_NAMED { " and " (all.len() - MAX_NAMED) " more, as noted above" }
    }
}

fn send_back_form(
    visit: &Visit<'_>,
    proposal: &InboxProposal,
    errors: &str,
    is_primary: bool,
) -> Markup {
    html! {
        form.decide method="post" action={ "/inbox/" (proposal.id) "/return#decide" } {
            (csrf(visit.session))
            input type="hidden" name="digest" value=(proposal.digest);
            h3 { "Send back" }
            div.field {
                label for="c" { "What should change" }
                span.hint id="c-h" { "The agent reads this as text. " (errors) }
                textarea id="c" name="comment" aria-describedby="c-h" required maxlength="4000" {
                    (visit.form.get("comment"))
                }
            }
            button.primary[is_primary] { "Send back" }
        }
    }
}

fn accept_form(visit: &Visit<'_>, proposal: &InboxProposal, loses_edits: bool) -> Markup {
    let file = format!("mappings/{}.toml", proposal.dataset);
    html! {
        form.box method="post" action={ "/inbox/" (proposal.id) "/accept#decide" } {
            (csrf(visit.session))
            input type="hidden" name="digest" value=(proposal.digest);
            p { strong { "Or take it into the drafts" } " and go on yourself in " (code(&file)) "." }
            @if loses_edits {
                label.tick {
                    input type="checkbox" name="overwrite" required;
                    span { "Your draft has edits that nobody has ratified. Overwrite them." }
                }
            } @else { p { "Your draft has no edits that this would overwrite." } }
            button { "Take into the drafts" }
        }
    }
}

/// What was decided, read-only.
fn decided(proposal: &InboxProposal) -> Markup {
    html! { section aria-labelledby="s4" {
        h2 id="s4" { span.n { "4" } "Decided" }
        @match &proposal.decision {
            Some(decision) => {
                p { (Plain(&decision.who)) ", " (moment(decision.at)) "." }
                @if !decision.comment.is_empty() {
                    blockquote.agree.prose { (Plain(&decision.comment)) }
                }
            },
            None => p { "Nobody decided in time. The agent can propose it again." },
        }
    } }
}

/// A proposal that cannot be ratified: its problems, and sending it back.
fn blocked(
    visit: &Visit<'_>,
    proposal: &InboxProposal,
    error: ReviewError,
    attempt: &Attempt,
) -> Markup {
    let standing = state("bad", "cannot be ratified");
    let (problems, told) = match error {
        ReviewError::Unsound { report, .. } => {
            let problems: Vec<_> = report.drafts.iter().flat_map(|it| it.problems.clone()).collect();
            (problems, render::check::report(&report).text())
        }
        error => (Vec::new(), error.to_string()),
    };
    let is_waiting = proposal.status(visit.console.now()) == InboxStatus::Waiting;
    let rows = problems.iter().map(|problem| {
        let place = problem.position.map(|it| format!("{}:{}", it.line, it.column));
        vec![
            html! { (state("bad", "error")) " " (sentence(&problem.message))
                span.soft { code { (problem.code.as_str()) } } },
            html! { (code(&place.unwrap_or_default())) },
            html! { (sentence(problem.hint.as_deref().unwrap_or_default())) },
        ]
    });
    let heads = &["Problem", "Where", "What fixes it"];
    let rows: Vec<Vec<Markup>> = rows.collect();
    html! {
        (head(proposal, &standing, attempt))
        div.box.bad.standing {
            p { strong { "It does not check. " } "The agent can propose again; you can also send it back." }
            dl.facts {
                div { dt { "Would freeze" } dd { code { (proposal.digest.short()) } } }
                div { dt { "Problems" } dd { (state("bad", &count(problems.len().max(1), "error"))) } }
            }
        }
        (reason(proposal))
        @if !rows.is_empty() {
            section aria-labelledby="p" {
                h2 id="p" { span.n { "1" } "Problems" }
                (CardTable { caption: "Problems of this proposal", heads, rows }.render())
            }
        }
        section aria-labelledby="x" {
            h2 id="x" { span.n { "2" } "As check tells it" }
            pre.out tabindex="0" aria-label="What check prints" { (Plain(&told)) }
        }
        @if is_waiting {
            section id="decide" aria-labelledby="dd" {
                h2 id="dd" { span.n { "3" } "Decide" }
                div.split.wide {
                    (send_back_form(visit, proposal, "The errors go along.", true))
                    div.box.bad { p { strong { "Ratify is not offered. " }
                        "A mapping with errors is never ratified. There is no way around it, here or on \
                         the command line." } }
                }
            }
        } @else { (decided(proposal)) }
    }
}
