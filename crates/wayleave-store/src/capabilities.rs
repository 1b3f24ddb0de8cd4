//! What a store cannot hide: where its answers differ from the one contract.

use wayleave_model::mapping::SourceKind;

/// What a store declares of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The kind of store.
    pub kind: SourceKind,
    /// Where it differs, for people and agents; sorted by topic.
    pub differences: &'static [Difference],
}

impl Capabilities {
    /// What the store declares on a topic.
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
    /// What it is about.
    pub topic: Topic,
    /// The difference, in one sentence.
    pub note: &'static str,
}

/// What a difference is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Topic {
    /// Binary columns shown as text.
    Binary,
    /// Booleans a store has no type for.
    Booleans,
    /// Dates a store has no type for.
    Dates,
    /// Datetimes a store has no type for, or cannot hold in full.
    Datetimes,
    /// Decimals a store holds inexactly, or up to some number of digits.
    Decimals,
    /// Sums and means of floating-point numbers.
    FloatSums,
    /// Integers beyond what a store holds.
    Integers,
    /// Order that no index can give, so that it costs a sort.
    Sorting,
    /// Text a store cannot hold.
    Text,
    /// Whose time zone database decides.
    TimeZones,
}

impl Topic {
    /// The word for it, in documents and on the wire.
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
