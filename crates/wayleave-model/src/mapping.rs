//! The mapping: what of a source may be seen, and as what.

use serde::{Deserialize, Serialize};

/// The kind of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// A SQLite database file.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL or MariaDB.
    Mysql,
    /// A folder of CSV, JSONL or Parquet files.
    Files,
    /// RDF files or a SPARQL endpoint.
    Rdf,
}

/// The datatype of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Datatype {
    /// Text.
    String,
    /// A whole number, exact at any size.
    Integer,
    /// An exact decimal.
    Decimal,
    /// A floating-point number.
    Number,
    /// True or false.
    Boolean,
    /// A calendar date.
    Date,
    /// An instant.
    Datetime,
    /// Any JSON.
    Json,
    /// A reference.
    Iri,
}
