//! The constraints that SQLite enforces on a table.

use rusqlite::{Connection, Result};
use wayleave_plan::write::{ForeignKeyRule, TableRules, UniqueRule};

use super::indexes::row_number;

/// The parts of the unique indexes: the index, the column, whether it is compared by code point,
/// and whether a filter or a generated column takes part.
const UNIQUE: &str = "SELECT i.name, c.name, c.coll = 'BINARY', i.partial OR coalesce(x.hidden, 0) > 0 \
    FROM pragma_index_list(?1, 'main') AS i JOIN pragma_index_xinfo(i.name, 'main') AS c \
    LEFT JOIN pragma_table_xinfo(?1, 'main') AS x ON x.name = c.name \
    WHERE i.\"unique\" AND c.\"key\" ORDER BY i.seq, c.seqno";

/// The parts of the foreign keys of the table. Names are looked up without regard to case, and a
/// key without columns of the other table leads to its primary key.
const REFERS: &str = "SELECT f.id, \
      (SELECT t.name FROM pragma_table_list t \
       WHERE t.schema = 'main' AND t.name = f.\"table\" COLLATE NOCASE), \
      (SELECT x.name FROM pragma_table_xinfo(?1, 'main') x WHERE x.name = f.\"from\" COLLATE NOCASE), \
      coalesce((SELECT x.name FROM pragma_table_xinfo(f.\"table\", 'main') x \
                WHERE x.name = f.\"to\" COLLATE NOCASE), \
               (SELECT x.name FROM pragma_table_xinfo(f.\"table\", 'main') x WHERE x.pk = f.seq + 1)) \
    FROM pragma_foreign_key_list(?1, 'main') f ORDER BY f.id, f.seq";

/// The parts of the foreign keys that lead to the table.
const REFERRED: &str = "SELECT t.name || ' ' || f.id, t.name, \
      (SELECT x.name FROM pragma_table_xinfo(t.name, 'main') x WHERE x.name = f.\"from\" COLLATE NOCASE), \
      coalesce((SELECT x.name FROM pragma_table_xinfo(?1, 'main') x \
                WHERE x.name = f.\"to\" COLLATE NOCASE), \
               (SELECT x.name FROM pragma_table_xinfo(?1, 'main') x WHERE x.pk = f.seq + 1)) \
    FROM pragma_table_list t JOIN pragma_foreign_key_list(t.name, 'main') f \
    WHERE t.schema = 'main' AND t.type = 'table' AND f.\"table\" = ?1 COLLATE NOCASE \
    ORDER BY t.name, f.id, f.seq";

const IS_VIEW: &str = "SELECT count(*) FROM pragma_table_list \
    WHERE schema = 'main' AND name = ?1 COLLATE NOCASE AND type = 'view'";

/// A part of a foreign key: the key, the other table, and the two columns.
type PartRow = (
    rusqlite::types::Value,
    Option<String>,
    Option<String>,
    Option<String>,
);

/// The rules of a table.
pub(super) fn table_rules(connection: &Connection, table: &str) -> Result<TableRules> {
    Ok(TableRules {
        unique: unique(connection, table)?,
        refers: foreign_keys(connection, REFERS, table)?,
        referred: foreign_keys(connection, REFERRED, table)?,
    })
}

fn unique(connection: &Connection, table: &str) -> Result<Vec<UniqueRule>> {
    let mut statement = connection.prepare_cached(UNIQUE)?;
    let parts = statement.query_map([table], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    let parts: Vec<(String, Option<String>, Option<bool>, bool)> = parts.collect::<Result<_>>()?;
    let sets = parts.chunk_by(|a, b| a.0 == b.0);
    let mut rules: Vec<UniqueRule> = sets
        .map(|set| {
            let exact = set.iter().filter(|it| it.2 == Some(true));
            UniqueRule {
                columns: set.iter().filter_map(|it| it.1.clone()).collect(),
                exact: exact.filter_map(|it| it.1.clone()).collect(),
                // An expression has no name.
                is_opaque: set.iter().any(|it| it.3 || it.1.is_none()),
            }
        })
        .collect();
    rules.extend(row_number(connection, table)?.map(|column| UniqueRule {
        columns: vec![column.clone()],
        exact: vec![column],
        is_opaque: false,
    }));
    let mut is_view = connection.prepare_cached(IS_VIEW)?;
    if is_view.query_row([table], |row| row.get::<_, i64>(0))? > 0 {
        // The rules of the tables behind a view are unknown.
        rules.push(UniqueRule {
            is_opaque: true,
            ..UniqueRule::default()
        });
    }
    Ok(rules)
}

fn foreign_keys(
    connection: &Connection,
    statement: &str,
    table: &str,
) -> Result<Vec<ForeignKeyRule>> {
    let mut statement = connection.prepare_cached(statement)?;
    let parts = statement.query_map([table], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    let parts: Vec<PartRow> = parts.collect::<Result<_>>()?;
    let keys = parts.chunk_by(|a, b| a.0 == b.0);
    let rules = keys.filter_map(|key| {
        // A part that leads nowhere matches no relation.
        let on = key.iter().map(|it| {
            let name = |it: &Option<String>| it.clone().unwrap_or_default();
            (name(&it.2), name(&it.3))
        });
        Some(ForeignKeyRule {
            other: key.first()?.1.clone(),
            on: on.collect(),
        })
    });
    Ok(rules.collect())
}
