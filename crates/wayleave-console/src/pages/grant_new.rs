//! The form for a new grant. Nothing is selected except what the person just asked for.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use maud::{Markup, html};
use wayleave_ledger::{GrantRequest, Millis};
use wayleave_model::{grant::RowFilter, mapping::Mapping, ratify::Ratified, sensitive};
use wayleave_plan::package::GrantSelection;
use wayleave_project::{Explanation, ratified_mappings::ratified_mapping, render};

use super::masks;
use crate::{
    page::{NavSection, csrf, failed, on_command_line, state},
    respond::{PageAnswer, SignedInRequest},
    risk_notes,
    signing::{DecisionKind, passphrase_field},
    visible_text::{VisibleText, code},
};

/// The selectable times until expiry: form value, label, milliseconds.
pub(super) const EXPIRY_CHOICES: [(&str, &str, Option<Millis>); 5] = [
    ("1d", "in 1 day", Some(24 * 3600 * 1000)),
    ("7d", "in 7 days", Some(7 * 24 * 3600 * 1000)),
    ("30d", "in 30 days", Some(30 * 24 * 3600 * 1000)),
    ("90d", "in 90 days", Some(90 * 24 * 3600 * 1000)),
    ("never", "never", None),
];

/// The time of a selected expiry; `None` if it is never.
pub(super) fn expiry_at(word: &str, now: Millis) -> Result<Option<Millis>, Explanation> {
    let found = EXPIRY_CHOICES.iter().find(|(name, ..)| *name == word);
    let Some((_, _, time)) = found else {
        let why = Explanation::new("the selected time of expiry is unknown");
        return Err(why.hint("select one of the listed times"));
    };
    Ok(time.map(|it| now.saturating_add(it)))
}

/// The selection of an expiry.
pub(super) fn expiry_field(chosen: &str) -> Markup {
    html! { div.field { label for="ends" { "Ends" }
        select id="ends" name="ends" { @for (value, name, _) in EXPIRY_CHOICES {
            option value=(value) selected[value == chosen] { (name) }
        } }
    } }
}

pub(super) async fn show(visit: &SignedInRequest<'_>, alert: Option<Markup>) -> PageAnswer {
    let like = visit.state.grant(visit.query.get("like"));
    let chosen = like.map_or(visit.query.get("dataset"), |it| it.terms.dataset.as_str());
    let chosen = if visit.form.has("dataset") {
        visit.form.get("dataset")
    } else {
        chosen
    };
    let datasets: Vec<&String> = visit
        .state
        .datasets()
        .iter()
        .filter(|(_, it)| it.ratified.is_some())
        .map(|(name, _)| name)
        .collect();
    let name = datasets
        .iter()
        .find(|it| **it == chosen)
        .or(datasets.first());
    let Some(name) = name else {
        let body = html! {
            h1 { "New grant" }
            div.state { p { "Nothing is ratified, so there is nothing to grant. " a href="/inbox" { "Inbox" } } }
        };
        return PageAnswer::page(NavSection::Grants, "New grant", body);
    };
    let mapping = match visit.console.project.governance().load(name).await {
        Ok(mapping) => mapping,
        Err(error) => return PageAnswer::failed(NavSection::Grants, &error.into()),
    };
    let before: BTreeMap<String, BTreeSet<String>> = like
        .iter()
        .flat_map(|it| &it.terms.streams)
        .map(|(name, it)| (name.clone(), it.fields.clone()))
        .collect();
    let only = like.map(|_| &before);
    let body = html! {
        p.crumb { a href="/grants" { "Grants and tokens" } }
        h1 { "New grant" }
        p.by { "Nothing is selected at first"
            @if like.is_some() { ", except what you narrow" }
            ". Fields that a later mapping adds are not included." }
        @if let Some(alert) = alert { (alert) }
        @if datasets.len() > 1 && like.is_none() {
            form.row.gap method="get" action="/grants/new" {
                div.field { label for="dataset" { "Dataset" }
                    select id="dataset" name="dataset" { @for it in &datasets {
                        option value=(it) selected[it == name] { (VisibleText(it)) }
                    } }
                }
                button { "Show" }
            }
        }
        (form(visit, &mapping, only))
        (on_command_line(&format!("wayleave grant create --dataset {name} --stream STREAM=FIELD,FIELD --mask STREAM.FIELD=MASK")))
    };
    PageAnswer::page(NavSection::Grants, "New grant", body)
}

