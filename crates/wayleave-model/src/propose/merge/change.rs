//! The changes that a merge reports.

use std::fmt;

use serde::Serialize;

use crate::propose::comment;

/// A change of the source, or of the mapping to fit it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum Change {
    /// A table is new.
    NewTable {
        /// The table.
        table: String,
        /// The stream it became; `None` if it is left out or commented out.
        stream: Option<String>,
    },
    /// A table of a stream is gone.
    GoneTable {
        /// The table.
        table: String,
        /// The stream that reads it.
        stream: String,
    },
    /// A column is new.
    NewColumn {
        /// Its table.
        table: String,
        /// The column.
        column: String,
        /// The field it became; `None` if it is left out.
        field: Option<String>,
    },
    /// A column of a field is gone.
    GoneColumn {
        /// Its table.
        table: String,
        /// The column.
        column: String,
        /// The field that reads it.
        field: String,
    },
    /// A column is declared differently.
    Redeclared {
        /// Its table.
        table: String,
        /// The column.
        column: String,
        /// The former declaration: its type, and `?` if it may be NULL.
        was: String,
        /// The current declaration.
        is: String,
    },
    /// An entry was changed so that the mapping fits the source.
    Fitted {
        /// The entry.
        entry: String,
        /// The edit, in words.
        what: String,
    },
    /// The values of a column were sampled and are listed.
    Sampled {
        /// Its table.
        table: String,
        /// The column.
        column: String,
        /// The field that reads it.
        field: String,
    },
    /// The draft has no record of the columns it was made from, so new ones cannot be recognized.
    NothingSeen {
        /// Tables that no stream reads.
        tables: usize,
        /// Columns of mapped tables that no field reads.
        columns: usize,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = comment::name;
        match self {
            Self::NewTable { table, stream } => match stream {
                Some(stream) => {
                    let table = name(table);
                    write!(f, "table {table} is new: added as stream `{stream}`")
                }
                None => write!(f, "table {} is new, and left out", name(table)),
            },
            Self::GoneTable { table, stream } => {
                write!(f, "table {} of stream `{stream}` is gone", name(table))
            }
            Self::NewColumn {
                table,
                column,
                field,
            } => {
                write!(f, "column {} of {} is new", name(column), name(table))?;
                match field {
                    Some(field) => write!(f, ": added as field `{field}`"),
                    None => f.write_str(", and left out"),
                }
            }
            Self::GoneColumn {
                table,
                column,
                field,
            } => {
                let (column, table) = (name(column), name(table));
                write!(
                    f,
                    "column {column} of {table}, read by field `{field}`, is gone"
                )
            }
            Self::Redeclared {
                table,
                column,
                was,
                is,
            } => {
                write!(f, "column {} of {} was ", name(column), name(table))?;
                write!(f, "{} and is {}", name(was), name(is))
            }
            Self::Fitted { entry, what } => write!(f, "`{entry}` {what}"),
            Self::Sampled {
                table,
                column,
                field,
            } => {
                write!(f, "column {} of {} ", name(column), name(table))?;
                write!(f, "holds few values: listed in field `{field}`")
            }
            Self::NothingSeen { tables, columns } => write!(
                f,
                "the draft does not say what it was made from, so nothing was added; \
                 {tables} tables and {columns} columns are not in it"
            ),
        }
    }
}
