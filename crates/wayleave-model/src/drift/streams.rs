//! Which streams a source no longer fits.

use std::collections::BTreeMap;

use crate::mapping::Mapping;
use crate::problem::{Problem, Severity};

/// The streams of a mapping that cannot be served with these differences of its source, each with
/// the differences that forbid it. One that names no stream, such as a source of another kind, forbids
/// all of them. Warnings forbid nothing.
pub fn broken_streams(mapping: &Mapping, problems: &[Problem]) -> BTreeMap<String, Vec<Problem>> {
    let mut broken: BTreeMap<String, Vec<Problem>> = BTreeMap::new();
    for problem in problems {
        if problem.code.severity() == Severity::Warning {
            continue;
        }
        let named = problem
            .path
            .strip_prefix("streams.")
            .and_then(|rest| rest.split('.').next());
        for stream in &mapping.streams {
            if named.is_none_or(|name| *name == *stream.name.value) {
                let found = broken.entry(stream.name.value.clone()).or_default();
                found.push(problem.clone());
            }
        }
    }
    broken
}
