//! What one credential may read: a grant a connection.

mod grant_selection;
mod terms;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use grant_selection::{GrantSelection, Unfit};
pub use terms::LeftOut;

/// The grants behind one token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Whose it is: a token id, or `local`. Cursors are bound to it. Never a credential.
    pub subject: String,
    /// Moves whenever the grants change. Cursors are bound to it.
    pub epoch: u64,
    /// One grant a connection.
    pub grants: Grants,
}

/// All grants of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grants {
    /// Every connection of every active dataset, whole and read-only: the local package.
    Everything,
    /// These, by `connection_id`. Shared, so that a package costs little to copy, and nothing to
    /// compare with its copies.
    Only(Arc<BTreeMap<String, Grant>>),
}

impl Package {
    /// The package of a local client without a token.
    pub fn local() -> Self {
        Self {
            subject: "local".to_owned(),
            epoch: 0,
            grants: Grants::Everything,
        }
    }
}

/// What may be read of one connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The grant's id, shown to callers that must choose between connections.
    pub id: String,
    /// The dataset of the connection. A connection of that id in another dataset is another one,
    /// and not granted.
    pub dataset: String,
    /// The streams that may be read.
    pub streams: StreamScope,
}

/// Which streams of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamScope {
    /// All of the mapping, whole.
    All,
    /// These, by name.
    Only(BTreeMap<String, StreamGrant>),
}

/// What may be read of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamGrant {
    /// The fields that may be seen, filtered on, sorted by and aggregated. Where a key field is not
    /// among them nothing of the stream is seen: a record without its identity is none.
    pub fields: FieldScope,
    /// The relations that may be followed, where what they join is seen too.
    pub relations: RelationScope,
    /// Only rows for which this filter, in the caller's own filter language, holds.
    pub rows: Option<Json>,
}

/// Which fields of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FieldScope {
    /// All of the mapping.
    All,
    /// These.
    Only(BTreeSet<String>),
}

/// Which relations of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RelationScope {
    /// All of the mapping.
    All,
    /// These.
    Only(BTreeSet<String>),
}
