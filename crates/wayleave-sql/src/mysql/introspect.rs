//! Reads the catalogue of one MySQL or MariaDB database in a handful of statements, however many
//! tables it has.
//!
//! CHECKs are read on MariaDB only: MySQL prints them in its own form, and has ENUM.

use wayleave_model::catalogue::{Catalogue, ForeignKey, TableKind};
use wayleave_model::mapping::{Datatype, SourceKind};
use wayleave_store::{IntrospectOptions, Progress, Step, StoreError};

use super::catalogue::{COLUMNS, CatalogueColumn, ColumnRow};
use super::connect::{Flavour, MysqlCatalogueSession};
use crate::assemble::TableAssembler;
use crate::check_constraints::{closed_list_expression, json_column};

const SCHEMAS: &str = "SELECT SCHEMA_NAME, SCHEMA_NAME = DATABASE() \
    FROM information_schema.SCHEMATA \
    WHERE SCHEMA_NAME NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')";

const TABLES: &str = "SELECT TABLE_NAME, TABLE_TYPE, TABLE_ROWS, TABLE_COMMENT \
    FROM information_schema.TABLES \
    WHERE TABLE_SCHEMA = ? AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'VIEW')";

const KEYS: &str = "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART \
    FROM information_schema.STATISTICS \
    WHERE TABLE_SCHEMA = ? AND NON_UNIQUE = 0 ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX";

const REFERENCES: &str = "SELECT TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, \
      REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME \
    FROM information_schema.KEY_COLUMN_USAGE \
    WHERE TABLE_SCHEMA = ? AND REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA \
    ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION";

const MARIADB_CHECKS: &str = "SELECT TABLE_NAME, CHECK_CLAUSE \
    FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = ? \
    ORDER BY TABLE_NAME, CONSTRAINT_NAME";

/// Reads the catalogue of the requested database, or of the session's own.
pub(super) async fn catalogue(
    session: &mut MysqlCatalogueSession<'_>,
    options: &IntrospectOptions,
    progress: Progress<'_>,
) -> Result<Catalogue, StoreError> {
    let schema = schema(session, options, progress).await?;
    let mut assembly = TableAssembler::default();
    tables(session, &schema, &mut assembly, progress).await?;
    let rows: Vec<ColumnRow> = session.read("reading columns", COLUMNS, (&schema,)).await?;
    progress(Step::Read {
        what: "columns",
        rows: rows.len(),
    });
    for row in rows {
        let column = CatalogueColumn::from_row(session.flavour, row);
        if column.selectable {
            let table = column.table.clone();
            assembly.column(&table, column.described());
        }
    }
    keys(session, &schema, &mut assembly, progress).await?;
    references(session, &schema, &mut assembly, progress).await?;
    if session.flavour == Flavour::Mariadb {
        checks(session, &schema, &mut assembly, progress).await?;
    }
    Ok(assembly.finish(SourceKind::Mysql, Some(schema)))
}

async fn schema(
    session: &mut MysqlCatalogueSession<'_>,
    options: &IntrospectOptions,
    progress: Progress<'_>,
) -> Result<String, StoreError> {
    let rows: Vec<(String, Option<bool>)> = session.read("reading schemas", SCHEMAS, ()).await?;
    progress(Step::Read {
        what: "schemas",
        rows: rows.len(),
    });
    let own = rows
        .iter()
        .find(|(_, current)| *current == Some(true))
        .map(|(name, _)| name.clone());
    let mut visible: Vec<String> = rows.into_iter().map(|(name, _)| name).collect();
    visible.sort();
    match options.schema.clone().or(own) {
        Some(schema) if visible.contains(&schema) => Ok(schema),
        schema => Err(StoreError::NoSchema { schema, visible }),
    }
}

async fn tables(
    session: &mut MysqlCatalogueSession<'_>,
    schema: &str,
    assembly: &mut TableAssembler,
    progress: Progress<'_>,
) -> Result<(), StoreError> {
    let rows: Vec<(String, String, Option<u64>, Option<String>)> =
        session.read("reading tables", TABLES, (schema,)).await?;
    progress(Step::Read {
        what: "tables",
        rows: rows.len(),
    });
    for (name, kind, estimate, comment) in rows {
        if kind == "VIEW" {
            // The comment of a view is the word VIEW, or an error about the view.
            match comment {
                Some(broken) if broken != "VIEW" && !broken.is_empty() => {
                    progress(Step::LeftOut {
                        table: name,
                        reason: broken,
                    });
                }
                _ => assembly.table(name, TableKind::View, None, None),
            }
        } else {
            assembly.table(name, TableKind::Table, estimate, comment);
        }
    }
    Ok(())
}

async fn keys(
    session: &mut MysqlCatalogueSession<'_>,
    schema: &str,
    assembly: &mut TableAssembler,
    progress: Progress<'_>,
) -> Result<(), StoreError> {
    let rows: Vec<(String, String, Option<String>, Option<u64>)> =
        session.read("reading keys", KEYS, (schema,)).await?;
    progress(Step::Read {
        what: "keys",
        rows: rows.len(),
    });
    for index in rows.chunk_by(|a, b| (&a.0, &a.1) == (&b.0, &b.1)) {
        let Some((table, name, ..)) = index.first() else {
            continue;
        };
        // An index part without a column is an expression, and one with a length is a prefix.
        // Neither makes the columns themselves unique.
        let columns = index
            .iter()
            .map(|(.., column, prefix)| column.clone().filter(|_| prefix.is_none()));
        if let Some(columns) = columns.collect() {
            assembly.key(table, name == "PRIMARY", columns);
        }
    }
    Ok(())
}

async fn references(
    session: &mut MysqlCatalogueSession<'_>,
    schema: &str,
    assembly: &mut TableAssembler,
    progress: Progress<'_>,
) -> Result<(), StoreError> {
    let rows: Vec<(String, String, String, String, String)> = session
        .read("reading references", REFERENCES, (schema,))
        .await?;
    progress(Step::Read {
        what: "references",
        rows: rows.len(),
    });
    for key in rows.chunk_by(|a, b| (&a.0, &a.1) == (&b.0, &b.1)) {
        let Some((table, _, _, to_table, _)) = key.first() else {
            continue;
        };
        let (columns, to_columns) = key
            .iter()
            .map(|(.., from, _, to)| (from.clone(), to.clone()))
            .unzip();
        assembly.foreign_key(
            table,
            ForeignKey {
                columns,
                to_table: to_table.clone(),
                to_columns,
            },
        );
    }
    Ok(())
}

async fn checks(
    session: &mut MysqlCatalogueSession<'_>,
    schema: &str,
    assembly: &mut TableAssembler,
    progress: Progress<'_>,
) -> Result<(), StoreError> {
    let rows: Vec<(String, String)> = session
        .read("reading checks", MARIADB_CHECKS, (schema,))
        .await?;
    progress(Step::Read {
        what: "checks",
        rows: rows.len(),
    });
    for (table, expression) in rows {
        if let Some(list) = closed_list_expression(&expression) {
            assembly.closed_list(&table, list, |a, b| a == b);
        } else if let Some(json) = json_column(&expression) {
            let table = assembly.get_mut(&table);
            let column = table.and_then(|it| it.columns.iter_mut().find(|it| it.name == json));
            if let Some(column) = column {
                column.datatype = Datatype::Json;
            }
        }
    }
    Ok(())
}
