//! Resolves a narrowing of a grant to narrower terms, or reports everything that does not fit.

use std::collections::{BTreeMap, BTreeSet};

use wayleave_model::grant::{RowFilter, StreamTerms, Terms};
use wayleave_model::mapping::Mapping;

use super::SelectionError;
use super::grant_selection::{callable, fits, no_stream, unknown};

/// The parts of a grant that a person keeps.
#[derive(Debug, Clone, Default)]
pub struct GrantNarrowing {
    /// The streams to keep, each whole or limited to fields; empty keeps all streams whole. Key
    /// fields are always kept.
    pub streams: BTreeMap<String, Option<BTreeSet<String>>>,
    /// Row filters by stream, applied in addition to existing ones.
    pub rows: BTreeMap<String, RowFilter>,
    /// The capabilities to keep; `None` keeps those that can still be called.
    pub capabilities: Option<BTreeSet<String>>,
}

impl GrantNarrowing {
    /// Computes the narrower terms. Fails with everything that does not fit the grant or the
    /// mapping.
    pub fn terms(&self, wider: &Terms, mapping: &Mapping) -> Result<Terms, Vec<SelectionError>> {
        let mut unfit = Vec::new();
        let mut terms = wider.clone();
        if !self.streams.is_empty() {
            terms.streams = self.streams(wider, mapping, &mut unfit);
        }
        for (name, filter) in &self.rows {
            let added = match terms.streams.get_mut(name) {
                Some(stream) => restrict(name, stream, filter, mapping),
                None => Err(SelectionError::RowsOfNothing {
                    stream: name.clone(),
                }),
            };
            unfit.extend(added.err());
        }
        terms.capabilities = self.capabilities(&terms, mapping, &mut unfit);
        if unfit.is_empty() {
            Ok(terms)
        } else {
            Err(unfit)
        }
    }

    fn streams(
        &self,
        wider: &Terms,
        mapping: &Mapping,
        unfit: &mut Vec<SelectionError>,
    ) -> BTreeMap<String, StreamTerms> {
        let mut streams = BTreeMap::new();
        for (name, wanted) in &self.streams {
            let Some(granted) = wider.streams.get(name) else {
                let known = wider.streams.keys().map(String::as_str);
                unfit.push(unknown("stream", "the grant".to_owned(), name, known));
                continue;
            };
            let mut kept = granted.clone();
            if let Some(wanted) = wanted {
                let known = granted.fields.iter().map(String::as_str);
                for field in wanted.iter().filter(|it| !granted.fields.contains(*it)) {
                    let place = format!("the grant of stream `{name}`");
                    unfit.push(unknown("field", place, field, known.clone()));
                }
                let stream = mapping.stream(name);
                // The key of a stream that is gone is unknown, so its fields stay as they are.
                if stream.is_none() && !granted.fields.is_subset(wanted) {
                    unfit.push(no_stream(mapping, name));
                    continue;
                }
                let is_key = |field: &str| {
                    stream.is_some_and(|stream| stream.key.iter().any(|it| it == field))
                };
                kept.fields.retain(|it| wanted.contains(it) || is_key(it));
                let fields = &kept.fields;
                kept.masks.retain(|it, _| fields.contains(it));
            }
            streams.insert(name.clone(), kept);
        }
        streams
    }

    fn capabilities(
        &self,
        terms: &Terms,
        mapping: &Mapping,
        unfit: &mut Vec<SelectionError>,
    ) -> BTreeSet<String> {
        let fits = |name: &str| match mapping.capability(name) {
            Some(it) => callable(mapping, it, Some(&terms.connection), &terms.streams),
            // No longer in the mapping, so it cannot be called.
            None => Ok(()),
        };
        let granted = terms.capabilities.iter();
        let Some(wanted) = &self.capabilities else {
            return granted.filter(|it| fits(it).is_ok()).cloned().collect();
        };
        for name in wanted {
            if !terms.capabilities.contains(name) {
                let known = terms.capabilities.iter().map(String::as_str);
                unfit.push(unknown("capability", "the grant".to_owned(), name, known));
            } else if let Err(reason) = fits(name) {
                let capability = name.clone();
                unfit.push(SelectionError::Capability { capability, reason });
            }
        }
        wanted.clone()
    }
}

/// Adds a row filter to a stream's existing one.
fn restrict(
    name: &str,
    terms: &mut StreamTerms,
    filter: &RowFilter,
    mapping: &Mapping,
) -> Result<(), SelectionError> {
    let wrong = |reason: String| SelectionError::Rows {
        stream: name.to_owned(),
        reason,
    };
    let stream = mapping.stream(name);
    let stream = stream.ok_or_else(|| wrong("the dataset has no such stream now".to_owned()))?;
    let both = match &terms.rows {
        None => filter.clone(),
        Some(rows) => rows.and(filter).ok_or_else(|| {
            wrong("the filter that is there has an `any` already; make another grant".to_owned())
        })?,
    };
    fits(stream, &both).map_err(wrong)?;
    terms.rows = Some(both);
    Ok(())
}

