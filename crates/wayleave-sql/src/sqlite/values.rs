//! Converts SQLite's values to cells, and bound values to SQLite's.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

use crate::compile::Bind;
use crate::values::Cell;

/// Converts a SQLite value. A text that is not UTF-8 becomes bytes.
pub(super) fn cell(value: ValueRef<'_>) -> Cell<'_> {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(integer) => Cell::Integer(i128::from(integer)),
        ValueRef::Real(real) => Cell::Real(real),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Cell::Text(text.into()),
            Err(_) => Cell::Bytes(text.into()),
        },
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.into()),
    }
}

impl ToSql for Bind {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Text(text) | Self::Literal(text) => {
                ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))
            }
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Self::Integer(integer) | Self::Datetime(integer) => {
                ToSqlOutput::Owned(Value::Integer(*integer))
            }
            Self::Unsigned(integer) => {
                let integer = i64::try_from(*integer)
                    .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
                ToSqlOutput::Owned(Value::Integer(integer))
            }
            Self::Real(real) => ToSqlOutput::Owned(Value::Real(*real)),
            Self::Boolean(boolean) => ToSqlOutput::Owned(Value::Integer(i64::from(*boolean))),
            Self::Date(days) => ToSqlOutput::Owned(Value::Integer(i64::from(*days))),
        })
    }
}
