//! What an index was made from and how fresh it is: written with every commit, in the same
//! atomic step.

use serde::{Deserialize, Serialize};

use crate::analyze::ANALYZER;
use crate::malformed::MalformedRecords;

/// The version of what is on disk. An index of another is made again.
const FORMAT: u32 = 1;

/// What an index is to be made from. An index of anything else is made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The digest of the ratified mapping, in hexadecimal.
    pub digest: String,
    /// The mapped fields, in the order of documents' texts.
    pub fields: Vec<String>,
}

/// How fresh the records of an index are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watermark {
    /// When reading them began, in seconds since 1970-01-01T00:00:00Z.
    pub as_of: i64,
    /// Where the next refresh begins, in the words of whoever feeds the index; `None` where
    /// changes cannot be followed.
    pub bookmark: Option<String>,
}

/// What an index was made from and how fresh it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    format: u32,
    /// The analyzer of its words.
    pub analyzer: String,
    /// The digest of the mapping.
    pub digest: String,
    /// The mapped fields.
    pub fields: Vec<String>,
    /// When reading its records began, in seconds since 1970-01-01T00:00:00Z.
    pub as_of: i64,
    /// When the whole of it was last read, in the same seconds.
    pub built: i64,
    /// Where the next refresh begins.
    pub bookmark: Option<String>,
    #[serde(default)]
    pub(crate) malformed: MalformedRecords,
}

impl Stamp {
    /// The stamp of an index made anew, or of one that goes on from `before`.
    pub(crate) fn new(spec: &Spec, watermark: Watermark, before: Option<Self>) -> Self {
        let built = before.as_ref().map(|it| it.built);
        Self {
            format: FORMAT,
            analyzer: ANALYZER.to_owned(),
            digest: spec.digest.clone(),
            fields: spec.fields.clone(),
            built: built.unwrap_or(watermark.as_of),
            as_of: watermark.as_of,
            bookmark: watermark.bookmark,
            malformed: before.map(|it| it.malformed).unwrap_or_default(),
        }
    }

    /// How many records it leaves out, or does not follow, because a value of theirs is malformed.
    pub fn malformed(&self) -> u64 {
        self.malformed.count()
    }

    /// Whether an index with this stamp is one of what is to be indexed.
    pub(crate) fn matches(&self, spec: &Spec) -> bool {
        self.format == FORMAT
            && self.analyzer == ANALYZER
            && self.digest == spec.digest
            && self.fields == spec.fields
    }
}
