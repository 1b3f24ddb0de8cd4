//! The status of the indexes on disk, for the operator.

use std::path::Path;

use serde::Serialize;
use wayleave_ledger::FOLDER;
use wayleave_plan::{
    search::{IndexDefinition, SearchableStream},
    value::Value,
};
use wayleave_search::{Index, IndexError, IndexRoot, IndexState, Spec};

use crate::explanation::{Explanation, with_causes};

/// Folder of indexes inside the project's private folder.
pub(crate) const INDEX_FOLDER: &str = "index";

/// The folder of a project's indexes.
pub fn index_root(folder: &Path) -> IndexRoot {
    IndexRoot::new(folder.join(FOLDER).join(INDEX_FOLDER))
}

/// Whether an index can be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexReadiness {
    /// It is complete.
    Ready,
    /// It was not built.
    Absent,
    /// It was built for another mapping.
    Outdated,
    /// Its files cannot be used.
    Damaged,
}

impl IndexReadiness {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Absent => "absent",
            Self::Outdated => "outdated",
            Self::Damaged => "damaged",
        }
    }
}

impl From<&IndexState> for IndexReadiness {
    fn from(state: &IndexState) -> Self {
        match state {
            IndexState::Ready(_) => Self::Ready,
            IndexState::Absent => Self::Absent,
            IndexState::Outdated => Self::Outdated,
            IndexState::Damaged => Self::Damaged,
        }
    }
}

/// The status of one index.
#[derive(Debug, Clone, Serialize)]
pub struct IndexStatus {
    /// The dataset.
    pub dataset: String,
    /// The connection.
    pub connection_id: String,
    /// The stream.
    pub stream: String,
    /// Whether it can be searched.
    pub state: IndexReadiness,
    /// The number of records it holds.
    pub documents: Option<u64>,
    /// The number of records with a value of another datatype. In the key or a searched field it
    /// leaves the record out; in `updated` it hides the record's changes.
    pub malformed: Option<u64>,
    /// Its size on disk.
    pub bytes: u64,
    /// When reading its records began, as RFC 3339 in UTC.
    pub as_of: Option<String>,
    /// The analyzer that splits its text into words.
    pub analyzer: &'static str,
    /// The searched fields.
    pub fields: Vec<String>,
    /// Whether changes are followed; if not, it is rebuilt periodically while serving.
    pub follows_changes: bool,
}

/// The content of the index that a mapping defines.
pub fn spec(defined: &IndexDefinition) -> Spec {
    Spec {
        digest: defined.digest.hex(),
        fields: defined.fields.clone(),
        analyzer: defined.analyzer.into(),
    }
}

/// The status of the index of a stream, determined by reading all of it.
pub fn status(index_root: &IndexRoot, what: &SearchableStream) -> Result<IndexStatus, IndexError> {
    let dir = index_root.dir(&what.connection_id, &what.stream)?;
    let spec = spec(&what.indexed);
    let found = dir.open(&spec)?;
    let index = match &found {
        IndexState::Ready(index) => Some(index),
        IndexState::Absent | IndexState::Outdated | IndexState::Damaged => None,
    };
    Ok(IndexStatus {
        dataset: what.connector_key.clone(),
        connection_id: what.connection_id.clone(),
        stream: what.stream.clone(),
        state: IndexReadiness::from(&found),
        documents: index.map(Index::documents),
        malformed: index.map(|it| it.stamp().malformed()),
        bytes: dir.usage()?.bytes,
        as_of: index.and_then(|it| time(it.stamp().as_of)),
        analyzer: spec.analyzer.version(),
        fields: spec.fields,
        follows_changes: what.is_tracked,
    })
}

/// The indexes of a project, as far as their status can be read.
#[derive(Debug, Clone, Default)]
pub struct IndexStatuses {
    /// Those whose status is known.
    pub known: Vec<IndexStatus>,
    /// Those whose status cannot be read.
    pub faults: Vec<IndexFault>,
}

/// An index whose status cannot be read.
#[derive(Debug, Clone)]
pub struct IndexFault {
    /// The dataset.
    pub dataset: String,
    /// The connection.
    pub connection_id: String,
    /// The stream.
    pub stream: String,
    /// Why.
    pub why: Explanation,
}

impl IndexStatuses {
    /// Reads all of every index.
    pub fn read(index_root: &IndexRoot, searchable: &[SearchableStream]) -> Self {
        let mut all = Self::default();
        for what in searchable {
            match status(index_root, what) {
                Ok(known) => all.known.push(known),
                Err(error) => all.faults.push(IndexFault::new(what, &error)),
            }
        }
        all
    }

    /// Keeps only the indexes of a dataset.
    pub fn retain(&mut self, dataset: &str) {
        self.known.retain(|it| it.dataset == dataset);
        self.faults.retain(|it| it.dataset == dataset);
    }
}

impl IndexFault {
    fn new(what: &SearchableStream, error: &IndexError) -> Self {
        let (connection, stream) = (&what.connection_id, &what.stream);
        let message = format!("the index `{connection}/{stream}` cannot be read");
        let mut why = Explanation::new(message).hint(error.hint());
        why.causes.push(with_causes(error));
        Self {
            dataset: what.connector_key.clone(),
            connection_id: connection.clone(),
            stream: stream.clone(),
            why,
        }
    }
}

fn time(seconds: i64) -> Option<String> {
    Value::Datetime(seconds.saturating_mul(1_000_000)).to_text()
}
