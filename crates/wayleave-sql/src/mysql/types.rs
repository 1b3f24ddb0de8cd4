//! The types of MySQL and MariaDB: what a statement must know about a column, and its datatype in a
//! mapping.

use mysql_async::Column;
use mysql_async::consts::ColumnType;
use wayleave_model::drift::fits;
use wayleave_model::mapping::{Datatype, SourceKind};

use crate::compile::NativeKind;

use super::connect::Flavour;
use super::digits::Digits;
use super::repertoire::Repertoire;

/// The number of the character set `binary`, which stands for bytes.
const BINARY: u16 = 63;

/// The type of a column, as far as it matters to a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Characters.
    Text {
        /// Its character set and collation, if that sorts by code point and counts trailing spaces,
        /// so that its index does too.
        by_code_point: Option<(String, String)>,
        /// The characters that it can hold.
        repertoire: Repertoire,
        /// Its collation.
        collation: String,
    },
    /// Bytes.
    Binary,
    /// Anything whose text form is served: enums, sets, times, addresses.
    Other,
    Integer,
    /// `YEAR`. The server compares a small number with it as a year of this century.
    Year,
    Bit,
    /// With its number of digits.
    Decimal(Digits),
    Float,
    /// `FLOAT`.
    Single,
    Date,
    Datetime,
    Json,
}

impl NativeKind for Kind {
    const STORE: SourceKind = SourceKind::Mysql;

    fn reads_as(native: Datatype, mapped: Datatype) -> bool {
        // MariaDB keeps JSON in text columns, and says so only in a constraint.
        (mapped == Datatype::Json && native.is_text()) || fits(Self::STORE, native, mapped)
    }
}

impl Kind {
    /// The kind of a column by its `DATA_TYPE`, and of a text by its character set and collation.
    pub(super) fn from_type(
        flavour: Flavour,
        data_type: &str,
        charset: &str,
        collation: &str,
    ) -> Self {
        match data_type {
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => {
                // The binary collations that count trailing spaces.
                let counted = collation.ends_with("_nopad_bin") || collation == "utf8mb4_0900_bin";
                let unicode = matches!(charset, "utf8mb4" | "utf8mb3" | "utf8" | "ascii");
                let by_code_point = counted && unicode;
                let repertoire = match Repertoire::from_charset(charset, collation) {
                    // MySQL refuses to convert a text that the character set does not have.
                    Repertoire::Other(_) if flavour == Flavour::Mysql => Repertoire::Other(None),
                    repertoire => repertoire,
                };
                Self::Text {
                    by_code_point: by_code_point
                        .then(|| (charset.to_owned(), collation.to_owned())),
                    repertoire,
                    collation: collation.to_owned(),
                }
            }
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => {
                Self::Binary
            }
            "tinyint" | "smallint" | "mediumint" | "int" | "integer" | "bigint" => Self::Integer,
            "year" => Self::Year,
            "bit" => Self::Bit,
            "decimal" | "numeric" => Self::Decimal(Digits::UNKNOWN),
            "float" => Self::Single,
            "double" | "real" => Self::Float,
            "date" => Self::Date,
            "datetime" | "timestamp" => Self::Datetime,
            "json" => Self::Json,
            _ => Self::Other,
        }
    }

    /// The datatype it is read as; the `COLUMN_TYPE` decides where a length matters.
    pub(super) fn datatype(&self, column_type: &str) -> Datatype {
        match self {
            // By convention, and the only way to declare a boolean.
            Self::Integer if column_type.starts_with("tinyint(1)") => Datatype::Boolean,
            Self::Bit if column_type == "bit(1)" => Datatype::Boolean,
            Self::Integer | Self::Year | Self::Bit => Datatype::Integer,
            Self::Decimal(_) => Datatype::Decimal,
            Self::Single | Self::Float => Datatype::Number,
            Self::Date => Datatype::Date,
            Self::Datetime => Datatype::Datetime,
            Self::Json => Datatype::Json,
            Self::Text { .. } | Self::Binary | Self::Other => Datatype::String,
        }
    }
}

/// Whether a result column still has the type that the table's column had when its shape was read.
pub(super) fn is_same(kind: &Kind, told: &Column) -> bool {
    let is_text = told.character_set() != BINARY;
    match told.column_type() {
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => {
            let holds = |it: &Digits| it.holds(told.column_length(), told.decimals());
            matches!(kind, Kind::Decimal(digits) if holds(digits))
        }
        ColumnType::MYSQL_TYPE_TINY
        | ColumnType::MYSQL_TYPE_SHORT
        | ColumnType::MYSQL_TYPE_LONG
        | ColumnType::MYSQL_TYPE_INT24
        | ColumnType::MYSQL_TYPE_LONGLONG => *kind == Kind::Integer,
        ColumnType::MYSQL_TYPE_YEAR => *kind == Kind::Year,
        ColumnType::MYSQL_TYPE_BIT => *kind == Kind::Bit,
        ColumnType::MYSQL_TYPE_FLOAT => *kind == Kind::Single,
        ColumnType::MYSQL_TYPE_DOUBLE => *kind == Kind::Float,
        ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_NEWDATE => *kind == Kind::Date,
        ColumnType::MYSQL_TYPE_DATETIME
        | ColumnType::MYSQL_TYPE_DATETIME2
        | ColumnType::MYSQL_TYPE_TIMESTAMP
        | ColumnType::MYSQL_TYPE_TIMESTAMP2 => *kind == Kind::Datetime,
        ColumnType::MYSQL_TYPE_JSON => *kind == Kind::Json,
        // Enums, sets and other types with only a text form are reported as one of these too.
        _ if is_text => matches!(kind, Kind::Text { .. } | Kind::Other | Kind::Json),
        _ => matches!(kind, Kind::Binary | Kind::Other),
    }
}

/// The labels of `enum('a','it''s')`; none for any other type.
pub(super) fn labels(column_type: &str) -> Vec<String> {
    let Some(list) = column_type
        .strip_prefix("enum(")
        .and_then(|it| it.strip_suffix(')'))
    else {
        return Vec::new();
    };
    let mut labels = Vec::new();
    let mut rest = list.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\'' {
            continue;
        }
        let mut label = String::new();
        while let Some(c) = rest.next() {
            if c == '\'' && rest.next_if_eq(&'\'').is_none() {
                break;
            }
            label.push(c);
        }
        labels.push(label);
    }
    labels
}

/// The length of `char(n)` and `varchar(n)`. For the text types the server reports bytes, not
/// characters.
pub(super) fn max_length(data_type: &str, length: Option<u64>) -> Option<u32> {
    let length = length.filter(|_| matches!(data_type, "char" | "varchar"))?;
    u32::try_from(length).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_with_their_quotes_and_commas() {
        assert_eq!(
            labels("enum('new','it''s, closed','')"),
            ["new", "it's, closed", ""]
        );
        assert!(labels("set('a','b')").is_empty());
        assert!(labels("varchar(10)").is_empty());
    }

    #[test]
    fn one_bit_and_tinyint_one_are_true_or_false() {
        for (data_type, column_type, datatype) in [
            ("tinyint", "tinyint(1)", Datatype::Boolean),
            ("tinyint", "tinyint(4)", Datatype::Integer),
            ("bit", "bit(1)", Datatype::Boolean),
            ("bit", "bit(8)", Datatype::Integer),
        ] {
            let kind = Kind::from_type(Flavour::Mariadb, data_type, "", "");
            assert_eq!(kind.datatype(column_type), datatype, "{column_type}");
        }
    }
}