fn form(
    visit: &SignedInRequest<'_>,
    mapping: &Ratified<Mapping>,
    only: Option<&BTreeMap<String, BTreeSet<String>>>,
) -> Markup {
    let ticked: BTreeSet<&str> = visit.form.all("f").collect();
    let streams = mapping
        .streams
        .iter()
        .filter(|it| only.is_none_or(|only| only.contains_key(it.name.as_str())));
    html! { form.decide.gap method="post" action="/grants/new" {
        (csrf(visit.session))
        input type="hidden" name="dataset" value=(mapping.dataset.name.value);
        div.row {
            div.field { label for="co" { "Connection" } select id="co" name="connection" {
                @for connection in &mapping.connections {
                    option value=(connection.id.value) { (VisibleText(&connection.id)) }
                }
            } }
            div.field { label for="pu" { "What it is for" } span.hint id="pu-h" { "Kept for ever" }
                input id="pu" name="purpose" value=(visit.form.get("purpose")) aria-describedby="pu-h"
                    autocomplete="off" maxlength="500"; }
            (expiry_field("30d"))
        }
        fieldset { legend { "Streams and fields" }
            @for (at, stream) in streams.enumerate() {
                details.item open[at == 0] {
                    summary { (code(&stream.name)) }
                    div {
                        div.ticks { @for field in &stream.fields {
                            @let value = format!("{}.{}", stream.name.value, field.name.value);
                            @let granted = only.and_then(|it| it.get(stream.name.as_str()));
                            @let is_offered = granted.is_none_or(|it| it.contains(field.name.as_str()));
                            @let is_on = ticked.contains(value.as_str()) || granted.is_some();
                            @if is_offered { label.tick {
                                input type="checkbox" name="f" value=(value) checked[is_on];
                                span { (code(&field.name)) (risk(&field.name))
                                    (masks::note(field.mask.as_ref().map(|it| it.value))) }
                            } }
                        } }
                        (masks::choices(stream, &visit.form))
                        div.field {
                            label for={ "rows-" (stream.name.value) } { "Rows of " (code(&stream.name)) }
                            span.hint { "A filter as agents write theirs; leave empty for all" }
                            input.mono id={ "rows-" (stream.name.value) } name={ "rows." (stream.name.value) }
                                value=(visit.form.get(&format!("rows.{}", stream.name.value))) autocomplete="off";
                        }
                    }
                }
            }
            span.hint { "The key is always included, because it identifies the record." }
        }
        (passphrase_field(visit, "gp"))
        button.primary { "Grant" }
    } }
}

pub(super) fn risk(name: &str) -> Markup {
    html! {
        @if sensitive::looks_secret(name).is_some() { " " (state("bad", "looks secret")) }
        @else if risk_notes::personal(name).is_some() { " " (state("weigh", "personal data")) }
    }
}

pub(super) async fn create(visit: &SignedInRequest<'_>) -> PageAnswer {
    match grant(visit).await {
        Ok(id) => PageAnswer::SeeOther(format!("/tokens/new?grant={id}")),
        Err(why) => {
            let answer = show(visit, Some(failed("Not granted.", &why))).await;
            answer.with_status(StatusCode::UNPROCESSABLE_ENTITY)
        }
    }
}

async fn grant(visit: &SignedInRequest<'_>) -> Result<String, Explanation> {
    let form = &visit.form;
    let mapping = ratified_mapping(&visit.console.project, form.get("dataset")).await?;
    let mut selection = GrantSelection {
        connection: Some(form.get("connection").to_owned()),
        ..GrantSelection::default()
    };
    for ticked in form.all("f") {
        if let Some((stream, field)) = ticked.split_once('.') {
            let fields = selection
                .streams
                .entry(stream.to_owned())
                .or_insert_with(|| Some(BTreeSet::new()));
            if let Some(fields) = fields {
                fields.insert(field.to_owned());
            }
        }
    }
    // An empty selection would mean everything.
    if selection.streams.is_empty() {
        return Err(Explanation::new("no field is ticked").hint("tick what may be read"));
    }
    for stream in &mapping.streams {
        let text = form.get(&format!("rows.{}", stream.name.value)).trim();
        if text.is_empty() {
            continue;
        }
        let filter: RowFilter =
            text.parse()
                .map_err(|error: wayleave_model::grant::ParseRowFilterError| {
                    Explanation::from_error(&error)
                })?;
        selection.rows.insert(stream.name.value.clone(), filter);
    }
    selection.masks = masks::chosen(&mapping, form)?;
    let terms = selection.terms(&mapping);
    let terms = terms.map_err(|errors| render::granting::unfit(&errors, &mapping.dataset.name))?;
    let now = visit.state.now(visit.console.now());
    let request = GrantRequest {
        terms,
        expires: expiry_at(form.get("ends"), now)?,
        purpose: form.get("purpose").to_owned(),
    };
    let project = visit.deciding(DecisionKind::Access).await?;
    let granted = project.governance().grant(request, &visit.session.who);
    Ok(granted.await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_expiry_is_refused() {
        assert_eq!(expiry_at("1d", 0), Ok(Some(24 * 3600 * 1000)));
        assert_eq!(expiry_at("never", 0), Ok(None));
        for word in ["", "100y"] {
            expiry_at(word, 0).unwrap_err();
        }
    }
}
