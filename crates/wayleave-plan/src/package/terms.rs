//! Converts ratified terms into a grant of a package.

use serde_json::Value as Json;
use wayleave_model::grant::{self, Claims, StreamTerms, Terms};

use super::{FieldScope, Grant, RelationScope, StreamGrant, StreamScope};

/// A stream that a package leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedStream {
    /// The stream.
    pub stream: String,
    /// The claim that its row filter requires; `None` if the filter cannot be parsed.
    pub claim: Option<String>,
}

impl Grant {
    /// Builds the grant with that id from these terms, for a caller with these claims. Also returns
    /// the streams whose row filter requires a missing claim. The grant does not contain them: to a
    /// caller without the claim they do not exist, not even by name.
    pub fn from_terms(id: &str, terms: &Terms, claims: &Claims) -> (Self, Vec<OmittedStream>) {
        let (mut streams, mut left_out) = (std::collections::BTreeMap::new(), Vec::new());
        for (name, terms) in &terms.streams {
            match stream(terms, claims) {
                Ok(granted) => {
                    streams.insert(name.clone(), granted);
                }
                Err(claim) => left_out.push(OmittedStream {
                    stream: name.clone(),
                    claim,
                }),
            }
        }
        let grant = Self {
            id: id.to_owned(),
            dataset: terms.dataset.clone(),
            streams: StreamScope::Only(streams),
            capabilities: terms.capabilities.clone(),
        };
        (grant, left_out)
    }
}

/// Builds the grant of a stream. Fails with the missing claim, if one is missing.
fn stream(terms: &StreamTerms, claims: &Claims) -> Result<StreamGrant, Option<String>> {
    let rows = match &terms.rows {
        None => None,
        Some(rows) => {
            let mut filter = rows.to_map().ok_or(None)?;
            match grant::bind(&mut filter, claims) {
                None => Some(Json::Object(filter)),
                missing => return Err(missing),
            }
        }
    };
    Ok(StreamGrant {
        fields: FieldScope::Only(terms.fields.clone()),
        relations: RelationScope::Only(terms.relations.clone()),
        rows,
        masks: terms.masks.clone(),
    })
}
