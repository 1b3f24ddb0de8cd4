//! The ontology.

/// A closed vocabulary of types.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ontology {}
