//! Turns the terms a human agreed to into a grant of a package.

use serde_json::Value as Json;
use wayleave_model::grant::{self, Claims, StreamTerms, Terms};

use super::{FieldScope, Grant, RelationScope, StreamGrant, StreamScope};

/// A stream left out of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The stream.
    pub stream: String,
    /// The claim that its row filter requires; `None` where the filter cannot be read at all.
    pub claim: Option<String>,
}

impl Grant {
    /// The grant with that id on these terms, for a caller with these claims; and the streams whose
    /// row filter requires a missing claim. Those are not in the grant: to a caller without the
    /// claim they do not exist, not even by name.
    pub fn on(id: &str, terms: &Terms, claims: &Claims) -> (Self, Vec<LeftOut>) {
        let (mut streams, mut left_out) = (std::collections::BTreeMap::new(), Vec::new());
        for (name, terms) in &terms.streams {
            match stream(terms, claims) {
                Ok(granted) => {
                    streams.insert(name.clone(), granted);
                }
                Err(claim) => left_out.push(LeftOut {
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

/// The grant of a stream, or the missing claim.
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
