//! The grants of one credential: one per connection.

mod grant_selection;
mod narrowing;
mod terms;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use wayleave_model::mask::Mask;

pub use grant_selection::{GrantSelection, SelectionError};
pub use narrowing::GrantNarrowing;
pub use terms::OmittedStream;

/// The grants behind one token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// The subject: a token id, or `local`. Cursors are bound to it. Never a credential.
    pub subject: String,
    /// Changes whenever the grants change. Cursors are bound to it.
    pub epoch: u64,
    /// One grant per connection.
    pub grants: Grants,
}

/// All grants of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grants {
    /// Every connection of every active dataset, all of it and read-only: the local package.
    Everything,
    /// The named grants, by `connection_id`. Shared, so that a package is cheap to copy and
    /// comparing it with its copies is free.
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

/// The grant for one connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The grant's id, shown to callers that must choose between connections.
    pub id: String,
    /// The connection's dataset. A connection with the same id in another dataset is a different
    /// one, and is not granted.
    pub dataset: String,
    /// The streams that may be read.
    pub streams: StreamScope,
    /// The capabilities that may be called, by name.
    pub capabilities: BTreeSet<String>,
}

/// The streams of a connection that a grant covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamScope {
    /// Every stream of the mapping, unrestricted.
    All,
    /// The named streams.
    Only(BTreeMap<String, StreamGrant>),
}

/// The grant for one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamGrant {
    /// The fields that may be read, filtered on, sorted by and aggregated. Without all key fields
    /// the stream is withheld, because a record has no identity without its key.
    pub fields: FieldScope,
    /// The relations that may be followed, if the joined fields at both ends are visible too.
    pub relations: RelationScope,
    /// Limits the rows to those that match this filter, in the caller's own filter language.
    pub rows: Option<Json>,
    /// The fields that are shown masked, by name.
    #[serde(default)]
    pub masks: BTreeMap<String, Mask>,
}

/// The fields of a stream that a grant covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FieldScope {
    /// Every field of the mapping.
    All,
    /// The named fields.
    Only(BTreeSet<String>),
}

/// The relations of a stream that a grant covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RelationScope {
    /// Every relation of the mapping.
    All,
    /// The named relations.
    Only(BTreeSet<String>),
}
