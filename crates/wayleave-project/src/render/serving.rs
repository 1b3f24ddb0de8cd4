//! What an operator must know of a server that starts.

use std::sync::Arc;

use crate::{
    Explanation, datasets::DatasetFault, suspension::Suspension, token_rules::UnknownGrant,
};

/// The warning that calls are served even if they are not recorded.
pub fn unrecorded_calls() -> &'static str {
    "warning: `audit.required` is false: calls are served even if they are not recorded"
}

/// Warnings of missing grants, suspended streams and datasets that are not served, line by line.
pub fn warnings(
    unknown: &[UnknownGrant],
    suspended: &[Suspension],
    faults: &[Arc<DatasetFault>],
) -> Vec<String> {
    let mut lines = Vec::new();
    for it in unknown {
        lines.push(format!("warning: {it}"));
        lines.push(format!("  hint: {}", it.hint()));
    }
    for it in suspended {
        lines.push(format!(
            "warning: stream `{}` of `{}` is suspended: {}",
            it.stream,
            it.connection_id,
            it.problems.join("; ")
        ));
    }
    for it in faults {
        lines.push(format!("warning: dataset `{}` is not served", it.dataset));
        let why = Explanation::from_error(&it.reason);
        let why = why.lines().into_iter();
        lines.extend(why.map(|(kind, text)| format!("  {kind}: {text}")));
    }
    lines
}
