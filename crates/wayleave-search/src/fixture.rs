//! What the unit tests build their indexes with.

use crate::{Spec, Watermark};

/// An index of these fields, of some mapping.
pub(crate) fn spec(fields: &[&str]) -> Spec {
    Spec {
        digest: "ab".repeat(32),
        fields: fields.iter().map(ToString::to_string).collect(),
    }
}

/// The watermark of an index whose age does not matter.
pub(crate) const fn watermark() -> Watermark {
    Watermark {
        as_of: 0,
        bookmark: None,
    }
}
