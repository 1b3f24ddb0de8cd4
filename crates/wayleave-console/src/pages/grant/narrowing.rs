//! Narrows a grant in one step: offers only what is granted, and lists what would be lost.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use maud::{Markup, html};
use wayleave_ledger::{GrantEntry, GrantRequest, Millis};
use wayleave_model::{
    grant::{ParseRowFilterError, StreamTerms},
    mapping::Mapping,
    ratify::Ratified,
};
use wayleave_plan::package::GrantNarrowing;
use wayleave_project::{Explanation, ratified_mappings::ratified_mapping, render};

use super::{page, shown_as};
use crate::{
    page::{csrf, failed, moment},
    pages::{
        grant_new::{EXPIRY_CHOICES, expiry_at, risk},
        masks,
    },
    respond::{PageAnswer, SignedInRequest},
    sentences::sentence,
    signing::{DecisionKind, passphrase_field},
    visible_text::{VisibleText, code},
};

/// Form value that keeps the grant's expiry.
const KEEP_EXPIRY: &str = "same";

/// Narrows the grant; with `only_look`, only previews what would be lost.
pub(in crate::pages) async fn narrow(
    visit: &SignedInRequest<'_>,
    id: &str,
    only_look: bool,
) -> PageAnswer {
    let Some(grant) = visit.state.grant(id) else {
        return page(visit, id, None, None).await;
    };
    let wanted = request(visit, grant).await;
    let wanted = wanted.and_then(|request| {
        let lost = render::granting::losses(grant, &request);
        if lost.is_empty() {
            let why = render::granting::loses_nothing(id);
            return Err(why.hint("take a tick away, add a row filter, or let it end sooner"));
        }
        Ok((request, lost))
    });
    let refused = async |why: Explanation| {
        let alert = failed("Nothing was narrowed.", &why);
        let answer = page(visit, id, Some(alert), None).await;
        answer.with_status(StatusCode::UNPROCESSABLE_ENTITY)
    };
    match wanted {
        Ok((_, lost)) if only_look => page(visit, id, None, Some(&lost)).await,
        Ok((request, _)) => match narrowed(visit, id, request).await {
            Ok(narrower) => PageAnswer::SeeOther(format!("/grants/{narrower}")),
            Err(why) => refused(why).await,
        },
        Err(why) => refused(why).await,
    }
}

async fn narrowed(
    visit: &SignedInRequest<'_>,
    id: &str,
    request: GrantRequest,
) -> Result<String, Explanation> {
    let project = visit.deciding(DecisionKind::Access).await?;
    let governance = project.governance();
    Ok(governance
        .narrow_grant(id, request, &visit.session.who)
        .await?)
}

async fn request(
    visit: &SignedInRequest<'_>,
    grant: &GrantEntry,
) -> Result<GrantRequest, Explanation> {
    let form = &visit.form;
    let mapping = ratified_mapping(&visit.console.project, &grant.terms.dataset).await?;
    let mut narrowing = GrantNarrowing {
        capabilities: Some(form.all("c").map(str::to_owned).collect()),
        ..GrantNarrowing::default()
    };
    for stream in form.all("s") {
        narrowing
            .streams
            .insert(stream.to_owned(), Some(BTreeSet::new()));
        let text = form.get(&format!("rows.{stream}")).trim();
        if !text.is_empty() {
            let filter = text.parse();
            let filter =
                filter.map_err(|error: ParseRowFilterError| Explanation::from_error(&error))?;
            narrowing.rows.insert(stream.to_owned(), filter);
        }
    }
    for ticked in form.all("f") {
        // Removing a stream removes its fields.
        if let Some((stream, field)) = ticked.split_once('.')
            && let Some(Some(fields)) = narrowing.streams.get_mut(stream)
        {
            fields.insert(field.to_owned());
        }
    }
    if narrowing.streams.is_empty() {
        let why = Explanation::new("no stream would stay");
        return Err(why.hint("to take everything, revoke it"));
    }
    let terms = narrowing.terms(&grant.terms, &mapping);
    let terms = terms.map_err(|errors| render::granting::unfit(&errors, &grant.id))?;
    Ok(GrantRequest {
        terms,
        expires: sooner(visit, grant)?,
        purpose: grant.purpose.clone(),
    })
}

/// The requested expiry, never later than the current one.
fn sooner(visit: &SignedInRequest<'_>, grant: &GrantEntry) -> Result<Option<Millis>, Explanation> {
    let word = visit.form.get("ends");
    if word.is_empty() || word == KEEP_EXPIRY {
        return Ok(grant.expires);
    }
    let now = visit.state.now(visit.console.now());
    let times = [expiry_at(word, now)?, grant.expires];
    Ok(times.into_iter().flatten().min())
}

