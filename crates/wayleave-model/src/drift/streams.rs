//! Finds the streams that no longer fit their source.

use std::collections::BTreeMap;

use crate::mapping::Mapping;
use crate::problem::{Problem, Severity};

/// Returns the streams that cannot be served because of these differences, each with the
/// differences that break it. A difference that names no stream, such as a source of another kind,
/// breaks all of them. Warnings break none.
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
