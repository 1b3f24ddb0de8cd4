//! `gen.mapping` and `gen.shape`: mappings for a person to ratify, as diffs. Nothing is written.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use wayleave_model::{grant::Scope, propose::ProposeOptions};

use super::{
    MetaContext, MetaOperation, MetaOperationError, MetaRefusal, MetaResult,
    input::{self, MappingInput, WorkingText},
    shape::{self, StreamShape},
    table_stream,
};
use crate::{
    Rendering, columns,
    file_diff::FileDiff,
    proposal::{DraftTarget, ProposalError},
};

pub(super) fn operations() -> Result<Vec<MetaOperation>, MetaOperationError> {
    Ok(vec![
        MetaOperation::new(
            "wayleave.meta.gen.mapping",
            Scope::Builder,
            "Writes a mapping over a declared source, or brings the ratified one up to date with \
             it. Returns a FileDiff; nothing is written or served. Send it, changed as you like, \
             to wayleave_meta_mapping_propose.",
            mapping,
        )?,
        MetaOperation::new(
            "wayleave.meta.gen.shape",
            Scope::Builder,
            "Adds or changes one stream of a mapping: keys, fields, computed fields, relations, \
             measures. Works on `text` or `unified` if given, else on the ratified mapping. A \
             new stream with only `table` is written from the source. Returns a FileDiff against \
             the ratified mapping.",
            shape,
        )?,
    ])
}

/// What to write a mapping over.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GenMappingInput {
    /// A declared source, from `source_list`.
    source: String,
    /// What to call the dataset. Default: as the source.
    #[serde(default)]
    dataset: Option<String>,
    /// The schema (PostgreSQL) or database (MySQL). Default: the mapping's, else the session's own.
    #[serde(default)]
    schema: Option<String>,
    /// The digest of the ratified mapping that you have read. The call is refused if another is
    /// ratified.
    #[serde(default)]
    before_sha256: Option<String>,
}

async fn mapping(context: MetaContext, input: GenMappingInput) -> MetaResult {
    let mut options = ProposeOptions::for_source(&input.source);
    if let Some(dataset) = input.dataset {
        // A source may have several datasets; a connection belongs to one.
        options.connection.clone_from(&dataset);
        options.dataset = dataset;
    }
    input::check_name(&options.dataset)?;
    let dataset = options.dataset.clone();
    let before = context.ratified(&dataset).await?;
    input::check_before(before.as_deref(), input.before_sha256.as_deref())?;
    let path = input::path(&dataset);
    let target = DraftTarget::from_text(options, &path, before.clone(), input.schema.as_deref());
    let target = target.map_err(|error| unfit(&error))?;
    let catalogue = context.catalogue(&input.source, target.schema()).await?;
    let proposal = target.propose(&catalogue);
    let proposal = proposal.map_err(|error| unfit(&error))?;
    let diff = FileDiff::new(path, before.as_deref(), &proposal.text);
    let document = json!({
        "dataset": dataset,
        "diff": diff,
        "changes": proposal.changes,
        "left_out": proposal.left_out,
        "notes": proposal.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    Ok(Rendering::new(document, diff.to_string()))
}

fn unfit(error: &ProposalError) -> MetaRefusal {
    let hint = match error {
        ProposalError::Elsewhere { .. } | ProposalError::Taken { .. } => {
            "give the new mapping a name of its own with `dataset`"
        }
        _ => "fix it first: wayleave_meta_mapping_check shows where it breaks",
    };
    MetaRefusal::argument(crate::explanation::with_causes(error)).hint(hint)
}

/// Which stream to add or change, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GenShapeInput {
    /// The dataset.
    dataset: String,
    /// The mapping to work on, as TOML. Default: the ratified one.
    #[serde(default)]
    text: Option<String>,
    /// The mapping to work on, as a unified diff of the ratified one.
    #[serde(default)]
    unified: Option<String>,
    /// The digest of the ratified mapping that you have read.
    #[serde(default)]
    before_sha256: Option<String>,
    /// The stream's name.
    stream: String,
    /// What to set. What is not named stays.
    #[serde(default)]
    set: StreamShape,
    /// Entries of the stream to remove, such as `title`, `fields.fax`, `fields.name.pattern` or
    /// `relations.invoices`.
    #[serde(default)]
    remove: Vec<String>,
}

async fn shape(context: MetaContext, input: GenShapeInput) -> MetaResult {
    let working = MappingInput {
        dataset: input.dataset,
        text: input.text,
        unified: input.unified,
        before_sha256: input.before_sha256,
    };
    let mut working = WorkingText::read(&context, working).await?;
    if working.after.trim().is_empty() {
        return Err(MetaRefusal::argument("there is no mapping to change")
            .hint("wayleave_meta_gen_mapping writes one over a source"));
    }
    let mut document = shape::parse(&working.after)?;
    if input.set.is_only_table() && !shape::has_stream(&document, &input.stream) {
        let scaffold = table_stream::scaffold(&context, &working.after, &input.set).await?;
        shape::insert_stream(&mut document, &input.stream, scaffold)?;
    } else {
        shape::merge(&mut document, &input.stream, &input.set)?;
    }
    shape::remove(&mut document, &input.stream, &input.remove)?;
    working.after = document.to_string();
    let diff = working.diff();
    let problems = match working.propose(&context) {
        Ok(_) => Vec::new(),
        Err(refusal) => refusal.problems,
    };
    let text = if problems.is_empty() {
        diff.to_string()
    } else {
        let count = columns::count(problems.len(), "problem");
        format!("{count}: see `problems`\n{diff}")
    };
    let document = json!({ "dataset": working.dataset, "diff": diff, "problems": problems });
    Ok(Rendering::new(document, text).with_findings(!problems.is_empty()))
}
