//! The terms of a grant, as a human agreed to them.
//!
//! Terms name every stream and every field they allow. A mapping ratified later may remove some of
//! them; what it adds is not in the terms, so nothing is allowed that no human has reviewed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value as Json};

use crate::digest::Digest;
use crate::mask::Mask;

/// What may be read of one connection of one dataset. Terms with an unknown part are rejected: the
/// part may narrow them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The dataset.
    pub dataset: String,
    /// The connection.
    pub connection: String,
    /// Digest of the mapping that these terms were checked against.
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
    /// Predicate that restricts the rows; `None` allows all.
    pub rows: Option<RowFilter>,
    /// Masks, by field name. Ledger entries from before masks existed have none. Terms that name an
    /// unknown mask are rejected as a whole: its meaning must not be guessed.
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
/// # Ok::<(), wayleave_model::grant::ParseRowFilterError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RowFilter(String);

/// The member of a filter that lists alternatives. All other members must hold.
const ANY: &str = "any";

/// A text that is not a row filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a row filter is a JSON object")]
pub struct ParseRowFilterError;

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

    /// The conjunction of both filters, with both texts as written. `None` if the language cannot
    /// express it: the filters have a member in common, and this one already has an `any`.
    ///
    /// ```
    /// use wayleave_model::grant::RowFilter;
    ///
    /// let eu: RowFilter = r#"{"region": "eu"}"#.parse()?;
    /// let open: RowFilter = r#"{"status": "open"}"#.parse()?;
    /// assert_eq!(eu.and(&open).unwrap().as_str(), r#"{"region": "eu", "status": "open"}"#);
    /// # Ok::<(), wayleave_model::grant::ParseRowFilterError>(())
    /// ```
    pub fn and(&self, other: &Self) -> Option<Self> {
        let (mine, theirs) = (self.to_map()?, other.to_map()?);
        if theirs.is_empty() || self == other {
            return Some(self.clone());
        }
        if mine.is_empty() {
            return Some(other.clone());
        }
        let open = self.0.strip_suffix('}')?.trim_end();
        let text = if theirs.keys().any(|key| mine.contains_key(key)) {
            if mine.contains_key(ANY) {
                return None;
            }
            format!("{open}, \"{ANY}\": [{}]}}", other.0)
        } else {
            let members = other.0.strip_prefix('{')?.trim_start();
            format!("{open}, {members}")
        };
        text.parse().ok()
    }

    /// Whether the other filter admits every row that this one admits, judged by structure alone:
    /// this filter has every member of the other, unchanged.
    fn is_within(&self, wider: &Self) -> bool {
        let (Some(mine), Some(theirs)) = (self.to_map(), wider.to_map()) else {
            return false;
        };
        let mut members = theirs.iter();
        members.all(|(name, wanted)| mine.get(name) == Some(wanted))
    }

    /// Parses the filter as a JSON object.
    pub fn to_map(&self) -> Option<Map<String, Json>> {
        serde_json::from_str(&self.0).ok()
    }
}

impl std::str::FromStr for RowFilter {
    type Err = ParseRowFilterError;

    fn from_str(text: &str) -> Result<Self, ParseRowFilterError> {
        let filter = Self(text.trim().to_owned());
        filter.to_map().ok_or(ParseRowFilterError)?;
        Ok(filter)
    }
}

impl Terms {
    /// The claims that the row filters refer to.
    pub fn claims(&self) -> BTreeSet<String> {
        let filters = self.streams.values().filter_map(|it| it.rows.as_ref());
        filters.flat_map(RowFilter::claims).collect()
    }

    /// Whether these terms allow nothing beyond the other terms. Both must name the same
    /// connection, and be checked against the same mapping.
    pub fn is_within(&self, wider: &Self) -> bool {
        let Self {
            dataset,
            connection,
            mapping,
            streams,
            capabilities,
        } = self;
        let mut streams = streams.iter();
        *dataset == wider.dataset
            && *connection == wider.connection
            && *mapping == wider.mapping
            && capabilities.is_subset(&wider.capabilities)
            && streams.all(|(name, terms)| {
                let wider = wider.streams.get(name);
                wider.is_some_and(|wider| terms.is_within(wider))
            })
    }
}

impl StreamTerms {
    /// Whether these terms allow nothing beyond the other terms.
    fn is_within(&self, wider: &Self) -> bool {
        // Destructured exhaustively: a new field must be compared here.
        let Self {
            fields,
            relations,
            rows,
            masks,
        } = self;
        let is_as_masked = |field: &String| match (masks.get(field), wider.masks.get(field)) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(mask), Some(wider)) => mask.is_within(*wider),
        };
        let rows = match (rows, &wider.rows) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(rows), Some(wider)) => rows.is_within(wider),
        };
        rows && fields.is_subset(&wider.fields)
            && relations.is_subset(&wider.relations)
            && fields.iter().all(is_as_masked)
    }
}

