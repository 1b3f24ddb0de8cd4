//! What a grant allows, in the words a human agreed to.
//!
//! Terms name every stream and every field they allow. A mapping that is ratified later may take
//! some of them away; what it adds is not in the terms, so nothing is ever allowed that nobody
//! looked at.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value as Json};

use crate::digest::Digest;

/// What may be read of one connection of one dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct StreamTerms {
    /// The fields that may be seen.
    pub fields: BTreeSet<String>,
    /// The relations that may be followed, where what they join is seen too. Named, because one
    /// may join by a column that is no field.
    pub relations: BTreeSet<String>,
    /// Only rows for which this holds.
    pub rows: Option<RowFilter>,
}

/// A row filter as a human wrote it: the JSON text of an object, in the language callers filter
/// with. An operand may be `{"claim": "name"}`, which stands for a claim of whoever asks.
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

/// A text that is no row filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a row filter is a JSON object")]
pub struct NotARowFilter;

impl RowFilter {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The claims it asks for.
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
    /// The claims that the row filters ask for.
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
