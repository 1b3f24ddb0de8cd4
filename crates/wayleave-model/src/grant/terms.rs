//! The terms of a grant, as a human agreed to them.
//!
//! Terms name every stream and every field they allow. A mapping ratified later may remove some of
//! them; what it adds is not in the terms, so nothing is allowed that no human has reviewed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value as Json};

use crate::digest::Digest;
use crate::mask::Mask;

/// What may be read of one connection of one dataset. Terms with a part that is not known here are not
/// read: it may narrow them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The dataset.
    pub dataset: String,
    /// The connection.
    pub connection: String,
    /// The mapping these terms were checked against.
    pub mapping: Digest,
    /// The streams that may be read, by name.
    pub streams: BTreeMap<String, StreamTerms>,
    /// The capabilities that may be called, by name.
    pub capabilities: BTreeSet<String>,
}

/// What may be read of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamTerms {
    /// The fields that may be seen.
    pub fields: BTreeSet<String>,
    /// The relations that may be followed, if the joined stream is granted too. Named explicitly,
    /// because a relation may join by a column that is not a field.
    pub relations: BTreeSet<String>,
    /// Restricts the rows to those for which this holds.
    pub rows: Option<RowFilter>,
    /// The fields that are shown masked, by name. Entries from before there were masks have none. One
    /// that names an unknown mask is refused as a whole: what it says must not be guessed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub masks: BTreeMap<String, Mask>,
}

/// A row filter as a human wrote it: the JSON text of an object, in the filter language of callers.
/// An operand may be `{"claim": "name"}`, which refers to a claim of the caller's token.
///
/// ```
/// use wayleave_model::grant::RowFilter;
///
/// let filter: RowFilter = r#"{"region": {"claim": "region"}}"#.parse()?;
/// assert!(filter.claims().contains("region"));
/// assert!("[1]".parse::<RowFilter>().is_err());
/// # Ok::<(), wayleave_model::grant::NotARowFilter>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RowFilter(String);

/// A text that is not a row filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a row filter is a JSON object")]
pub struct NotARowFilter;

impl RowFilter {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The claims it refers to.
    pub fn claims(&self) -> BTreeSet<String> {
        let mut asked = BTreeSet::new();
        if let Some(mut filter) = self.to_map() {
            super::visit_operands(&mut filter, &mut |_, operand| {
                asked.extend(super::claim_of(operand).map(str::to_owned));
            });
        }
        asked
    }

    /// The filter.
    pub fn to_map(&self) -> Option<Map<String, Json>> {
        serde_json::from_str(&self.0).ok()
    }
}

impl std::str::FromStr for RowFilter {
    type Err = NotARowFilter;

    fn from_str(text: &str) -> Result<Self, NotARowFilter> {
        let filter = Self(text.trim().to_owned());
        filter.to_map().ok_or(NotARowFilter)?;
        Ok(filter)
    }
}

impl Terms {
    /// The claims that the row filters refer to.
    pub fn claims(&self) -> BTreeSet<String> {
        let filters = self.streams.values().filter_map(|it| it.rows.as_ref());
        filters.flat_map(RowFilter::claims).collect()
    }
}

impl<'de> Deserialize<'de> for RowFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
