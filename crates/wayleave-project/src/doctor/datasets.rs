//! The findings about datasets: what is active against its sources, and the full-text indexes.

use std::sync::Arc;

use wayleave_ledger::State;
use wayleave_model::{
    digest::Digest,
    problem::{Problem, Severity},
};
use wayleave_plan::search;
use wayleave_store::Progress;

use super::{Finding, governance_problem};
use crate::{
    columns,
    datasets::{DatasetFault, ServedDatasets, WithheldReason},
    explanation::with_causes,
    index_status::{self, IndexReadiness},
    project::Project,
    source_probe::{MappingComparison, SourceProbe},
};

/// Compares every dataset that is served with its sources.
pub(super) async fn compared(
    project: &Project,
    state: &State,
    probe: &SourceProbe,
    progress: Progress<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut comparison = MappingComparison::new(probe, state);
    for (name, dataset) in state.datasets() {
        let Some(ratified) = &dataset.ratified else {
            continue;
        };
        let about = format!("dataset {name}");
        // Compares the served mapping, not one ratified since.
        let loaded = match &dataset.active {
            Some(active) => project.governance().load_as(&active.ratified.act).await,
            None => project.governance().load(name).await,
        };
        let mapping = match loaded {
            Ok(mapping) => mapping,
            Err(error) => {
                findings.push(governance_problem(&about, &error));
                continue;
            }
        };
        let text = String::from_utf8_lossy(mapping.bytes());
        let mut whole = true;
        for compared in comparison.compare(&mapping, &text, progress).await {
            let about = format!("dataset {name}, connection {}", compared.connection);
            match &compared.drift {
                Ok(problems) if problems.is_empty() => {}
                Ok(problems) => {
                    whole &= !compared.is_broken();
                    let source = &compared.source;
                    let hint = format!(
                        "fix the source, or write a draft that fits it (`wayleave propose {source} \
                         --dataset {name} --fit`) and ratify it"
                    );
                    let finding = |problem: &Problem| match problem.code.severity() {
                        Severity::Error => {
                            Finding::problem(about.as_str(), &problem.message, Some(hint.as_str()))
                        }
                        Severity::Warning => {
                            Finding::warning(about.as_str(), &problem.message, &hint)
                        }
                    };
                    findings.extend(problems.iter().map(finding));
                }
                Err(error) => {
                    whole = false;
                    let hint = Some(error.hint());
                    findings.push(Finding::problem(about, with_causes(error), hint));
                }
            }
        }
        if whole {
            findings.push(served(
                about,
                ratified.act.digest,
                dataset.active.as_ref().map(|it| it.digest),
            ));
        }
    }
    findings.extend(withheld(project, state).await);
    findings
}

/// Active datasets that would not be served, except those that the check of ratified datasets
/// already reports.
async fn withheld(project: &Project, state: &State) -> Vec<Finding> {
    let live = ServedDatasets::default()
        .follow(state, project.governance())
        .await;
    let told = |fault: &DatasetFault| {
        let ratified = state.ratified(&fault.dataset);
        let same = ratified.is_some_and(|it| it.act.digest == fault.digest);
        same && matches!(fault.reason, WithheldReason::Mapping(_))
    };
    let untold = live.faults().filter(|fault| !told(fault));
    let finding = |fault: &Arc<DatasetFault>| {
        let about = format!("dataset {}, as active", fault.dataset);
        Finding::problem(about, with_causes(&fault.reason), fault.reason.hint())
    };
    untold.map(finding).collect()
}

/// The full-text indexes of the active datasets.
pub(super) async fn indexes(project: &Project, state: &State) -> Vec<Finding> {
    // Mappings that cannot be loaded were already reported.
    let live = ServedDatasets::default()
        .follow(state, project.governance())
        .await;
    let searchable = match live.active_datasets() {
        Ok(active) => search::searchable(&active),
        Err(error) => {
            let none: Option<String> = None;
            return vec![Finding::problem("indexes", error.to_string(), none)];
        }
    };
    let root = index_status::index_root(project.folder());
    let (mut ready, mut findings) = (0, Vec::new());
    for what in &searchable {
        let about = format!("index {}/{}", what.connection_id, what.stream);
        let status = index_status::status(&root, what);
        let malformed = status.as_ref().ok().and_then(|it| it.malformed);
        if let Some(many) = malformed.filter(|many| *many > 0) {
            let count = columns::count(usize::try_from(many).unwrap_or(usize::MAX), "record");
            findings.push(Finding::warning(
                about.clone(),
                format!(
                    "{count} left out or not followed: a value of the key, of a searched field or of \
                     `updated` is not of its datatype"
                ),
                "fix these values in the source, or map the column with the datatype of what it holds",
            ));
        }
        match status.map(|status| status.state) {
            Ok(IndexReadiness::Ready) => ready += 1,
            Ok(IndexReadiness::Damaged) => findings.push(Finding::warning(
                about,
                "is damaged, and is never searched",
                "`wayleave serve` builds it again; so does `wayleave index rebuild`",
            )),
            Ok(IndexReadiness::Absent | IndexReadiness::Outdated) => {}
            Err(error) => findings.push(Finding::problem(
                about,
                with_causes(&error),
                Some(error.hint()),
            )),
        }
    }
    if !searchable.is_empty() {
        let all = searchable.len();
        let message = if ready == all {
            format!("all {all} are built")
        } else {
            format!("{ready} of {all} are built; `wayleave serve` builds the rest")
        };
        findings.insert(0, Finding::ok("indexes", message));
    }
    findings
}

fn served(about: String, ratified: Digest, active: Option<Digest>) -> Finding {
    let short = ratified.short();
    match active {
        Some(active) if active == ratified => {
            Finding::ok(about, format!("{short} is active and fits its sources"))
        }
        Some(active) => Finding::warning(
            about,
            format!(
                "{} is active, and {short} was ratified since",
                active.short()
            ),
            "make it live with `wayleave connect`",
        ),
        None => Finding::ok(about, format!("{short} is ratified and fits its sources")),
    }
}
