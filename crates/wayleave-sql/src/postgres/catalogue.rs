//! Column metadata of a PostgreSQL table, for both introspection and reads.

use std::collections::{BTreeMap, HashMap};

use tokio_postgres::{Error, Row};
use wayleave_model::catalogue::Column;

use super::types::{Kind, max_length};
use crate::compile::NativeColumn;

/// The columns of table `$2` in schema `$1`, or of all its tables where `$2` is NULL. A table
/// without a schema is resolved through the session's search path.
///
/// Resolves a domain to its base type, and an array to many values of its element type, which is
/// resolved too. Names the collation of text that sorts by code point. Privileges are looked up as
/// of now, so a table dropped meanwhile has none.
pub(super) const COLUMNS: &str = "WITH RECURSIVE relation AS ( \
    SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') \
      AND (c.relname = $2::text OR ($2::text IS NULL AND NOT c.relispartition)) \
      AND (n.nspname = $1::text OR ($1::text IS NULL AND pg_catalog.pg_table_is_visible(c.oid))) \
), step AS ( \
    SELECT a.attrelid, a.attnum, a.atttypid AS typ, a.atttypmod AS modifier, \
      a.attnotnull AS not_null, 0::oid AS list \
    FROM pg_catalog.pg_attribute a JOIN relation r ON r.oid = a.attrelid \
    WHERE a.attnum > 0 AND NOT a.attisdropped \
    UNION ALL \
    SELECT s.attrelid, s.attnum, \
      CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.typelem END, \
      CASE WHEN t.typtype = 'd' AND t.typtypmod >= 0 THEN t.typtypmod ELSE s.modifier END, \
      s.not_null OR (t.typtype = 'd' AND t.typnotnull AND s.list = 0), \
      CASE WHEN t.typtype = 'd' THEN s.list ELSE s.typ END \
    FROM step s JOIN pg_catalog.pg_type t ON t.oid = s.typ \
    WHERE t.typtype = 'd' OR (s.list = 0 AND t.typcategory = 'A' AND t.typelem <> 0) \
) \
SELECT r.nspname::text, r.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), \
    t.typname::text, s.typ, s.list, s.modifier, s.not_null, \
    CASE WHEN l.collname <> 'default' THEN l.collname::text \
         WHEN d.datcollate IN ('C', 'POSIX') AND COALESCE(to_jsonb(d)->>'datlocprovider', 'c') = 'c' THEN 'default' \
         ELSE '' END, \
    a.attidentity <> '' OR a.attgenerated <> '' \
      OR COALESCE(pg_get_expr(e.adbin, e.adrelid) LIKE 'nextval(%', false), \
    col_description(r.oid, a.attnum), \
    COALESCE(has_column_privilege(r.oid, a.attnum, 'SELECT'), false) \
FROM step s JOIN relation r ON r.oid = s.attrelid \
JOIN pg_catalog.pg_attribute a ON a.attrelid = s.attrelid AND a.attnum = s.attnum \
JOIN pg_catalog.pg_type t ON t.oid = s.typ AND t.typtype <> 'd' \
  AND (s.list <> 0 OR t.typcategory <> 'A' OR t.typelem = 0) \
LEFT JOIN pg_catalog.pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum \
LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation AND l.collnamespace = 'pg_catalog'::regnamespace \
CROSS JOIN (SELECT * FROM pg_catalog.pg_database WHERE datname = current_database()) d \
ORDER BY r.oid, a.attnum";

/// The sets of columns that table `$2` in schema `$1` keeps unique. A parent's index does not
/// cover the rows of its children, which a read of the parent includes.
pub(super) const UNIQUE: &str = "SELECT array_agg(a.attname::text) \
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisunique AND i.indisvalid \
  AND i.indpred IS NULL AND i.indexprs IS NULL \
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, place) \
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum \
WHERE n.nspname = $1::text AND c.relname = $2::text AND k.place <= i.indnkeyatts \
  AND (c.relkind <> 'r' \
    OR NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid)) \
GROUP BY i.indexrelid";

/// One row of [`COLUMNS`].
pub(super) struct CatalogueColumn {
    pub(super) schema: String,
    pub(super) table: String,
    pub(super) name: String,
    /// The declared type.
    declared: String,
    /// The name of the values' type; for a list, that of its elements.
    type_name: String,
    type_id: u32,
    /// The type of the array where the column is one, else 0.
    list_type_id: u32,
    modifier: i32,
    not_null: bool,
    collation: String,
    generated: bool,
    comment: Option<String>,
    /// Whether the role may select it.
    pub(super) selectable: bool,
}

impl CatalogueColumn {
    /// Decodes a row.
    pub(super) fn from_row(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            schema: row.try_get(0)?,
            table: row.try_get(1)?,
            name: row.try_get(2)?,
            declared: row.try_get(3)?,
            type_name: row.try_get(4)?,
            type_id: row.try_get(5)?,
            list_type_id: row.try_get(6)?,
            modifier: row.try_get(7)?,
            not_null: row.try_get(8)?,
            collation: row.try_get(9)?,
            generated: row.try_get(10)?,
            comment: row.try_get(11)?,
            selectable: row.try_get(12)?,
        })
    }

    /// The column in the form that reads need.
    pub(super) fn native(&self) -> NativeColumn<Kind> {
        let many = self.is_list();
        let kind = if many { Kind::Array } else { self.kind() };
        NativeColumn {
            kind,
            datatype: kind.datatype(),
            many,
            not_null: self.not_null,
            type_id: Some(if many {
                self.list_type_id
            } else {
                self.type_id
            }),
        }
    }

    /// The column in the form that introspection reports. Enums are described by `labels`, keyed by
    /// type.
    pub(super) fn described(self, labels: &HashMap<u32, Vec<String>>) -> Column {
        Column {
            datatype: self.kind().datatype(),
            many: self.is_list(),
            nullable: !self.not_null,
            // Only an enum has labels.
            one_of: labels.get(&self.type_id).cloned().unwrap_or_default(),
            max_length: max_length(&self.type_name, self.modifier),
            name: self.name,
            native_type: self.declared,
            generated: self.generated,
            comment: self.comment.filter(|it| !it.trim().is_empty()),
        }
    }

    fn kind(&self) -> Kind {
        Kind::from_type(&self.type_name, &self.collation)
    }

    fn is_list(&self) -> bool {
        self.list_type_id != 0
    }
}

/// The schema and the columns of the one table that [`COLUMNS`] was run for; `None` where the table
/// does not exist.
pub(super) fn table(rows: &[Row]) -> Result<Option<TableColumns>, Error> {
    let mut found: Option<TableColumns> = None;
    for row in rows {
        let column = CatalogueColumn::from_row(row)?;
        let native = column.native();
        let (_, columns) = found.get_or_insert_with(|| (column.schema, BTreeMap::new()));
        columns.insert(column.name, native);
    }
    Ok(found)
}

/// A table's schema, and its columns by name.
type TableColumns = (String, BTreeMap<String, NativeColumn<Kind>>);
