//! `propose`: a draft over a source's catalogue, written to the folder of drafts.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use wayleave_model::{
    catalogue::Catalogue,
    problem::quoted,
    propose::{self, Change, MergeError, Note, Omission, ProposeOptions},
};

use crate::{
    atomic_file,
    draft::{self, DraftFile, ListDraftsError},
    project::{MAPPINGS, Project},
    source_probe::{SourceSamples, UnsampledColumn},
};

/// The draft file that a proposal goes to, and the parts of it that must stay.
#[derive(Debug)]
pub struct DraftTarget {
    options: ProposeOptions,
    path: PathBuf,
    /// The path shown to people.
    pub shown: String,
    existing: Option<String>,
    schema: Option<String>,
    sampling: Option<Sampling>,
    has_other_sources: bool,
}

/// The result of sampling a source's values for a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampling {
    /// The number of columns that were read.
    pub columns: usize,
    /// The columns that were selected but not read.
    pub unsampled: Vec<UnsampledColumn>,
    /// Whether the draft has connections to other sources, whose values were not read.
    pub has_other_sources: bool,
}

/// A proposed draft.
#[derive(Debug)]
pub struct Proposal {
    /// The dataset.
    pub dataset: String,
    /// The draft, as TOML.
    pub text: String,
    /// Whether there was no draft before.
    pub is_new: bool,
    /// Whether the draft equals the existing one byte for byte.
    pub is_unchanged: bool,
    /// The changes of the source since the draft was made.
    pub changes: Vec<Change>,
    /// The parts of the source that are left out, and why.
    pub left_out: Vec<Omission>,
    /// Notes on the draft as a whole.
    pub notes: Vec<Note>,
    /// The sampled values of the source, if requested.
    pub sampling: Option<Sampling>,
}

/// Why nothing was proposed.
#[derive(Debug, thiserror::Error)]
pub enum ProposalError {
    /// The folder cannot be listed.
    #[error(transparent)]
    ListDrafts(#[from] ListDraftsError),
    /// Two drafts name the dataset.
    #[error("dataset `{dataset}` is in {}", files.join(" and in "))]
    DuplicateDataset {
        /// The dataset.
        dataset: String,
        /// The drafts.
        files: Vec<String>,
    },
    /// The file for the draft belongs to another dataset.
    #[error("{file} names another dataset than `{dataset}`")]
    Taken {
        /// The file.
        file: String,
        /// The dataset to be drafted.
        dataset: String,
    },
    /// The existing draft cannot be read.
    #[error("{file} is there already, and {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// The cause.
        reason: String,
    },
    /// The existing draft reads another source or schema.
    #[error("{file} reads {what} {found}, and not {asked}")]
    Elsewhere {
        /// The file.
        file: String,
        /// `source` or `schema`.
        what: &'static str,
        /// The one it reads.
        found: String,
        /// The one requested.
        asked: String,
    },
    /// The existing draft cannot be updated.
    #[error("{file} cannot be brought up to date")]
    Merge {
        /// The file.
        file: String,
        /// The cause.
        #[source]
        cause: MergeError,
    },
    /// The draft could not be written.
    #[error("{file} cannot be written")]
    Disk {
        /// The file.
        file: String,
        /// The cause.
        #[source]
        cause: io::Error,
    },
}

impl ProposalError {
    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::ListDrafts(_) | Self::Disk { .. } => {
                "check who owns the folder and its free space"
            }
            Self::DuplicateDataset { .. } => {
                "keep one of them, or give the other dataset another name"
            }
            Self::Taken { .. } | Self::Elsewhere { .. } => {
                "give the new draft a name of its own with `--dataset`"
            }
            Self::Unreadable { .. } => "move the file away, or look at it with `--stdout`",
            Self::Merge { .. } => "fix it first: `wayleave check` shows where it breaks",
        }
    }
}

impl DraftTarget {
    /// Finds the draft of the dataset, if there is one.
    pub fn prepare(
        project: &Project,
        options: ProposeOptions,
        schema: Option<&str>,
    ) -> Result<Self, ProposalError> {
        let file = find(project, &options.dataset)?;
        let mut target = Self {
            path: draft::path_of(project, &options.dataset),
            shown: format!("{MAPPINGS}/{}.toml", options.dataset),
            existing: None,
            schema: schema.map(str::to_owned),
            sampling: None,
            has_other_sources: false,
            options,
        };
        if let Some(file) = file {
            target.continue_with(file)?;
        }
        Ok(target)
    }

    /// Continues a text that is not in the drafts, such as the ratified mapping. It cannot be
    /// written.
    pub fn from_text(
        options: ProposeOptions,
        shown: &str,
        existing: Option<String>,
        schema: Option<&str>,
    ) -> Result<Self, ProposalError> {
        let mut target = Self {
            path: PathBuf::new(),
            shown: shown.to_owned(),
            existing: None,
            schema: schema.map(str::to_owned),
            sampling: None,
            has_other_sources: false,
            options,
        };
        if let Some(text) = existing {
            target.continue_with(DraftFile {
                path: PathBuf::new(),
                shown: shown.to_owned(),
                bytes: Ok(text.into_bytes()),
                dataset: Some(target.options.dataset.clone()),
            })?;
        }
        Ok(target)
    }

