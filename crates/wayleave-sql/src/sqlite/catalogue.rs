//! Column metadata of a SQLite table, for both introspection and reads.

use rusqlite::Row;

use super::types::{self, Affinity};
use crate::compile::NativeColumn;

/// The metadata selected for every column `c` of a table. A primary key with an index of its own is
/// not the rowid.
macro_rules! columns {
    ($table:literal) => {
        concat!(
            "SELECT ",
            $table,
            ", c.name, c.type, c.\"notnull\", c.pk, c.hidden, c.pk > 0 AND NOT EXISTS ( \
               SELECT 1 FROM pragma_index_list(",
            $table,
            ", 'main') AS i WHERE i.origin = 'pk')"
        )
    };
}

/// The columns of all tables.
pub(super) const COLUMNS: &str = concat!(
    columns!("t.name"),
    " FROM pragma_table_list t JOIN pragma_table_xinfo(t.name, 'main') c \
     WHERE t.schema = 'main' AND t.type = 'table' ORDER BY t.name, c.cid"
);

/// The columns of all views.
pub(super) const COLUMNS_OF_VIEWS: &str = concat!(
    columns!("t.name"),
    " FROM pragma_table_list t JOIN pragma_table_xinfo(t.name, 'main') c \
     WHERE t.schema = 'main' AND t.type = 'view' ORDER BY t.name, c.cid"
);

/// The columns of one table or view.
pub(super) const COLUMNS_OF_TABLE: &str = concat!(
    columns!("?1"),
    " FROM pragma_table_xinfo(?1, 'main') c ORDER BY c.cid"
);

/// A row of any of these statements.
pub(super) struct CatalogueColumn {
    pub(super) table: String,
    pub(super) name: String,
    /// The declared type.
    pub(super) declared: String,
    pub(super) not_null: bool,
    /// Its position in the primary key, from 1; 0 where it is not part of it.
    pub(super) key_place: i64,
    /// 1 for a hidden column of a virtual table; 2 and 3 for generated columns.
    pub(super) hidden: i64,
    /// Whether it is the rowid, and therefore always an integer.
    pub(super) is_row_number: bool,
}

impl CatalogueColumn {
    /// Decodes a row.
    pub(super) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let declared: String = row.get(2)?;
        Ok(Self {
            table: row.get(0)?,
            name: row.get(1)?,
            is_row_number: row.get::<_, bool>(6)? && declared.eq_ignore_ascii_case("INTEGER"),
            declared,
            not_null: row.get(3)?,
            key_place: row.get(4)?,
            hidden: row.get(5)?,
        })
    }

    /// The column by its name, in the form that reads need.
    pub(super) fn native(self) -> (String, NativeColumn<Affinity>) {
        let native = NativeColumn {
            kind: if self.is_row_number {
                Affinity::RowNumber
            } else {
                Affinity::from_declared(&self.declared)
            },
            datatype: types::datatype(&self.declared),
            many: false,
            not_null: self.not_null || self.is_row_number,
            type_id: None,
        };
        (self.name, native)
    }
}
