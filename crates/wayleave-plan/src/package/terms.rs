//! The terms a human agreed to, as the grant of a package.

use serde_json::Value as Json;
use wayleave_model::grant::{self, Claims, RowFilter, StreamTerms, Terms};

use super::{FieldScope, Grant, StreamGrant, StreamScope};

impl Grant {
    /// The grant of that id on these terms, for whoever makes these claims.
    ///
    /// A claim that is missing stays in the row filter as it was written. No view accepts such a
    /// filter, so the stream is withheld.
    pub fn on(id: &str, terms: &Terms, claims: &Claims) -> Self {
        let streams = terms.streams.iter();
        let streams = streams.map(|(name, terms)| (name.clone(), stream(terms, claims)));
        Self {
            id: id.to_owned(),
            dataset: terms.dataset.clone(),
            streams: StreamScope::Only(streams.collect()),
        }
    }
}

fn stream(terms: &StreamTerms, claims: &Claims) -> StreamGrant {
    StreamGrant {
        fields: FieldScope::Only(terms.fields.clone()),
        rows: terms.rows.as_ref().map(|rows| bound(rows, claims)),
    }
}

fn bound(rows: &RowFilter, claims: &Claims) -> Json {
    match rows.to_map() {
        Some(mut filter) => {
            grant::bind(&mut filter, claims);
            Json::Object(filter)
        }
        // No filter is an object that is none: the stream is withheld.
        None => Json::Null,
    }
}
