//! The problems of drafts, and the differences between live sources and mappings.

use std::fmt::Write as _;

use serde_json::{Value, json};
use wayleave_model::diff;
use wayleave_model::problem::{Problem, Severity, Style, quoted, render};

use crate::{
    Explanation, Rendering,
    check::{CheckedDraft, LiveMapping, Report},
    columns,
    draft::ReadDraftError,
    source_probe::ConnectionDrift,
    token_rules::UnknownGrant,
};

/// The report on drafts, with excerpts.
pub fn report(report: &Report) -> Rendering {
    Rendering::new(document(report), text(report)).with_findings(!report.is_sound())
}

/// The same, with the live mappings that differ from their drafts, and the grants that the settings
/// name for access tokens but that do not exist.
pub fn report_with_settings(
    report: &Report,
    mappings: &[LiveMapping],
    unknown: &[UnknownGrant],
) -> Rendering {
    let told = unknown.iter();
    let told = told.map(|it| json!({ "message": it.to_string(), "hint": it.hint() }));
    let mut document = document(report);
    if let Some(document) = document.as_object_mut() {
        document.insert("settings".to_owned(), told.collect());
        let mappings = mappings.iter().map(live_mapping);
        document.insert("live".to_owned(), mappings.collect());
    }
    let mut told = String::new();
    for it in mappings {
        let name = format!("live mapping of {}, {}", it.dataset, it.digest.short());
        for compared in &it.drift {
            told.push_str(&drifted(&name, &it.text, compared));
        }
    }
    told.push_str(&text(report));
    let is_sound = report.is_sound() && mappings.iter().all(LiveMapping::is_sound);
    Rendering::new(document, told).with_findings(!is_sound)
}

fn live_mapping(it: &LiveMapping) -> Value {
    json!({
        "dataset": it.dataset,
        "digest": it.digest,
        "sound": it.is_sound(),
        "connections": it.drift.iter().map(connection).collect::<Vec<_>>(),
    })
}

/// Warnings about grants that the settings name but that do not exist.
pub fn unknown_grants(unknown: &[UnknownGrant]) -> Vec<String> {
    let lines = unknown.iter().map(|it| {
        let hint = it.hint();
        [format!("warning: {it}"), format!("hint: {hint}")]
    });
    lines.flatten().collect()
}

fn document(report: &Report) -> Value {
    json!({
        "sound": report.is_sound(),
        "ontology": report.ontology.as_ref().map(|it| json!({
            "file": it.file.shown,
            "unreadable": it.file.bytes.as_ref().err().map(ReadDraftError::reason),
            "problems": it.problems,
        })),
        "drafts": report.drafts.iter().map(draft).collect::<Vec<_>>(),
        "clashes": report.name_conflicts,
    })
}

fn draft(checked: &CheckedDraft) -> Value {
    json!({
        "file": checked.file.shown,
        "dataset": checked.file.dataset,
        "digest": checked.digest(),
        "sound": checked.is_sound(),
        "unreadable": checked.unreadable().map(ReadDraftError::reason),
        "problems": checked.problems,
        "writes": checked.writes(),
        "live": checked.drift.iter().map(connection).collect::<Vec<_>>(),
    })
}

fn connection(compared: &ConnectionDrift) -> Value {
    json!({
        "connection": compared.connection,
        "source": compared.source,
        "problems": compared.drift.as_deref().unwrap_or_default(),
        "error": compared.drift.as_ref().err().map(|it| Explanation::from(it).document()),
    })
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    if let Some(ontology) = &report.ontology {
        let source = String::from_utf8_lossy(ontology.file.bytes.as_deref().unwrap_or_default());
        text.push_str(&render(
            &ontology.problems,
            &ontology.file.shown,
            &source,
            Style::Plain,
        ));
        if let Err(error) = &ontology.file.bytes {
            let _ = writeln!(
                text,
                "error: {}: {}\n",
                quoted(&ontology.file.shown),
                error.reason()
            );
        }
    }
    for conflict in &report.name_conflicts {
        let _ = writeln!(
            text,
            "error: {conflict}\nhint: a name belongs to one draft; change the other, or remove it\n"
        );
    }
    for checked in &report.drafts {
        one_draft(&mut text, checked);
    }
    text.push_str(&summary(report));
    text
}

fn one_draft(text: &mut String, checked: &CheckedDraft) {
    let file = &checked.file.shown;
    if let Some(error) = checked.unreadable() {
        let _ = writeln!(text, "error: {}: {}\n", quoted(file), error.reason());
        return;
    }
    let source = checked.text();
    text.push_str(&render(&checked.problems, file, &source, Style::Plain));
    for compared in &checked.drift {
        text.push_str(&drifted(file, &source, compared));
    }
    let writes = checked.writes();
    if !writes.is_empty() {
        let _ = writeln!(text, "note: {}\n{}", quoted(file), diff::render(&writes));
    }
}

/// The differences of the sources from a mapping, one text per differing source.
pub fn drift(file: &str, source: &str, compared: &[ConnectionDrift]) -> Vec<String> {
    let texts = compared.iter().map(|it| drifted(file, source, it));
    texts.filter(|text| !text.is_empty()).collect()
}

fn drifted(file: &str, source: &str, compared: &ConnectionDrift) -> String {
    match &compared.drift {
        Ok(problems) => {
            let place = format!("{file} ({})", compared.connection);
            render(problems, &place, source, Style::Plain)
        }
        Err(error) => {
            let mut text = format!(
                "error: {}, {}: ",
                quoted(file),
                quoted(&compared.connection)
            );
            for (kind, line) in Explanation::from(error).lines() {
                let _ = match kind {
                    "error" => writeln!(text, "{line}"),
                    _ => writeln!(text, "{kind}: {line}"),
                };
            }
            text.push('\n');
            text
        }
    }
}

fn summary(report: &Report) -> String {
    if report.drafts.is_empty() {
        return "no drafts in mappings/\nnext: wayleave propose SOURCE".to_owned();
    }
    let drifted = report.drafts.iter().flat_map(|it| &it.drift);
    let all: Vec<&Problem> = report
        .drafts
        .iter()
        .flat_map(|it| &it.problems)
        .chain(report.ontology.iter().flat_map(|it| &it.problems))
        .chain(
            drifted
                .clone()
                .flat_map(|it| it.drift.as_deref().unwrap_or_default()),
        )
        .collect();
    let of = |severity| {
        all.iter()
            .filter(|it| it.code.severity() == severity)
            .count()
    };
    let unread = report
        .drafts
        .iter()
        .filter(|it| it.unreadable().is_some())
        .count()
        + report
            .ontology
            .iter()
            .filter(|it| it.file.bytes.is_err())
            .count();
    let unasked = drifted.filter(|it| it.drift.is_err()).count();
    let errors = of(Severity::Error) + report.name_conflicts.len() + unread + unasked;
    let sound = report.drafts.iter().filter(|it| it.is_sound()).count();
    format!(
        "{}, {sound} sound: {}, {}",
        columns::count(report.drafts.len(), "draft"),
        columns::count(errors, "error"),
        columns::count(of(Severity::Warning), "warning"),
    )
}