    fn continue_with(&mut self, file: DraftFile) -> Result<(), ProposalError> {
        let quoted_file = quoted(&file.shown);
        let unreadable = |reason: String| ProposalError::Unreadable {
            file: quoted_file.clone(),
            reason,
        };
        let bytes = file.bytes.map_err(|error| unreadable(error.reason()))?;
        let text = String::from_utf8(bytes).map_err(|_| unreadable("is not UTF-8".to_owned()))?;
        let declared = DraftSources::parse(&text);
        let elsewhere = |what, found: &str, asked: &str| ProposalError::Elsewhere {
            file: quoted_file.clone(),
            what,
            found: quoted(found),
            asked: quoted(asked),
        };
        if !declared.sources.is_empty() && !declared.sources.contains(&self.options.source) {
            let found = declared.sources.join(", ");
            return Err(elsewhere("source", &found, &self.options.source));
        }
        let source = &self.options.source;
        self.has_other_sources = declared.sources.iter().any(|it| it != source);
        match (&self.schema, declared.schema) {
            (Some(asked), Some(found)) if *asked != found => {
                return Err(elsewhere("schema", &found, asked));
            }
            (None, found) => self.schema = found,
            _ => {}
        }
        self.path = file.path;
        self.shown = file.shown;
        self.existing = Some(text);
        Ok(())
    }

    /// The schema whose catalogue to read.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// Sets the sampled values of the source, for the draft to list.
    pub fn set_samples(&mut self, found: SourceSamples) {
        self.options.samples = found.samples;
        self.sampling = Some(Sampling {
            columns: found.columns,
            unsampled: found.unsampled,
            has_other_sources: self.has_other_sources,
        });
    }

    /// Proposes a draft over a catalogue. Writes nothing.
    pub fn propose(&self, catalogue: &Catalogue) -> Result<Proposal, ProposalError> {
        let existing = self.existing.as_deref().unwrap_or_default();
        let merge = propose::repropose(existing, catalogue, &self.options).map_err(|cause| {
            ProposalError::Merge {
                file: quoted(&self.shown),
                cause,
            }
        })?;
        let mut proposal = Proposal {
            dataset: self.options.dataset.clone(),
            is_new: existing.trim().is_empty(),
            is_unchanged: existing == merge.text,
            text: merge.text,
            changes: merge.changes,
            left_out: merge.left_out,
            notes: merge.notes,
            sampling: self.sampling.clone(),
        };
        if proposal.is_new {
            proposal.notes = propose::propose(catalogue, &self.options).notes;
        }
        Ok(proposal)
    }

    /// Starts from this text if there is no draft: the live mapping, or the ratified one.
    pub fn begin_with(&mut self, text: String) {
        self.existing.get_or_insert(text);
    }

    /// Edits the draft only as far as it must fit a changed source. Writes nothing.
    pub fn fit(&self, catalogue: &Catalogue) -> Result<Proposal, ProposalError> {
        let existing = self.existing.as_deref().unwrap_or_default();
        let fit = propose::fit(existing, catalogue).map_err(|cause| ProposalError::Merge {
            file: quoted(&self.shown),
            cause,
        })?;
        Ok(Proposal {
            dataset: self.options.dataset.clone(),
            is_new: false,
            is_unchanged: existing == fit.text && self.path.exists(),
            text: fit.text,
            changes: fit.changes,
            left_out: fit.left_out,
            notes: fit.notes,
            sampling: None,
        })
    }

    /// Whether there is a draft or a text to continue.
    pub fn has_text(&self) -> bool {
        self.existing.is_some()
    }

    /// Writes the draft atomically.
    pub fn write(&self, proposal: &Proposal) -> Result<(), ProposalError> {
        // Write through a link, not over it.
        let path = self
            .path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone());
        write_draft(&path, &proposal.text).map_err(|cause| ProposalError::Disk {
            file: quoted(&self.shown),
            cause,
        })
    }
}

fn find(project: &Project, dataset: &str) -> Result<Option<DraftFile>, ProposalError> {
    let path = draft::path_of(project, dataset);
    let (mut named, others): (Vec<_>, Vec<_>) = draft::all(project)?
        .into_iter()
        .partition(|file| file.dataset.as_deref() == Some(dataset));
    if named.len() > 1 {
        return Err(ProposalError::DuplicateDataset {
            dataset: dataset.to_owned(),
            files: named.iter().map(|file| quoted(&file.shown)).collect(),
        });
    }
    if let Some(file) = named.pop() {
        return Ok(Some(file));
    }
    let Some(there) = others.into_iter().find(|file| file.path == path) else {
        return Ok(None);
    };
    if there.dataset.is_some() {
        return Err(ProposalError::Taken {
            file: quoted(&there.shown),
            dataset: dataset.to_owned(),
        });
    }
    Ok(Some(there))
}

/// The sources and schema that a draft names, as far as it can be parsed.
#[derive(Default)]
struct DraftSources {
    sources: Vec<String>,
    schema: Option<String>,
}

impl DraftSources {
    fn parse(text: &str) -> Self {
        let Ok(document) = text.parse::<toml::Table>() else {
            return Self::default();
        };
        let text_of = |table: &toml::Value, key: &str| {
            let value = table.get(key).and_then(toml::Value::as_str);
            value.map(str::to_owned)
        };
        let connections = document.get("connections").and_then(toml::Value::as_array);
        Self {
            sources: connections
                .into_iter()
                .flatten()
                .filter_map(|it| text_of(it, "source"))
                .collect(),
            schema: document.get("dataset").and_then(|it| text_of(it, "schema")),
        }
    }
}

/// Writes a draft atomically, and creates its folder if that is missing.
pub(crate) fn write_draft(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    atomic_file::replace(path, text.as_bytes(), 0o666)
}
