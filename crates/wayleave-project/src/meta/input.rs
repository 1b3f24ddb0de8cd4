//! The mapping that a call works on: a text, a diff of the ratified mapping, or the latter itself.

use wayleave_model::{digest::Digest, names::NameKind, ratify::Draft, ratify::Proposed};

use super::{MetaCode, MetaContext, MetaRefusal};
use crate::{
    draft,
    file_diff::{self, FileDiff},
    inbox::MAX_PROPOSAL_BYTES,
    project::MAPPINGS,
};

/// The arguments that select the mapping of a call.
pub(super) struct MappingInput {
    pub(super) dataset: String,
    pub(super) text: Option<String>,
    pub(super) unified: Option<String>,
    pub(super) before_sha256: Option<String>,
}

/// The mapping that a call works on, with the ratified one.
pub(super) struct WorkingText {
    pub(super) dataset: String,
    pub(super) before: Option<String>,
    pub(super) after: String,
}

impl WorkingText {
    /// Resolves the arguments. Refuses if the ratified mapping is not the one the caller has read.
    pub(super) async fn read(
        context: &MetaContext,
        input: MappingInput,
    ) -> Result<Self, MetaRefusal> {
        let MappingInput {
            dataset,
            text,
            unified,
            before_sha256,
        } = input;
        check_name(&dataset)?;
        let before = context.ratified(&dataset).await?;
        check_before(before.as_deref(), before_sha256.as_deref())?;
        let after = match (text, unified) {
            (Some(text), None) => text,
            (None, Some(unified)) => {
                file_diff::apply(&unified, before.as_deref().unwrap_or_default())?
            }
            (None, None) => before.clone().unwrap_or_default(),
            (Some(_), Some(_)) => {
                return Err(MetaRefusal::argument("give `text` or `unified`, not both"));
            }
        };
        if after.len() > MAX_PROPOSAL_BYTES {
            let bytes = after.len();
            return Err(MetaRefusal::new(
                MetaCode::TooLarge,
                format!("the mapping has {bytes} bytes; the limit is {MAX_PROPOSAL_BYTES}"),
            ));
        }
        Ok(Self {
            dataset,
            before,
            after,
        })
    }

    /// The difference from the ratified mapping.
    pub(super) fn diff(&self) -> FileDiff {
        FileDiff::new(path(&self.dataset), self.before.as_deref(), &self.after)
    }

    /// Checks the mapping. A refusal lists all of its problems.
    pub(super) fn propose(&self, context: &MetaContext) -> Result<Proposed, MetaRefusal> {
        if self.after.trim().is_empty() {
            let message = "there is no mapping to work on: give `text` or `unified`";
            return Err(MetaRefusal::argument(message)
                .hint("wayleave_meta_gen_mapping writes one over a source"));
        }
        let ontology = context.vocabulary()?;
        let draft = Draft::new(self.after.as_bytes());
        let proposed = draft.propose(ontology.as_ref());
        let proposed = proposed.map_err(|rejected| MetaRefusal::problems(&rejected.problems))?;
        let named = &proposed.mapping().dataset.name.value;
        if *named == self.dataset {
            return Ok(proposed);
        }
        let message = format!(
            "the mapping names dataset `{named}`, not `{}`",
            self.dataset
        );
        Err(MetaRefusal::argument(message).hint("`name` under `[dataset]` is the dataset's name"))
    }

    /// The dataset that the text names, even if the rest of it does not check.
    pub(super) fn named(&self) -> Option<String> {
        draft::named(self.after.as_bytes())
    }
}

/// The path of a dataset's draft, relative to the project.
pub(super) fn path(dataset: &str) -> String {
    format!("{MAPPINGS}/{dataset}.toml")
}

pub(super) fn check_name(dataset: &str) -> Result<(), MetaRefusal> {
    if NameKind::Dataset.matches(dataset) {
        return Ok(());
    }
    let pattern = NameKind::Dataset.pattern();
    Err(MetaRefusal::argument(format!(
        "`dataset` is a name like `record-shop`: {pattern}"
    )))
}

/// Refuses a call that is based on another text than the ratified one.
pub(super) fn check_before(before: Option<&str>, read: Option<&str>) -> Result<(), MetaRefusal> {
    let current = before.map(|text| Digest::from_bytes(text.as_bytes()).hex());
    let Some(read) = read else { return Ok(()) };
    let read = read.strip_prefix("sha256:").unwrap_or(read);
    if current.as_deref() == Some(read) {
        return Ok(());
    }
    Err(MetaRefusal::new(
        MetaCode::Stale,
        "the ratified mapping is not the one that `before_sha256` names",
    )
    .hint("read it again with wayleave_meta_mapping_read, and make the change from that")
    .fact("current_sha256", current))
}
