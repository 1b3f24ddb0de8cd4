//! Fixtures of the unit tests.

use crate::{Spec, Watermark};

/// The spec of an index over these fields, with an arbitrary digest.
pub(crate) fn spec(fields: &[&str]) -> Spec {
    Spec {
        digest: "ab".repeat(32),
        fields: fields.iter().map(ToString::to_string).collect(),
        analyzer: crate::Analyzer::English,
    }
}

/// The watermark of an index whose age does not matter.
pub(crate) const fn watermark() -> Watermark {
    Watermark {
        as_of: 0,
        bookmark: None,
    }
}
