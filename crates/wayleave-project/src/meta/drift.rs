//! `drift.report`: how live sources differ from the ratified mappings.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use wayleave_model::{grant::Scope, parse, problem::Problem};

use super::{
    MetaCode, MetaContext, MetaOperation, MetaOperationError, MetaRefusal, MetaResult, input,
    mappings::{connection, problem_lines, unratified},
};
use crate::{Rendering, source_probe::ConnectionDrift};

/// Maximum number of datasets compared in one call.
const MAX_DATASETS: usize = 20;

pub(super) fn operations() -> Result<Vec<MetaOperation>, MetaOperationError> {
    Ok(vec![MetaOperation::new(
        "wayleave.meta.drift.report",
        Scope::Builder,
        "How live sources differ from their ratified mappings: columns that are gone, renamed or \
         of another type. wayleave_meta_gen_mapping writes what follows the source.",
        report,
    )?])
}

/// Which dataset to compare.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DriftInput {
    /// The dataset. Default: all that are ratified.
    #[serde(default)]
    dataset: Option<String>,
}

async fn report(context: MetaContext, input: DriftInput) -> MetaResult {
    let state = context.state().await?;
    let ratified = state.datasets().iter();
    let ratified = ratified.filter(|(_, it)| it.ratified.is_some());
    let known: Vec<String> = ratified.map(|(name, _)| name.clone()).collect();
    let wanted = match input.dataset {
        None => known,
        Some(name) if known.contains(&name) => vec![name],
        Some(name) => {
            input::check_name(&name)?;
            let what = "ratified dataset";
            return Err(MetaRefusal::unknown(
                MetaCode::UnknownDataset,
                what,
                &name,
                known,
            ));
        }
    };
    let (mut documents, mut lines) = (Vec::new(), Vec::new());
    let mut has_findings = false;
    for name in wanted.iter().take(MAX_DATASETS) {
        let (document, line, is_sound) = one(&context, name).await?;
        documents.push(document);
        lines.push(format!("{name}: {line}"));
        has_findings |= !is_sound;
    }
    let left = wanted.len().saturating_sub(MAX_DATASETS);
    if left > 0 {
        lines.push(format!("{left} more: name them with `dataset`"));
    }
    if lines.is_empty() {
        lines.push("nothing is ratified".to_owned());
    }
    let document = json!({ "datasets": documents, "not_compared": left });
    Ok(Rendering::new(document, lines.join("\n")).with_findings(has_findings))
}

async fn one(context: &MetaContext, name: &str) -> Result<(Value, String, bool), MetaRefusal> {
    let Some(text) = context.ratified(name).await? else {
        // Retired since it was listed.
        return Err(unratified(context, name).await?);
    };
    let Ok(mapping) = parse::parse(text.as_bytes()) else {
        return Err(MetaRefusal::new(
            MetaCode::Unavailable,
            format!("the ratified mapping of `{name}` cannot be read; its operator must look"),
        ));
    };
    let compared = context.compare(&mapping, &text).await?;
    let is_sound = !compared.iter().any(ConnectionDrift::is_broken);
    let problems = compared.iter().flat_map(|it| it.drift.iter().flatten());
    let problems: Vec<&Problem> = problems.collect();
    let line = match (is_sound, problems.is_empty()) {
        (true, true) => "fits its source".to_owned(),
        (_, false) => problem_lines(problems),
        (false, true) => "its source does not answer".to_owned(),
    };
    let connections: Vec<Value> = compared.iter().map(connection).collect();
    let document = json!({ "dataset": name, "fits": is_sound, "connections": connections });
    Ok((document, line, is_sound))
}
