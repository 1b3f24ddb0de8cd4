//! The offline part of `check`: one document with its rules and the ontology, then conflicts
//! between documents. For the live source see [`crate::drift`].

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::mapping::Mapping;
use crate::ontology::Ontology;
use crate::parse;
use crate::problem::Problem;

/// Parses a mapping and checks it against the ontology, if there is one. Reports every problem: the
/// ontology is checked even if the mapping breaks other rules.
pub fn check(bytes: &[u8], ontology: Option<&Ontology>) -> Result<Mapping, Vec<Problem>> {
    match ontology {
        None => parse::parse(bytes),
        Some(ontology) => parse::parse_with(bytes, |mapping| ontology.enforce(mapping)),
    }
}

/// A name that several documents claim but that must be unique in a deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NameConflict {
    /// What the name identifies.
    pub what: UniqueNameKind,
    /// The name.
    pub name: String,
    /// Every document that claims it, at least two.
    pub documents: Vec<String>,
}

/// Kinds of names that must be unique in a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UniqueNameKind {
    /// A dataset's name.
    Dataset,
    /// A connection's id.
    Connection,
    /// The name of a capability's tool.
    Tool,
}

impl fmt::Display for NameConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            UniqueNameKind::Dataset => "dataset",
            UniqueNameKind::Connection => "connection",
            UniqueNameKind::Tool => "tool",
        };
        let documents: Vec<_> = self
            .documents
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        write!(
            f,
            "{what} `{}` is in {}",
            self.name,
            documents.join(" and in ")
        )
    }
}

/// Finds the names that more than one document claims. Each document is paired with a name for
/// messages, such as its path.
pub fn name_conflicts<'a>(
    documents: impl IntoIterator<Item = (&'a str, &'a Mapping)>,
) -> Vec<NameConflict> {
    let mut claims: BTreeMap<(UniqueNameKind, String), Vec<&str>> = BTreeMap::new();
    for (document, mapping) in documents {
        let dataset =
            std::iter::once((UniqueNameKind::Dataset, mapping.dataset.name.value.clone()));
        let connections = mapping
            .connections
            .iter()
            .map(|entry| (UniqueNameKind::Connection, entry.id.value.clone()));
        let tools = mapping
            .capabilities
            .iter()
            .map(|entry| (UniqueNameKind::Tool, entry.tool_name(&mapping.dataset)));
        for claim in dataset.chain(connections).chain(tools) {
            claims.entry(claim).or_default().push(document);
        }
    }
    claims
        .into_iter()
        .filter(|(_, documents)| documents.len() > 1)
        .map(|((what, name), documents)| NameConflict {
            what,
            name,
            documents: documents.into_iter().map(str::to_owned).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::EXAMPLE;

    #[test]
    fn a_name_two_documents_claim_is_told_with_both() {
        let one = parse::parse(EXAMPLE.as_bytes()).unwrap();
        let mut two = one.clone();
        two.dataset.name = "crm-hire".into();
        two.connections.truncate(1);
        two.capabilities.truncate(1);
        two.capabilities[0].name = "new".into();
        let mut one = one;
        one.capabilities[0].name = "hire_new".into();
        let told: Vec<_> = name_conflicts([("a.toml", &one), ("b.toml", &two)])
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            told,
            [
                "connection `crm-eu` is in `a.toml` and in `b.toml`",
                "tool `crm_hire_new` is in `a.toml` and in `b.toml`",
            ]
        );
        assert_eq!(name_conflicts([("a.toml", &one)]), []);
    }
}
