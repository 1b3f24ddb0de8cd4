//! `check`, offline: the document, its rules and the ontology. For the live source see
//! [`crate::drift`].

use crate::mapping::Mapping;
use crate::ontology::Ontology;
use crate::parse;
use crate::problem::Problem;

/// Reads a mapping and holds it to the ontology, if there is one. Every problem is reported:
/// the ontology is asked even about a mapping that breaks other rules.
pub fn check(bytes: &[u8], ontology: Option<&Ontology>) -> Result<Mapping, Vec<Problem>> {
    match ontology {
        None => parse::parse(bytes),
        Some(ontology) => parse::parse_with(bytes, |mapping| ontology.enforce(mapping)),
    }
}
