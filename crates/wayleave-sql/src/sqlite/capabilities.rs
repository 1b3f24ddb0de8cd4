//! Where SQLite differs from the common contract, in words for people and agents.
//!
//! The stores reference page says the same, and a test checks that it does.

use wayleave_model::mapping::SourceKind;
use wayleave_store::{Capabilities, Difference, Topic};

/// The differences.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    kind: SourceKind::Sqlite,
    differences: &[
        Difference {
            topic: Topic::Binary,
            note: "bytes, and texts that are no UTF-8, are shown as `\\x` and hexadecimal digits; \
                   columns of text sort them by their bytes",
        },
        Difference {
            topic: Topic::Booleans,
            note: "0 and the words false and f are false; other numbers and true and t are true",
        },
        Difference {
            topic: Topic::Dates,
            note: "dates are texts written `YYYY-MM-DD`; any other value is an error",
        },
        Difference {
            topic: Topic::Datetimes,
            note: "datetimes are ISO 8601 texts, in UTC where they name no offset, or numbers of \
                   seconds since 1970, of the years 1 to 9999; digits below a microsecond are cut",
        },
        Difference {
            topic: Topic::Decimals,
            note: "decimals in columns of numeric type are exact to 15 significant digits; in \
                   text columns they are exact",
        },
        Difference {
            topic: Topic::FloatSums,
            note: "sums and means of floating-point numbers depend on the order of addition",
        },
        Difference {
            topic: Topic::Integers,
            note: "integers are within 64 bits",
        },
        Difference {
            topic: Topic::Sorting,
            note: "an index finds datetimes: as texts with a few days around them, as numbers or \
                   texts of one form alone; it does not sort booleans, decimals in text columns, \
                   bytes, or text where it folds case or the file is UTF-16",
        },
    ],
};
