//! The result of introspecting a source: tables, columns, keys, references.
//!
//! A catalogue is a plain value. Adapters fill it, `propose` and the live check read it.
//! It never holds rows, and it knows nothing of mappings.

use serde::{Deserialize, Serialize};

use crate::mapping::{Datatype, SourceKind};

/// The catalogue of one source, in a deterministic order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    /// The kind of store this was read from.
    pub kind: SourceKind,
    /// The schema (`public`, a MySQL database); `None` if the store has no schemas.
    pub schema: Option<String>,
    /// Tables and views, sorted by name.
    pub tables: Vec<Table>,
}

impl Catalogue {
    /// The table of that exact name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

/// Whether rows are stored or computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableKind {
    /// A base table.
    Table,
    /// A view.
    View,
    /// A materialized view.
    MaterializedView,
}

/// One table or view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its name, exactly as in the store.
    pub name: String,
    /// Table or view.
    pub kind: TableKind,
    /// Its columns, in the store's order.
    pub columns: Vec<Column>,
    /// The primary key's columns, in key order; empty when there is none.
    pub primary_key: Vec<String>,
    /// Other unique constraints and unique indexes (never partial or on expressions), each in
    /// key order; sorted.
    pub unique: Vec<Vec<String>>,
    /// Foreign keys, sorted by their columns.
    pub foreign_keys: Vec<ForeignKey>,
    /// The planner's or engine's row estimate, never a count.
    pub row_estimate: Option<u64>,
    /// The store's comment: a suggestion for a human, never served by itself.
    pub comment: Option<String>,
}

impl Table {
    /// The column of that exact name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name, exactly as in the store.
    pub name: String,
    /// The store's own type, as the store prints it (`numeric(12,2)`, `varchar(40)`).
    pub native_type: String,
    /// The datatype a mapping would give it.
    pub datatype: Datatype,
    /// Whether it holds many values (a PostgreSQL array).
    pub many: bool,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// The closed list of values, if the store declares one (an enum type, `ENUM(…)`, or a
    /// constraint `CHECK (c IN (…))` the adapter could read); empty otherwise.
    pub one_of: Vec<String>,
    /// The declared maximum length in characters, for text.
    pub max_length: Option<u32>,
    /// Whether the store computes the value (generated, identity, auto-increment).
    pub generated: bool,
    /// The store's comment: a suggestion for a human, never served by itself.
    pub comment: Option<String>,
}

/// A reference from some columns of a table to columns of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ForeignKey {
    /// The columns of this table.
    pub columns: Vec<String>,
    /// The other table, in the same schema.
    pub to_table: String,
    /// The columns of the other table, paired with `columns`; not necessarily its key.
    pub to_columns: Vec<String>,
}
