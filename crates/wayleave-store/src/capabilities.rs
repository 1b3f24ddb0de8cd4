//! Differences from the common contract that a store cannot hide.

use wayleave_model::mapping::SourceKind;

/// The differences that a store declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The kind of store.
    pub kind: SourceKind,
    /// The differences, for people and agents; sorted by topic.
    pub differences: &'static [Difference],
}

impl Capabilities {
    /// The note that the store declares on a topic.
    pub fn difference(&self, topic: Topic) -> Option<&'static str> {
        self.differences
            .iter()
            .find(|it| it.topic == topic)
            .map(|it| it.note)
    }
}

/// One difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// The subject of the difference.
    pub topic: Topic,
    /// The difference, in one sentence.
    pub note: &'static str,
}

/// The subject of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Topic {
    /// Binary columns shown as text.
    Binary,
    /// Booleans, where a store has no type for them.
    Booleans,
    /// Dates, where a store has no type for them.
    Dates,
    /// Datetimes, where a store has no type for them or cannot hold all of them.
    Datetimes,
    /// Decimals, where a store holds them inexactly or only up to some number of digits.
    Decimals,
    /// Sums and means of floating-point numbers.
    FloatSums,
    /// Integers beyond the range of a store.
    Integers,
    /// Orders that no index provides, so that they cost a sort.
    Sorting,
    /// Text that a store cannot hold.
    Text,
    /// The time zone database that applies.
    TimeZones,
}

impl Topic {
    /// Its name in documents and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Booleans => "booleans",
            Self::Dates => "dates",
            Self::Datetimes => "datetimes",
            Self::Decimals => "decimals",
            Self::FloatSums => "float_sums",
            Self::Integers => "integers",
            Self::Sorting => "sorting",
            Self::Text => "text",
            Self::TimeZones => "time_zones",
        }
    }
}
