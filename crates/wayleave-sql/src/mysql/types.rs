//! What MySQL's types mean to a mapping.

use mysql_async::Column;
use mysql_async::consts::ColumnType;
use wayleave_model::mapping::Datatype;

use super::dialect::Kind;

/// The number of the character set that stands for no characters.
const BINARY: u16 = 63;

/// The datatype of a column, by `DATA_TYPE` and, where a length decides, `COLUMN_TYPE`.
pub(super) fn datatype(data_type: &str, column_type: &str) -> Datatype {
    match data_type {
        // By convention, and the only way to say it.
        "tinyint" if column_type.starts_with("tinyint(1)") => Datatype::Boolean,
        "bit" if column_type == "bit(1)" => Datatype::Boolean,
        "tinyint" | "smallint" | "mediumint" | "int" | "integer" | "bigint" | "year" | "bit" => {
            Datatype::Integer
        }
        "decimal" | "numeric" => Datatype::Decimal,
        "float" | "double" | "real" => Datatype::Number,
        "date" => Datatype::Date,
        "datetime" | "timestamp" => Datatype::Datetime,
        "json" => Datatype::Json,
        _ => Datatype::String,
    }
}

/// Whether a column of an answer still holds what the table's column held when it was looked at.
pub(super) fn is_same(kind: &Kind, told: &Column) -> bool {
    let is_text = told.character_set() != BINARY;
    match told.column_type() {
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => {
            *kind == Kind::Decimal
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
        // Enums, sets and what only has a text form are told as one of these too.
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

/// The length of `char(n)` and `varchar(n)`. Of the text types the store gives bytes, which is
/// no length in characters.
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
        assert_eq!(datatype("tinyint", "tinyint(1)"), Datatype::Boolean);
        assert_eq!(datatype("tinyint", "tinyint(4)"), Datatype::Integer);
        assert_eq!(datatype("bit", "bit(1)"), Datatype::Boolean);
        assert_eq!(datatype("bit", "bit(8)"), Datatype::Integer);
    }
}
