//! The constraints that MySQL and MariaDB enforce on a table, as far as the role sees them.

use mysql_async::prelude::Queryable;
use wayleave_plan::write::{ForeignKeyRule, TableRules, UniqueRule};
use wayleave_store::StoreError;

use super::catalogue::{KeyRow, UNIQUE_OF_TABLE};
use super::pool::MysqlSession;
use super::read::Database;
use super::types::Kind;
use crate::compile::Shape;

const COLUMNS: &str = "SELECT COLUMN_NAME, COLLATION_NAME, EXTRA FROM information_schema.COLUMNS \
    WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";

const KIND: &str = "SELECT TABLE_TYPE FROM information_schema.TABLES \
    WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";

const REFERS: &str = "SELECT CONSTRAINT_NAME, CONSTRAINT_SCHEMA, \
      IF(REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA, REFERENCED_TABLE_NAME, NULL), \
      COLUMN_NAME, REFERENCED_COLUMN_NAME \
    FROM information_schema.KEY_COLUMN_USAGE \
    WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND REFERENCED_TABLE_NAME IS NOT NULL \
    ORDER BY CONSTRAINT_NAME, ORDINAL_POSITION";

const REFERRED: &str = "SELECT CONCAT(TABLE_NAME, ' ', CONSTRAINT_NAME), CONSTRAINT_SCHEMA, \
      IF(REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA, TABLE_NAME, NULL), \
      COLUMN_NAME, REFERENCED_COLUMN_NAME \
    FROM information_schema.KEY_COLUMN_USAGE \
    WHERE REFERENCED_TABLE_SCHEMA = ? AND REFERENCED_TABLE_NAME = ? \
    ORDER BY CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION";

/// A column: its name, its collation if it holds text, and its `EXTRA` attributes.
type ColumnRow = (String, Option<String>, Option<String>);
/// A part of a foreign key: the key, its schema, the other table, and the two columns.
type PartRow = (String, String, Option<String>, String, String);

impl Database {
    /// The rules of a table.
    pub(super) async fn table_rules(
        &self,
        session: &mut MysqlSession,
        shape: &Shape<Kind>,
    ) -> Result<TableRules, StoreError> {
        let failed = |error| self.failed("reading the table's keys", &error);
        let named = (&shape.schema, &shape.table);
        let connection = &mut session.connection;
        let columns: Vec<ColumnRow> = connection.exec(COLUMNS, named).await.map_err(failed)?;
        let parts: Vec<KeyRow> = connection
            .exec(UNIQUE_OF_TABLE, named)
            .await
            .map_err(failed)?;
        let kind: Option<String> = connection.exec_first(KIND, named).await.map_err(failed)?;
        let refers: Vec<PartRow> = connection.exec(REFERS, named).await.map_err(failed)?;
        let referred: Vec<PartRow> = connection.exec(REFERRED, named).await.map_err(failed)?;
        let sets = parts.chunk_by(|a, b| a.0 == b.0);
        let mut unique: Vec<UniqueRule> = sets.map(|set| unique_rule(set, &columns)).collect();
        if kind.as_deref() == Some("VIEW") {
            // The rules of the tables behind a view are unknown.
            unique.push(UniqueRule {
                is_opaque: true,
                ..UniqueRule::default()
            });
        }
        Ok(TableRules {
            unique,
            refers: foreign_keys(&refers),
            referred: foreign_keys(&referred),
        })
    }
}

fn unique_rule(parts: &[KeyRow], columns: &[ColumnRow]) -> UniqueRule {
    let mut rule = UniqueRule::default();
    for (_, name, prefix) in parts {
        let known = columns.iter().find(|it| Some(&it.0) == name.as_ref());
        let Some((name, collation, extra)) = known else {
            rule.is_opaque = true;
            continue;
        };
        rule.is_opaque |= extra.as_deref().is_some_and(is_computed);
        rule.columns.push(name.clone());
        if prefix.is_none() && collation.as_deref().is_none_or(is_by_code_point) {
            rule.exact.push(name.clone());
        }
    }
    rule
}

fn is_computed(extra: &str) -> bool {
    ["VIRTUAL GENERATED", "STORED GENERATED", "PERSISTENT"]
        .iter()
        .any(|it| extra.to_ascii_uppercase().contains(it))
}

/// Whether a collation compares by code point. Others fold letters or ignore trailing spaces.
fn is_by_code_point(collation: &str) -> bool {
    collation.ends_with("_nopad_bin") || collation == "utf8mb4_0900_bin"
}

fn foreign_keys(parts: &[PartRow]) -> Vec<ForeignKeyRule> {
    let keys = parts.chunk_by(|a, b| (&a.0, &a.1) == (&b.0, &b.1));
    let rules = keys.filter_map(|key| {
        Some(ForeignKeyRule {
            other: key.first()?.2.clone(),
            on: key.iter().map(|it| (it.3.clone(), it.4.clone())).collect(),
        })
    });
    rules.collect()
}
