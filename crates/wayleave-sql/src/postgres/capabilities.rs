//! Where PostgreSQL differs from the common contract, in words for people and agents.
//!
//! The stores reference page says the same, and a test checks that it does.

use wayleave_model::mapping::SourceKind;
use wayleave_store::{Capabilities, Difference, Topic};

/// The differences.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    kind: SourceKind::Postgres,
    differences: &[
        Difference {
            topic: Topic::Binary,
            note: "bytes are shown as `\\x` and hexadecimal digits",
        },
        Difference {
            topic: Topic::Datetimes,
            note: "timestamps without a time zone are in UTC; infinity is an error",
        },
        Difference {
            topic: Topic::Decimals,
            note: "NaN and infinity are errors",
        },
        Difference {
            topic: Topic::FloatSums,
            note: "sums and means of floating-point numbers depend on the order of addition",
        },
        Difference {
            topic: Topic::Sorting,
            note: "an index sorts text only where its collation is C and the database is UTF8",
        },
        Difference {
            topic: Topic::Text,
            note: "text holds no NUL character; in a database that is not UTF8, groups and extremes \
                   of text are in the order of its encoding",
        },
        Difference {
            topic: Topic::TimeZones,
            note: "periods are computed with the server's own time zone database",
        },
    ],
};
