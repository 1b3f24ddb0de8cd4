//! The closed vocabularies of a mapping: kinds of store, datatypes, aggregates, search analyzers,
//! actions.
//!
//! Each defines its words on the wire, and knows nothing about documents.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Implements `ALL`, `as_str`, `from_word` and `Display` for a closed vocabulary.
macro_rules! vocabulary {
    ($name:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $name {
            /// Every value, in the order documents list them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word for it, in documents and on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// The value with this word.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// The kind of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// A SQLite database file.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL or MariaDB.
    Mysql,
    /// A folder of CSV, JSONL or Parquet files.
    Files,
    /// RDF files or a SPARQL endpoint.
    Rdf,
}

vocabulary!(SourceKind {
    Sqlite => "sqlite",
    Postgres => "postgres",
    Mysql => "mysql",
    Files => "files",
    Rdf => "rdf",
});

impl SourceKind {
    /// Whether stores of this kind hold tables in named schemas.
    pub const fn has_schemas(self) -> bool {
        matches!(self, Self::Postgres | Self::Mysql)
    }

    /// Whether stores of this kind enforce the declared type of a column.
    pub const fn enforces_types(self) -> bool {
        matches!(self, Self::Postgres | Self::Mysql)
    }

    /// Whether stores of this kind have a type of booleans that holds nothing else.
    pub const fn has_booleans(self) -> bool {
        matches!(self, Self::Postgres)
    }

    /// Whether stores of this kind can keep columns of a table unique.
    pub const fn keeps_unique(self) -> bool {
        matches!(self, Self::Sqlite | Self::Postgres | Self::Mysql)
    }
}

/// The datatype of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Datatype {
    /// Text.
    String,
    /// A whole number, exact at any size.
    Integer,
    /// An exact decimal.
    Decimal,
    /// A floating-point number.
    Number,
    /// True or false.
    Boolean,
    /// A calendar date.
    Date,
    /// An instant.
    Datetime,
    /// Any JSON.
    Json,
    /// A reference.
    Iri,
}

vocabulary!(Datatype {
    String => "string",
    Integer => "integer",
    Decimal => "decimal",
    Number => "number",
    Boolean => "boolean",
    Date => "date",
    Datetime => "datetime",
    Json => "json",
    Iri => "iri",
});

impl Datatype {
    /// Whether its values are numbers.
    pub const fn is_numeric(self) -> bool {
        matches!(self, Self::Integer | Self::Decimal | Self::Number)
    }

    /// Whether its values are text, so that lengths and patterns apply.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::String | Self::Iri)
    }

    /// The datatype in which values of the two are compared; `None` if they are never equal.
    pub fn common_with(self, other: Self) -> Option<Self> {
        if self == other {
            Some(self)
        } else if self.is_text() && other.is_text() {
            Some(Self::String)
        } else if !(self.is_numeric() && other.is_numeric()) {
            None
        } else if self == Self::Number || other == Self::Number {
            Some(Self::Number)
        } else {
            Some(Self::Decimal)
        }
    }

    /// Whether it can identify a record: it has exact equality and one spelling in a URI.
    pub const fn can_be_key(self) -> bool {
        !matches!(self, Self::Number | Self::Json)
    }

    /// Whether a closed list of its values can be written in a mapping.
    pub const fn can_be_listed(self) -> bool {
        matches!(
            self,
            Self::String | Self::Iri | Self::Integer | Self::Decimal
        )
    }

    /// The aggregates that a field of this datatype can offer, in canonical order.
    pub const fn aggregates(self) -> &'static [AggregateOp] {
        use AggregateOp::{Avg, Count, CountDistinct, GroupBy, GroupByTime, Max, Min, Sum};
        match self {
            Self::String | Self::Iri => &[Count, CountDistinct, Min, Max, GroupBy],
            Self::Boolean => &[Count, CountDistinct, GroupBy],
            Self::Integer | Self::Decimal => &[Count, CountDistinct, Sum, Avg, Min, Max, GroupBy],
            // Equality of floating-point numbers differs between stores.
            Self::Number => &[Count, Sum, Avg, Min, Max],
            Self::Date | Self::Datetime => &[Count, CountDistinct, Min, Max, GroupBy, GroupByTime],
            Self::Json => &[],
        }
    }
}

/// An operation of `aggregate` on a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AggregateOp {
    /// Number of records with a value.
    Count,
    /// Number of distinct values.
    CountDistinct,
    /// The sum.
    Sum,
    /// The mean.
    Avg,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    /// One group per value.
    GroupBy,
    /// One group per calendar unit.
    GroupByTime,
}

vocabulary!(AggregateOp {
    Count => "count",
    CountDistinct => "count_distinct",
    Sum => "sum",
    Avg => "avg",
    Min => "min",
    Max => "max",
    GroupBy => "group_by",
    GroupByTime => "group_by_time",
});

/// The analyzer that normalizes the words of a stream's searched fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchAnalyzer {
    /// Reduces words to their English stem.
    #[default]
    English,
    /// Reduces words to their German stem.
    German,
    /// Reduces words to their French stem.
    French,
    /// Reduces words to their Spanish stem.
    Spanish,
    /// Keeps words as written, except for case and accents.
    None,
}

vocabulary!(SearchAnalyzer {
    English => "english",
    German => "german",
    French => "french",
    Spanish => "spanish",
    None => "none",
});

/// What a capability does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Creates one record.
    Create,
    /// Changes fields of one record.
    Update,
    /// Removes one record.
    Delete,
}

vocabulary!(Action {
    Create => "create",
    Update => "update",
    Delete => "delete",
});