pub(super) fn form(
    visit: &SignedInRequest<'_>,
    grant: &GrantEntry,
    mapping: &Ratified<Mapping>,
    lost: Option<&[String]>,
) -> Markup {
    let id = &grant.id;
    let asked = visit.form.has("s").then(|| NarrowingForm::new(visit));
    html! {
        p { "A narrower grant takes this one’s place for the tokens that hold it, from their next call. It \
             cannot be widened again. What is not granted is not offered here." }
        form.decide.gap method="post" action={ "/grants/" (id) "/narrow#narrow" } {
            (csrf(visit.session))
            fieldset { legend { "What stays" }
                @for (at, (name, terms)) in grant.terms.streams.iter().enumerate() {
                    details.item open[at < 3] {
                        summary { (code(name)) " " span.soft { (terms.fields.len()) } }
                        (stream(name, terms, mapping, asked.as_ref()))
                    }
                }
            }
            @if !grant.terms.capabilities.is_empty() {
                fieldset { legend { "Writes that stay" } div.ticks {
                    @for name in &grant.terms.capabilities { label.tick {
                        input type="checkbox" name="c" value=(name)
                            checked[asked.as_ref().is_none_or(|it| it.capabilities.contains(name))];
                        span { (code(name)) }
                    } }
                } }
            }
            (ends(visit, grant))
            @if let Some(lost) = lost {
                div.box.weigh role="status" {
                    p { strong { "Its tokens would lose:" } }
                    ul { @for it in lost { li { (sentence(it)) } } }
                }
            }
            (passphrase_field(visit, "narrow-passphrase"))
            div.row {
                button formaction={ "/grants/" (id) "/lost#narrow" } formnovalidate { "Show what is lost" }
                button.primary { "Narrow " (VisibleText(id)) }
            }
        }
    }
}

/// The selections of a submitted form.
struct NarrowingForm {
    streams: BTreeSet<String>,
    fields: BTreeSet<String>,
    capabilities: BTreeSet<String>,
    rows: BTreeMap<String, String>,
}

impl NarrowingForm {
    fn new(visit: &SignedInRequest<'_>) -> Self {
        let all = |name| visit.form.all(name).map(str::to_owned).collect();
        let streams: BTreeSet<String> = all("s");
        let text = |it: &String| visit.form.get(&format!("rows.{it}")).to_owned();
        Self {
            rows: streams.iter().map(|it| (it.clone(), text(it))).collect(),
            fields: all("f"),
            capabilities: all("c"),
            streams,
        }
    }
}

fn stream(
    name: &str,
    terms: &StreamTerms,
    mapping: &Mapping,
    asked: Option<&NarrowingForm>,
) -> Markup {
    let key = mapping.stream(name).map(|it| it.key.as_slice());
    let key = key.unwrap_or_default();
    let is_key = |field: &str| key.iter().any(|it| it == field);
    let rows = asked
        .and_then(|it| it.rows.get(name))
        .map_or("", String::as_str);
    let purpose = if terms.rows.is_some() {
        "added to what is there"
    } else {
        "leave empty for all"
    };
    html! { div {
        label.tick {
            input type="checkbox" name="s" value=(name) checked[asked.is_none_or(|it| it.streams.contains(name))];
            span { "The stream " (code(name)) " stays" }
        }
        div.ticks { @for field in &terms.fields {
            @let value = format!("{name}.{field}");
            label.tick {
                @if is_key(field) {
                    input type="checkbox" checked disabled;
                } @else {
                    input type="checkbox" name="f" value=(value)
                        checked[asked.is_none_or(|it| it.fields.contains(&value))];
                }
                span { (code(field)) @if is_key(field) { " " span.soft { "key" } } (risk(field))
                    (masks::note(shown_as(mapping.stream(name), terms, field))) }
            }
        } }
        div.field {
            label for={ "rows-" (name) } { "Rows of " (code(name)) }
            span.hint id={ "rows-h-" (name) } { "A filter as agents write theirs, " (purpose) }
            input.mono id={ "rows-" (name) } name={ "rows." (name) } value=(rows) autocomplete="off"
                spellcheck="false" aria-describedby={ "rows-h-" (name) };
        }
    } }
}

fn ends(visit: &SignedInRequest<'_>, grant: &GrantEntry) -> Markup {
    let now = visit.state.now(visit.console.now());
    let chosen = visit.form.get("ends");
    let sooner = EXPIRY_CHOICES.iter().filter(|(_, _, time)| {
        let end = time.map(|it| now.saturating_add(it));
        match (end, grant.expires) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(end), Some(before)) => end < before,
        }
    });
    html! { div.field { label for="ends" { "Ends" }
        span.hint id="ends-h" { "At the latest "
            @match grant.expires { Some(at) => (moment(at)), None => "never" } }
        select id="ends" name="ends" aria-describedby="ends-h" {
            option value=(KEEP_EXPIRY) { "as before" }
            @for (value, words, _) in sooner { option value=(value) selected[*value == chosen] { (words) } }
        }
    } }
}
