//! What the unit tests build their indexes with.

use crate::{Reach, Spec};

/// An index of these fields, of some mapping.
pub(crate) fn spec(fields: &[&str]) -> Spec {
    Spec {
        digest: "ab".repeat(32),
        fields: fields.iter().map(ToString::to_string).collect(),
    }
}

/// The reach of an index that is never asked how old it is.
pub(crate) const fn reach() -> Reach {
    Reach {
        as_of: 0,
        bookmark: None,
    }
}
