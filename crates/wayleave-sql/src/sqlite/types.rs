//! The declared types of SQLite: the affinity of each, and the datatype that people mean by it.
//!
//! SQLite does not enforce declared types: any column may hold any value.

use wayleave_model::mapping::{Datatype, SourceKind};

use crate::compile::NativeKind;

/// The affinity of a column, which decides how SQLite converts the values stored in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Affinity {
    Text,
    /// Text, where every index that begins with the column ignores ASCII case.
    TextFolded,
    Integer,
    /// The rowid, and so never anything but an integer.
    RowNumber,
    Real,
    Numeric,
    Blob,
    /// The result of a formula: text, dates as text, exact numbers as integers or text, numbers as
    /// floats, booleans as 0 and 1, datetimes as microseconds since 1970.
    Computed,
}

impl NativeKind for Affinity {
    const STORE: SourceKind = SourceKind::Sqlite;

    fn reads_as(_: Datatype, _: Datatype) -> bool {
        // Declared types are not enforced, so each value is checked when it is decoded.
        true
    }

    /// True for datatypes that are compared as they are stored.
    fn keeps_apart(&self, datatype: Datatype) -> bool {
        match datatype {
            Datatype::String | Datatype::Iri => self.is_text(),
            Datatype::Integer | Datatype::Decimal => self.holds_numbers(),
            Datatype::Number => *self == Self::Real,
            Datatype::Date => true,
            Datatype::Boolean | Datatype::Datetime | Datatype::Json => false,
        }
    }
}

impl Affinity {
    /// Applies SQLite's own rules, in its order.
    pub(crate) fn from_declared(declared: &str) -> Self {
        let declared = declared.to_ascii_uppercase();
        let holds = |words: &[&str]| words.iter().any(|word| declared.contains(word));
        if holds(&["INT"]) {
            Self::Integer
        } else if holds(&["CHAR", "CLOB", "TEXT"]) {
            Self::Text
        } else if declared.is_empty() || holds(&["BLOB"]) {
            Self::Blob
        } else if holds(&["REAL", "FLOA", "DOUB"]) {
            Self::Real
        } else {
            Self::Numeric
        }
    }

    pub(crate) const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::TextFolded)
    }

    pub(crate) const fn holds_numbers(self) -> bool {
        matches!(
            self,
            Self::Integer | Self::RowNumber | Self::Real | Self::Numeric
        )
    }
}

/// The datatype of a declared type: by the names people use, then by SQLite's affinity.
///
/// A name that fits neither is text, because every value has a text form; SQLite would call it
/// numeric.
pub(super) fn datatype(declared: &str) -> Datatype {
    let name = type_name(declared).trim().to_ascii_uppercase();
    match name.as_str() {
        "BOOLEAN" | "BOOL" => Datatype::Boolean,
        "DATE" => Datatype::Date,
        "DECIMAL" | "NUMERIC" | "NUMBER" | "MONEY" => Datatype::Decimal,
        "JSON" | "JSONB" => Datatype::Json,
        _ if name.starts_with("DATETIME") || name.starts_with("TIMESTAMP") => Datatype::Datetime,
        _ => match Affinity::from_declared(&name) {
            Affinity::Integer | Affinity::RowNumber => Datatype::Integer,
            Affinity::Real => Datatype::Number,
            Affinity::Text
            | Affinity::TextFolded
            | Affinity::Blob
            | Affinity::Numeric
            | Affinity::Computed => Datatype::String,
        },
    }
}

/// The length in `VARCHAR(40)`; only of text.
pub(super) fn max_length(declared: &str) -> Option<u32> {
    let (name, rest) = declared.split_once('(')?;
    let (length, _) = rest.split_once(')').unwrap_or((rest, ""));
    let is_text = Affinity::from_declared(name) == Affinity::Text;
    length.trim().parse().ok().filter(|_| is_text)
}

/// The type without a length.
fn type_name(declared: &str) -> &str {
    declared.split_once('(').map_or(declared, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_mean_what_people_mean_by_them() {
        for (declared, expected) in [
            ("INTEGER", Datatype::Integer),
            ("UNSIGNED BIG INT", Datatype::Integer),
            ("NVARCHAR(160)", Datatype::String),
            ("BOOLEAN", Datatype::Boolean),
            ("DATETIME", Datatype::Datetime),
            ("timestamp with time zone", Datatype::Datetime),
            ("DATE", Datatype::Date),
            ("DECIMAL(10, 2)", Datatype::Decimal),
            ("NUMERIC(10,2)", Datatype::Decimal),
            ("DOUBLE PRECISION", Datatype::Number),
            ("FLOAT", Datatype::Number),
            ("JSON", Datatype::Json),
            ("BLOB", Datatype::String),
            ("UUID", Datatype::String),
            ("", Datatype::String),
        ] {
            assert_eq!(datatype(declared), expected, "{declared}");
        }
    }

    #[test]
    fn only_text_has_a_length() {
        assert_eq!(max_length("NVARCHAR(160)"), Some(160));
        assert_eq!(max_length("varchar ( 8 )"), Some(8));
        assert_eq!(max_length("DECIMAL(10,2)"), None);
        assert_eq!(max_length("TEXT"), None);
    }
}
