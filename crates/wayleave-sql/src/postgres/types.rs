//! The types of PostgreSQL: what a statement must know of a column, and what it means to a mapping.

use wayleave_model::mapping::{Datatype, SourceKind};

use crate::compile::NativeKind;

/// What PostgreSQL says a column holds, as far as it matters to a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `text` and `varchar`.
    Text(Order),
    Uuid,
    /// Anything whose text form is served.
    Other,
    /// `int2`, `int4`, `int8`.
    Integer,
    Oid,
    Numeric,
    Float,
    /// `float4`.
    Single,
    Boolean,
    Date,
    Timestamp,
    TimestampTz,
    Json,
    Array,
}

/// The collation by which a column of text is compared by code point. Statements name it, so that
/// the column's own never decides; where it is that one, an index serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// `"C"`, for every column that has neither of the others.
    C,
    /// `"POSIX"`.
    Posix,
    /// That of the database, where it is the order of code points.
    Database,
}

impl Order {
    pub(super) const fn clause(self) -> &'static str {
        match self {
            Self::C => " COLLATE \"C\"",
            Self::Posix => " COLLATE \"POSIX\"",
            Self::Database => " COLLATE \"default\"",
        }
    }
}

impl NativeKind for Kind {
    const STORE: SourceKind = SourceKind::Postgres;
}

impl Kind {
    /// The kind of a type by its name in `pg_type`, domains resolved. The collation is that by which
    /// the column sorts as code points do, if there is one.
    pub(super) fn from_type(name: &str, collation: &str) -> Self {
        match name {
            "text" | "varchar" => Self::Text(match collation {
                "default" => Order::Database,
                "POSIX" => Order::Posix,
                _ => Order::C,
            }),
            "uuid" => Self::Uuid,
            "int2" | "int4" | "int8" => Self::Integer,
            "oid" => Self::Oid,
            "numeric" => Self::Numeric,
            "float4" => Self::Single,
            "float8" => Self::Float,
            "bool" => Self::Boolean,
            "date" => Self::Date,
            "timestamp" => Self::Timestamp,
            "timestamptz" => Self::TimestampTz,
            "json" | "jsonb" => Self::Json,
            _ => Self::Other,
        }
    }

    /// The datatype it is read as. What is not named has a text form, and that is served.
    pub(super) const fn datatype(self) -> Datatype {
        match self {
            Self::Integer | Self::Oid => Datatype::Integer,
            Self::Numeric => Datatype::Decimal,
            Self::Single | Self::Float => Datatype::Number,
            Self::Boolean => Datatype::Boolean,
            Self::Date => Datatype::Date,
            Self::Timestamp | Self::TimestampTz => Datatype::Datetime,
            Self::Json => Datatype::Json,
            Self::Text(_) | Self::Uuid | Self::Array | Self::Other => Datatype::String,
        }
    }
}

/// The length of `varchar(n)` and `char(n)`, which the modifier holds with four added.
pub(super) fn max_length(name: &str, modifier: i32) -> Option<u32> {
    let bounded = matches!(name, "varchar" | "bpchar");
    u32::try_from(modifier.checked_sub(4)?)
        .ok()
        .filter(|it| bounded && *it > 0)
}