#[cfg(test)]
mod tests {
    use wayleave_model::digest::Digest;
    use wayleave_model::mask::Mask;

    use super::*;

    fn mapping() -> Mapping {
        let text = r#"
            [dataset]
            name = "crm"
            kind = "sqlite"
            [[connections]]
            id = "crm"
            source = "crm"
            [streams.people]
            table = "people"
            type = "Person"
            key = ["id"]
            [streams.people.fields]
            id = { datatype = "integer" }
            name = { datatype = "string" }
            level = { datatype = "integer" }
            [streams.orgs]
            table = "orgs"
            type = "Org"
            key = ["id"]
            [streams.orgs.fields]
            id = { datatype = "integer" }
        "#;
        let checked = wayleave_model::check::check(text.as_bytes(), None);
        checked.unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    fn wide() -> Terms {
        let stream = |fields: &[&str], rows: Option<&str>| StreamTerms {
            fields: fields.iter().map(|it| (*it).to_owned()).collect(),
            relations: BTreeSet::new(),
            rows: rows.map(|it| it.parse().unwrap()),
            masks: BTreeMap::from([("name".to_owned(), Mask::Last4)]),
        };
        Terms {
            dataset: "crm".into(),
            connection: "crm".into(),
            mapping: Digest::from_bytes(b"one"),
            streams: BTreeMap::from([
                (
                    "people".to_owned(),
                    stream(&["id", "name", "level"], Some(r#"{"level": {"gte": 2}}"#)),
                ),
                ("orgs".to_owned(), stream(&["id"], None)),
            ]),
            capabilities: BTreeSet::new(),
        }
    }

    #[test]
    fn what_stays_is_within_what_was_granted() {
        let narrowing = GrantNarrowing {
            streams: BTreeMap::from([(
                "people".to_owned(),
                Some(BTreeSet::from(["name".to_owned()])),
            )]),
            rows: BTreeMap::from([(
                "people".to_owned(),
                r#"{"level": {"lte": 5}}"#.parse().unwrap(),
            )]),
            capabilities: None,
        };
        let terms = narrowing.terms(&wide(), &mapping()).unwrap();
        assert!(terms.is_within(&wide()) && terms != wide());
        let people = &terms.streams["people"];
        assert_eq!(
            people.fields,
            BTreeSet::from(["id".to_owned(), "name".to_owned()])
        );
        let rows = people.rows.as_ref().unwrap().as_str();
        assert_eq!(
            rows,
            r#"{"level": {"gte": 2}, "any": [{"level": {"lte": 5}}]}"#
        );
        // Masked fields stay masked.
        assert_eq!(people.masks.get("name"), Some(&Mask::Last4));
        assert!(!terms.streams.contains_key("orgs"));
        assert_eq!(
            GrantNarrowing::default()
                .terms(&wide(), &mapping())
                .unwrap(),
            wide()
        );
    }

    #[test]
    fn everything_that_is_not_in_the_grant_is_told_at_once() {
        let narrowing = GrantNarrowing {
            streams: BTreeMap::from([
                (
                    "people".to_owned(),
                    Some(BTreeSet::from(["nam".to_owned()])),
                ),
                ("invoices".to_owned(), None),
            ]),
            rows: BTreeMap::from([
                ("people".to_owned(), r#"{"lvl": 1}"#.parse().unwrap()),
                ("orgs".to_owned(), r#"{"id": 1}"#.parse().unwrap()),
            ]),
            capabilities: Some(BTreeSet::from(["hire".to_owned()])),
        };
        let unfit = narrowing.terms(&wide(), &mapping()).unwrap_err();
        let told: Vec<String> = unfit.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 5, "{told:#?}");
        assert_eq!(unfit[1].hint().as_deref(), Some("did you mean `name`?"));
    }

    #[test]
    fn fields_of_a_stream_that_is_gone_are_not_narrowed_because_its_key_is_unknown() {
        let mut wide = wide();
        let people = wide.streams.remove("people").unwrap();
        wide.streams.insert("staff".to_owned(), people);
        let narrowing = GrantNarrowing {
            streams: BTreeMap::from([(
                "staff".to_owned(),
                Some(BTreeSet::from(["name".to_owned()])),
            )]),
            ..GrantNarrowing::default()
        };
        let unfit = narrowing.terms(&wide, &mapping()).unwrap_err();
        let told: Vec<String> = unfit.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["dataset `crm` has no stream `staff`"]);
        // It can be kept as it is, field by field.
        let fields = wide.streams["staff"].fields.iter().cloned().collect();
        let whole = GrantNarrowing {
            streams: BTreeMap::from([("staff".to_owned(), Some(fields))]),
            ..GrantNarrowing::default()
        };
        let kept = whole.terms(&wide, &mapping()).unwrap();
        assert_eq!(kept.streams["staff"], wide.streams["staff"]);
    }
}
