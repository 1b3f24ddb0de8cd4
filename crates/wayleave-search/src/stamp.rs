//! What an index was built from and how fresh it is, written atomically with every commit.

use serde::{Deserialize, Serialize};

use crate::analyze::Analyzer;
use crate::malformed::MalformedRecords;

/// Version of the on-disk format. An index of another version is rebuilt.
const FORMAT: u32 = 1;

/// The required inputs of an index. An index built from anything else is rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The digest of the ratified mapping, in hexadecimal.
    pub digest: String,
    /// The mapped fields, in the order of documents' texts.
    pub fields: Vec<String>,
    /// The analyzer of their words.
    pub analyzer: Analyzer,
}

/// How fresh the records of an index are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watermark {
    /// When reading the records began, in seconds since 1970-01-01T00:00:00Z.
    pub as_of: i64,
    /// Where the next refresh begins, in a form chosen by the feed; `None` if changes cannot be
    /// tracked.
    pub bookmark: Option<String>,
}

/// What an index was built from and how fresh it is.
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
    /// When it was last built from all records, in the same unit.
    pub built: i64,
    /// Where the next refresh begins.
    pub bookmark: Option<String>,
    #[serde(default)]
    pub(crate) malformed: MalformedRecords,
}

impl Stamp {
    /// The stamp of a new index, or of a refresh of the one stamped `before`.
    pub(crate) fn new(spec: &Spec, watermark: Watermark, before: Option<Self>) -> Self {
        let built = before.as_ref().map(|it| it.built);
        Self {
            format: FORMAT,
            analyzer: spec.analyzer.version().to_owned(),
            digest: spec.digest.clone(),
            fields: spec.fields.clone(),
            built: built.unwrap_or(watermark.as_of),
            as_of: watermark.as_of,
            bookmark: watermark.bookmark,
            malformed: before.map(|it| it.malformed).unwrap_or_default(),
        }
    }

    /// Number of records that are left out or not tracked because one of their values is malformed.
    pub fn malformed(&self) -> u64 {
        self.malformed.count()
    }

    /// Whether an index with this stamp was built from this spec.
    pub(crate) fn matches(&self, spec: &Spec) -> bool {
        self.format == FORMAT
            && self.analyzer == spec.analyzer.version()
            && self.digest == spec.digest
            && self.fields == spec.fields
    }
}