impl<'de> Deserialize<'de> for RowFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(text: &str) -> RowFilter {
        text.parse().unwrap()
    }

    #[test]
    fn two_filters_together_are_within_each_of_them() {
        for (one, two, both) in [
            (r#"{"a": 1}"#, r#"{"b": 2}"#, r#"{"a": 1, "b": 2}"#),
            (
                r#"{"a": {"gte": 1}}"#,
                r#"{"a": {"lte": 3}}"#,
                r#"{"a": {"gte": 1}, "any": [{"a": {"lte": 3}}]}"#,
            ),
            (
                r#"{"any": [{"a": 1}]}"#,
                r#"{"b": 2}"#,
                r#"{"any": [{"a": 1}], "b": 2}"#,
            ),
            (
                r#"{ "a": 0.30000000000000004 }"#,
                r#"{ "b": 2 }"#,
                r#"{ "a": 0.30000000000000004, "b": 2 }"#,
            ),
            ("{}", r#"{"b": 2}"#, r#"{"b": 2}"#),
            (r#"{"a": 1}"#, "{}", r#"{"a": 1}"#),
        ] {
            let (one, two) = (filter(one), filter(two));
            let together = one.and(&two).unwrap();
            assert_eq!(together.as_str(), both);
            assert!(together.is_within(&one), "{both}");
        }
        let choice = filter(r#"{"any": [{"a": 1}]}"#);
        assert_eq!(choice.and(&filter(r#"{"any": [{"b": 1}]}"#)), None);
    }

    #[test]
    fn a_filter_with_less_or_other_members_is_not_within() {
        let wide = filter(r#"{"a": 1, "b": {"claim": "b"}}"#);
        for other in [
            r#"{"a": 1}"#,
            r#"{"a": 2, "b": {"claim": "b"}}"#,
            r#"{"a": 1, "b": 1}"#,
            "{}",
        ] {
            assert!(!filter(other).is_within(&wide), "{other}");
        }
    }

    #[test]
    fn terms_are_within_others_only_if_every_part_is() {
        let stream = |fields: &[&str], rows: Option<&str>| StreamTerms {
            fields: fields.iter().map(|it| (*it).to_owned()).collect(),
            relations: ["r".to_owned()].into(),
            rows: rows.map(filter),
            masks: [("name".to_owned(), Mask::Last4)].into(),
        };
        let terms = |people: StreamTerms| Terms {
            dataset: "crm".into(),
            connection: "eu".into(),
            mapping: Digest::from_bytes(b"one"),
            streams: [("people".to_owned(), people)].into(),
            capabilities: ["hire".to_owned()].into(),
        };
        let wide = terms(stream(&["id", "name"], Some(r#"{"a": 1}"#)));
        assert!(wide.is_within(&wide));
        let narrow = terms(stream(&["id"], Some(r#"{"a": 1, "b": 2}"#)));
        assert!(narrow.is_within(&wide) && !wide.is_within(&narrow));
        let mut redacted = wide.clone();
        let people = redacted.streams.get_mut("people").unwrap();
        people.masks.insert("name".into(), Mask::Redact);
        assert!(redacted.is_within(&wide));
        let mut others = vec![
            terms(stream(&["id", "mail"], Some(r#"{"a": 1}"#))),
            terms(stream(&["id"], None)),
            terms(stream(&["id"], Some(r#"{"b": 2}"#))),
        ];
        for change in [
            |it: &mut Terms| it.dataset = "hr".into(),
            |it: &mut Terms| it.connection = "us".into(),
            |it: &mut Terms| it.mapping = Digest::from_bytes(b"two"),
            |it: &mut Terms| {
                it.capabilities.insert("fire".into());
            },
            |it: &mut Terms| {
                let people = it.streams["people"].clone();
                it.streams.insert("orgs".into(), people);
            },
            |it: &mut Terms| {
                let people = it.streams.get_mut("people").unwrap();
                people.relations.insert("s".into());
            },
            |it: &mut Terms| it.streams.get_mut("people").unwrap().masks.clear(),
            |it: &mut Terms| {
                let people = it.streams.get_mut("people").unwrap();
                people.masks.insert("name".into(), Mask::Year);
            },
        ] {
            let mut changed = wide.clone();
            change(&mut changed);
            others.push(changed);
        }
        for other in others {
            assert!(!other.is_within(&wide), "{other:?}");
        }
    }
}
