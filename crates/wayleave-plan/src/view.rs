//! The part of the active datasets that one package sees, computed once and queried often.
//!
//! A view is narrowed already: a stream, field or relation that is not granted is absent, so
//! missing and forbidden cannot be told apart. Reads no data.

mod field;
mod locate;
mod masks;
mod measure;
mod resolve;
mod schema;
mod stream;

use std::collections::BTreeMap;
use std::sync::Arc;

use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;

pub use field::FieldView;
pub use measure::MeasureView;
pub use schema::SchemaSubject;
pub use stream::{StreamView, Tracking};

use crate::active_datasets::ActiveDatasets;
use crate::package::Package;
use crate::refusal::ConnectionOption;
use crate::seal::KeyRing;
use crate::write::CapabilityView;

/// The part of the active datasets that one package sees.
#[derive(Debug, Clone)]
pub struct View {
    subject: String,
    epoch: u64,
    connections: Vec<ConnectionView>,
    /// Where to find each stream name: indexes of connections and of their streams.
    by_stream: BTreeMap<String, Vec<(usize, usize)>>,
    withheld: Vec<WithheldPart>,
}

/// One connection, limited to what is granted.
#[derive(Debug, Clone)]
pub struct ConnectionView {
    /// The grant it is read under.
    pub grant_id: String,
    /// The dataset.
    pub connector_key: String,
    /// The connection.
    pub connection_id: String,
    /// A label for people.
    pub label: String,
    /// The granted streams, in mapping order.
    pub streams: Vec<StreamView>,
    /// The capabilities that may be called, in mapping order.
    pub capabilities: Vec<CapabilityView>,
    mapping: Arc<Ratified<Mapping>>,
}

impl ConnectionView {
    /// The title of the dataset, for people.
    pub fn dataset_title(&self) -> Option<&str> {
        self.mapping.dataset.title.as_ref().map(|it| it.as_str())
    }

    /// The description of the dataset.
    pub fn dataset_description(&self) -> Option<&str> {
        let description = self.mapping.dataset.description.as_ref();
        description.map(|it| it.as_str())
    }

    /// The stream of that name.
    pub fn stream(&self, name: &str) -> Option<&StreamView> {
        self.streams.iter().find(|stream| stream.name() == name)
    }

    /// The connection as an entry of a choice.
    pub fn connection_option(&self) -> ConnectionOption {
        ConnectionOption {
            grant_id: self.grant_id.clone(),
            connector_key: self.connector_key.clone(),
            connection_id: self.connection_id.clone(),
            label: self.label.clone(),
        }
    }
}

/// A stream or capability that is granted but not served, because its grant no longer fits the
/// mapping: its row filter, the key, a field. For the operator only; callers learn nothing of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldPart {
    /// The connection.
    pub connection_id: String,
    /// The stream, or the capability.
    pub stream: String,
    /// The reason.
    pub reason: String,
}

impl View {
    /// Computes the view of a package, without keys for tokens: fields masked by tokens are
    /// redacted.
    pub fn new(active: &ActiveDatasets, package: &Package) -> Self {
        resolve::view(active, package, None)
    }

    /// Computes the view of a package, with the key for tokens of masked fields. Without one in the
    /// ring, such fields are redacted.
    pub fn with_keys(active: &ActiveDatasets, package: &Package, keys: &KeyRing) -> Self {
        resolve::view(active, package, keys.mask_key())
    }

    /// The subject of the package.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The epoch of the package's grants.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The visible connections with their streams, as `schema` lists them: by dataset name, then in
    /// mapping order.
    pub fn connections(&self) -> &[ConnectionView] {
        &self.connections
    }

    /// The visible connection of that id.
    pub fn connection(&self, id: &str) -> Option<&ConnectionView> {
        self.connections
            .iter()
            .find(|connection| connection.connection_id == id)
    }

    /// The capability whose tool has that name, if it may be called.
    pub fn capability(&self, tool: &str) -> Option<&CapabilityView> {
        let mut all = self.connections.iter().flat_map(|it| &it.capabilities);
        all.find(|it| it.tool() == tool)
    }

    /// The visible stream names, sorted, each once.
    pub fn stream_names(&self) -> impl Iterator<Item = &str> {
        self.by_stream.keys().map(String::as_str)
    }

    /// Every visible connection that has a stream of that name, with the stream.
    pub fn holders(&self, stream: &str) -> Vec<(&ConnectionView, &StreamView)> {
        self.by_stream
            .get(stream)
            .into_iter()
            .flatten()
            .map(|(connection, stream)| self.at(*connection, *stream))
            .collect()
    }

    #[expect(clippy::expect_used, reason = "a view does not change once it is made")]
    fn at(&self, connection: usize, stream: usize) -> (&ConnectionView, &StreamView) {
        let connection = self.connections.get(connection);
        let connection = connection.expect("the connection was counted");
        let stream = connection.streams.get(stream);
        (connection, stream.expect("the stream was counted"))
    }

    /// Granted streams that are not served, for the operator's log.
    pub fn withheld(&self) -> &[WithheldPart] {
        &self.withheld
    }
}
