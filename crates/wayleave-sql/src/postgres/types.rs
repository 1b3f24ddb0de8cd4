//! PostgreSQL's types: what a statement must know about a column, and its datatype in a mapping.

use wayleave_model::mapping::{Datatype, SourceKind};

use crate::compile::NativeKind;

/// The type of a column, as far as it matters to a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `text` and `varchar`.
    Text(Order),
    Uuid,
    /// Any other type; its text form is served.
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

/// The collation that compares a text column by code point. Statements name it, so that the
/// column's own collation never decides; where the two are the same, an index can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// `"C"`, for every column that uses neither of the others.
    C,
    /// `"POSIX"`.
    Posix,
    /// The database's default collation, where it sorts by code point.
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
    /// The kind of a type by its name in `pg_type`, domains resolved. `collation` is the one that
    /// sorts the column by code point, if there is one.
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

    /// The datatype that the column is read as. A type not named here is served in its text form.
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

/// The length of `varchar(n)` and `char(n)`; the type modifier stores it plus four.
pub(super) fn max_length(name: &str, modifier: i32) -> Option<u32> {
    let bounded = matches!(name, "varchar" | "bpchar");
    u32::try_from(modifier.checked_sub(4)?)
        .ok()
        .filter(|it| bounded && *it > 0)
}
