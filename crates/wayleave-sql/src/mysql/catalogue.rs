//! Column metadata of a MySQL or MariaDB table, for both introspection and reads.

use wayleave_model::catalogue::Column;

use super::connect::Flavour;
use super::digits::Digits;
use super::types::{Kind, labels, max_length};
use crate::compile::NativeColumn;

/// The metadata selected for every column.
macro_rules! columns {
    () => {
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, IS_NULLABLE, \
           COALESCE(CHARACTER_SET_NAME, ''), COALESCE(COLLATION_NAME, ''), \
           CHARACTER_MAXIMUM_LENGTH, COALESCE(EXTRA, ''), COALESCE(COLUMN_COMMENT, ''), \
           COALESCE(PRIVILEGES, '') \
         FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "
    };
}

/// The columns of all tables of a schema.
pub(super) const COLUMNS: &str = concat!(columns!(), "? ORDER BY TABLE_NAME, ORDINAL_POSITION");

/// The columns of one table, in the session's own database where no schema is given. The name is
/// compared with a plain value; otherwise the server would open every table of the schema.
pub(super) const COLUMNS_OF_TABLE: &str =
    concat!(columns!(), "COALESCE(?, DATABASE()) AND TABLE_NAME = ?");

/// The parts of the unique indexes of one table.
pub(super) const UNIQUE_OF_TABLE: &str = "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART \
    FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND NON_UNIQUE = 0 \
    ORDER BY INDEX_NAME, SEQ_IN_INDEX";

/// A part of a unique index: the index, the column (`None` for an expression), and the length of
/// the prefix if it covers only a prefix.
pub(super) type KeyRow = (String, Option<String>, Option<u64>);

/// A row of either statement.
pub(super) type ColumnRow = (
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    Option<u64>,
    String,
    String,
    String,
);

/// A row of either statement, decoded.
pub(super) struct CatalogueColumn {
    pub(super) schema: String,
    pub(super) table: String,
    pub(super) name: String,
    /// The type as it was declared.
    declared: String,
    data_type: String,
    kind: Kind,
    nullable: bool,
    length: Option<u64>,
    generated: bool,
    comment: String,
    /// Whether the role may select it.
    pub(super) selectable: bool,
}

impl CatalogueColumn {
    /// Decodes a row.
    pub(super) fn from_row(flavour: Flavour, row: ColumnRow) -> Self {
        let (schema, table, name, declared, data_type, nullable) =
            (row.0, row.1, row.2, row.3, row.4, row.5);
        let (charset, collation, length, extra, comment, privileges) =
            (row.6, row.7, row.8, row.9, row.10, row.11);
        let extra = extra.to_ascii_lowercase();
        let kind = match Kind::from_type(flavour, &data_type, &charset, &collation) {
            Kind::Decimal(_) => Kind::Decimal(Digits::declared(&declared)),
            kind => kind,
        };
        Self {
            schema,
            table,
            name,
            kind,
            declared,
            data_type,
            nullable: nullable == "YES",
            length,
            // `DEFAULT_GENERATED` is MySQL's word for an ordinary default.
            generated: extra.contains("auto_increment")
                || extra.contains("virtual generated")
                || extra.contains("stored generated"),
            comment,
            selectable: privileges.split(',').any(|it| it == "select"),
        }
    }

    /// The column by its name, in the form that reads need.
    pub(super) fn native(self) -> (String, NativeColumn<Kind>) {
        let native = NativeColumn {
            datatype: self.kind.datatype(&self.declared),
            kind: self.kind,
            many: false,
            not_null: !self.nullable,
            type_id: None,
        };
        (self.name, native)
    }

    /// The column in the form that introspection reports.
    pub(super) fn described(self) -> Column {
        Column {
            name: self.name,
            datatype: self.kind.datatype(&self.declared),
            many: false,
            nullable: self.nullable,
            one_of: labels(&self.declared),
            max_length: max_length(&self.data_type, self.length),
            generated: self.generated,
            comment: Some(self.comment).filter(|it| !it.trim().is_empty()),
            native_type: self.declared,
        }
    }
}
