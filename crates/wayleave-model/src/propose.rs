//! Proposes a mapping: turns a catalogue into a draft for a human.
//!
//! Pure and deterministic: the same catalogue gives the same bytes. A draft serves nothing; it is
//! text that a person edits and ratifies. Every guess has a comment that gives its reason. Text
//! from the store appears only inside comments, where it cannot become part of the document.

mod choose;
mod comment;
mod draft;
mod fit;
mod guess;
mod merge;
mod naming;
mod person;
mod personal;
mod relate;
mod render;
mod reverse;
mod samples;
mod seen_columns;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

pub use fit::fit;
pub use merge::{Change, Merge, MergeError, repropose};
pub use samples::{
    ColumnSample, MAX_SAMPLED_VALUES, MIN_SAMPLED_ROWS, SampledColumn, Samples, columns_to_sample,
};

use crate::catalogue::Catalogue;
use crate::definitions::MAX_BYTES;
use crate::mapping::SourceKind;
use crate::sensitive;

/// The names of a draft, and the source it is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposeOptions {
    /// The dataset's name.
    pub dataset: String,
    /// Its title for people.
    pub title: Option<String>,
    /// The id of its connection.
    pub connection: String,
    /// The connection's label for people.
    pub label: Option<String>,
    /// The declared source the connection reads.
    pub source: String,
    /// Sampled values of its columns, if the operator requested them.
    pub samples: Samples,
}

impl ProposeOptions {
    /// A dataset named after its one source: source `crm_eu` gives dataset `crm-eu`.
    pub fn for_source(source: &str) -> Self {
        Self {
            dataset: naming::dataset(source),
            title: None,
            connection: source.to_owned(),
            label: None,
            source: source.to_owned(),
            samples: Samples::default(),
        }
    }
}

/// Whether a proposal would map a column of that name and type at all.
pub(crate) fn would_map(kind: SourceKind, name: &str, native_type: &str) -> bool {
    sensitive::looks_secret(name).is_none() && choose::unserved_type(kind, native_type).is_none()
}

/// A proposed mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The draft, as TOML.
    pub text: String,
    /// The parts of the source that are not in it, and why.
    pub left_out: Vec<Omission>,
    /// Notes for the human about the draft as a whole.
    pub notes: Vec<Note>,
}

/// A table, or a column of one, that a draft leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Omission {
    /// The table, exactly as in the store.
    pub table: String,
    /// The column; `None` if the whole table is left out.
    pub column: Option<String>,
    /// Why.
    pub reason: OmissionReason,
}

/// Why something is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OmissionReason {
    /// The column's name says its values are secret.
    Secret(sensitive::Reason),
    /// The column holds bytes, for which there is no datatype.
    Bytes,
    /// The column is an internal search index of the store.
    SearchIndex,
    /// A mapping cannot hold the name: it is too long, or has invisible characters.
    Unnameable,
    /// The table has no key.
    NoKey,
    /// A column of the table's key is left out.
    KeyLeftOut {
        /// That column.
        column: String,
    },
    /// Every column of the table is left out.
    NoFields,
}

impl fmt::Display for OmissionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(reason) => reason.fmt(f),
            Self::Bytes => f.write_str("holds binary data, for which there is no datatype"),
            Self::SearchIndex => f.write_str("is an index the store keeps for itself"),
            Self::Unnameable => f.write_str("has a name that a mapping cannot hold"),
            Self::NoKey => f.write_str("has no primary key and no unique columns without NULL"),
            Self::KeyLeftOut { column } => {
                write!(
                    f,
                    "is identified by {}, which is left out",
                    comment::name(column)
                )
            }
            Self::NoFields => f.write_str("has no column that can be served"),
        }
    }
}

/// A note about a draft as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// No table can be served without edits, so the draft does not pass `check` yet.
    NoStreams,
    /// The draft is larger than a mapping may be.
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The largest allowed size.
        most: usize,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStreams => f.write_str(
                "no table has a key that can be served; choose one in a block that is commented out",
            ),
            Self::TooLarge { bytes, most } => write!(
                f,
                "the draft has {bytes} bytes and a mapping may have {most}; remove streams, or split it"
            ),
        }
    }
}

/// Proposes a mapping of a catalogue.
pub fn propose(catalogue: &Catalogue, options: &ProposeOptions) -> Proposal {
    let draft = choose::draft(
        catalogue,
        &naming::ExistingNames::default(),
        &options.samples,
    );
    let text = render::document(&draft, catalogue, options);
    let mut notes = Vec::new();
    if !draft.streams.iter().any(draft::Stream::is_served) {
        notes.push(Note::NoStreams);
    }
    notes.extend(size_note(&text));
    Proposal {
        text,
        left_out: draft.left_out,
        notes,
    }
}

fn size_note(text: &str) -> Option<Note> {
    (text.len() > MAX_BYTES).then_some(Note::TooLarge {
        bytes: text.len(),
        most: MAX_BYTES,
    })
}
