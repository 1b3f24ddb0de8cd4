//! Where MySQL and MariaDB differ from the common contract, in words for people and agents.
//!
//! The stores reference page says the same, and a test checks that it does.

use wayleave_model::mapping::SourceKind;
use wayleave_store::{Capabilities, Difference, Topic};

/// The differences.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    kind: SourceKind::Mysql,
    differences: &[
        Difference {
            topic: Topic::Binary,
            note: "bytes are shown as `\\x` and hexadecimal digits",
        },
        Difference {
            topic: Topic::Booleans,
            note: "0 is false; every other number is true",
        },
        Difference {
            topic: Topic::Datetimes,
            note: "datetimes are in UTC; days and months of zero are an error",
        },
        Difference {
            topic: Topic::FloatSums,
            note: "sums and means of floating-point numbers depend on the order of addition",
        },
        Difference {
            topic: Topic::Sorting,
            note: "an index sorts text only where its collation is by code point without \
                   padding; texts are sorted by their first 16,384 bytes",
        },
    ],
};
