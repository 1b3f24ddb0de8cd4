//! Reading a mapping.
use crate::mapping::Mapping;
use crate::problem::{Problem, ProblemCode};

/// Reads a mapping.
pub fn parse(_bytes: &[u8]) -> Result<Mapping, Vec<Problem>> {
    Err(vec![Problem::new(ProblemCode::Syntax, "not readable yet")])
}
