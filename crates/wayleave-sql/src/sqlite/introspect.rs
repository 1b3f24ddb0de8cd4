//! Reads the catalogue of a SQLite file in a handful of statements, however many tables it has.
//!
//! Virtual tables are left out, because reading one runs its module; so are the shadow tables that
//! they keep.

use std::collections::HashMap;

use wayleave_model::catalogue::{Catalogue, Column, ForeignKey, TableKind};
use wayleave_model::mapping::SourceKind;
use wayleave_store::{Step, StoreError};

use super::catalogue::{COLUMNS, COLUMNS_OF_TABLE, COLUMNS_OF_VIEWS, CatalogueColumn};
use super::connect::SqliteCatalogueSession;
use super::types;
use crate::assemble::TableAssembler;
use crate::check_constraints::closed_lists;

const TABLES: &str = "SELECT name, type, wr, strict FROM pragma_table_list \
    WHERE schema = 'main' AND type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";

const UNIQUE: &str = "SELECT t.name, i.name, c.name, c.cid \
    FROM pragma_table_list t JOIN pragma_index_list(t.name, 'main') i \
    JOIN pragma_index_xinfo(i.name, 'main') c \
    WHERE t.schema = 'main' AND t.type = 'table' AND i.\"unique\" AND NOT i.partial \
      AND i.origin <> 'pk' AND c.\"key\" ORDER BY t.name, i.name, c.seqno";

const REFERENCES: &str = "SELECT t.name, f.id, f.\"table\", f.\"from\", f.\"to\" \
    FROM pragma_table_list t JOIN pragma_foreign_key_list(t.name, 'main') f \
    WHERE t.schema = 'main' AND t.type = 'table' ORDER BY t.name, f.id, f.seq";

const CHECKED: &str =
    "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%check%'";

const ANALYZED: &str = "SELECT name FROM sqlite_schema WHERE name = 'sqlite_stat1'";

const ESTIMATES: &str = "SELECT tbl, max(CAST(stat AS INTEGER)) FROM sqlite_stat1 GROUP BY tbl";

/// How a table stores its rows, which decides whether its key may be NULL.
#[derive(Clone, Copy)]
struct Shape {
    view: bool,
    without_rowid: bool,
    strict: bool,
}

/// Reads the catalogue. The file may change between two statements; each statement reads one
/// snapshot.
pub(super) fn catalogue(
    session: &mut SqliteCatalogueSession,
    step: &mut dyn FnMut(Step),
) -> Result<Catalogue, StoreError> {
    let mut assembly = TableAssembler::default();
    let estimates = estimates(session, step)?;
    let shapes = tables(session, &estimates, &mut assembly, step)?;
    let mut declared = session.read("reading columns", COLUMNS, CatalogueColumn::from_row)?;
    step(Step::Read {
        what: "columns",
        rows: declared.len(),
    });
    declared.extend(view_columns(session, &shapes, step)?);
    columns(declared, &shapes, &mut assembly);
    unique(session, &mut assembly, step)?;
    references(session, &mut assembly, step)?;
    let checked = session.read("reading checks", CHECKED, |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    step(Step::Read {
        what: "checks",
        rows: checked.len(),
    });
    for (table, sql) in checked {
        for list in closed_lists(&sql) {
            assembly.closed_list(&table, list, str::eq_ignore_ascii_case);
        }
    }
    Ok(assembly.finish(SourceKind::Sqlite, None))
}

/// Row estimates left by `ANALYZE`, if it ever ran.
fn estimates(
    session: &mut SqliteCatalogueSession,
    step: &mut dyn FnMut(Step),
) -> Result<HashMap<String, u64>, StoreError> {
    if session
        .read("reading estimates", ANALYZED, |_| Ok(()))?
        .is_empty()
    {
        return Ok(HashMap::new());
    }
    let rows = session.read("reading estimates", ESTIMATES, |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    })?;
    step(Step::Read {
        what: "estimates",
        rows: rows.len(),
    });
    Ok(rows
        .into_iter()
        .filter_map(|(table, rows)| Some((table, rows.try_into().ok()?)))
        .collect())
}

fn tables(
    session: &mut SqliteCatalogueSession,
    estimates: &HashMap<String, u64>,
    assembly: &mut TableAssembler,
    step: &mut dyn FnMut(Step),
) -> Result<HashMap<String, Shape>, StoreError> {
    let rows = session.read("reading tables", TABLES, |row| {
        let view = row.get::<_, String>(1)? == "view";
        let shape = Shape {
            view,
            without_rowid: row.get(2)?,
            strict: row.get(3)?,
        };
        Ok((row.get::<_, String>(0)?, shape))
    })?;
    step(Step::Read {
        what: "tables",
        rows: rows.len(),
    });
    for (name, shape) in &rows {
        let kind = if shape.view {
            TableKind::View
        } else {
            TableKind::Table
        };
        assembly.table(name.clone(), kind, estimates.get(name).copied(), None);
    }
    Ok(rows.into_iter().collect())
}

/// The columns of views. A single view over a missing table fails the statement for all, so each is
/// then read alone and the broken ones are named.
fn view_columns(
    session: &mut SqliteCatalogueSession,
    shapes: &HashMap<String, Shape>,
    step: &mut dyn FnMut(Step),
) -> Result<Vec<CatalogueColumn>, StoreError> {
    match session.read("reading views", COLUMNS_OF_VIEWS, CatalogueColumn::from_row) {
        Ok(rows) => {
            step(Step::Read {
                what: "views",
                rows: rows.len(),
            });
            return Ok(rows);
        }
        Err(StoreError::Failed { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut views: Vec<&String> = shapes
        .iter()
        .filter(|(_, shape)| shape.view)
        .map(|(name, _)| name)
        .collect();
    views.sort();
    let mut columns = Vec::new();
    for view in views {
        match session.read_with(
            "reading a view",
            COLUMNS_OF_TABLE,
            [view],
            CatalogueColumn::from_row,
        ) {
            Ok(rows) => columns.extend(rows),
            Err(StoreError::Failed { detail, .. }) => {
                step(Step::LeftOut {
                    table: view.clone(),
                    reason: detail.to_string(),
                });
            }
            Err(error) => return Err(error),
        }
    }
    step(Step::Read {
        what: "views",
        rows: columns.len(),
    });
    Ok(columns)
}

fn columns(
    declared: Vec<CatalogueColumn>,
    shapes: &HashMap<String, Shape>,
    assembly: &mut TableAssembler,
) {
    let mut keys: HashMap<String, Vec<(i64, String)>> = HashMap::new();
    for column in &declared {
        if column.key_place > 0 {
            let key = keys.entry(column.table.clone()).or_default();
            key.push((column.key_place, column.name.clone()));
        }
    }
    for column in declared {
        let shape = shapes.get(&column.table);
        let Some(shape) = shape.filter(|_| column.hidden != 1) else {
            continue;
        };
        // In other tables SQLite lets a primary key hold NULL, for compatibility with old files.
        let in_strict_key = column.key_place > 0 && (shape.without_rowid || shape.strict);
        let nullable = !column.not_null && !column.is_row_number && !in_strict_key;
        assembly.column(
            &column.table,
            Column {
                datatype: types::datatype(&column.declared),
                max_length: types::max_length(&column.declared),
                name: column.name,
                native_type: column.declared,
                many: false,
                nullable,
                one_of: Vec::new(),
                generated: column.hidden >= 2 || column.is_row_number,
                comment: None,
            },
        );
    }
    for (table, mut key) in keys {
        key.sort();
        assembly.key(
            &table,
            true,
            key.into_iter().map(|(_, name)| name).collect(),
        );
    }
}

fn unique(
    session: &mut SqliteCatalogueSession,
    assembly: &mut TableAssembler,
    step: &mut dyn FnMut(Step),
) -> Result<(), StoreError> {
    let rows = session.read("reading unique keys", UNIQUE, |row| {
        let index: (String, String) = (row.get(0)?, row.get(1)?);
        Ok((
            index,
            row.get::<_, Option<String>>(2)?,
            row.get::<_, i64>(3)?,
        ))
    })?;
    step(Step::Read {
        what: "unique keys",
        rows: rows.len(),
    });
    for index in rows.chunk_by(|a, b| a.0 == b.0) {
        let Some(((table, _), ..)) = index.first() else {
            continue;
        };
        // A negative number is the rowid or an expression: such an index is not a key over columns.
        let columns = index
            .iter()
            .map(|(_, name, cid)| name.clone().filter(|_| *cid >= 0));
        if let Some(columns) = columns.collect() {
            assembly.key(table, false, columns);
        }
    }
    Ok(())
}

fn references(
    session: &mut SqliteCatalogueSession,
    assembly: &mut TableAssembler,
    step: &mut dyn FnMut(Step),
) -> Result<(), StoreError> {
    let rows = session.read("reading references", REFERENCES, |row| {
        let key: (String, i64) = (row.get(0)?, row.get(1)?);
        let pair: (String, Option<String>) = (row.get(3)?, row.get(4)?);
        Ok((key, row.get::<_, String>(2)?, pair))
    })?;
    step(Step::Read {
        what: "references",
        rows: rows.len(),
    });
    let names = Names::from_assembly(assembly);
    for key in rows.chunk_by(|a, b| a.0 == b.0) {
        let Some(((table, _), target, _)) = key.first() else {
            continue;
        };
        let Some(to_table) = names.table(target) else {
            continue;
        };
        let columns = key
            .iter()
            .map(|(.., (from, _))| names.column(table, from))
            .collect();
        let to: Option<Vec<String>> = key.iter().map(|(.., (_, to))| to.clone()).collect();
        // A reference without named columns points to the other table's primary key.
        let to_columns = match to {
            Some(to) => to.iter().map(|it| names.column(&to_table, it)).collect(),
            None => names.primary_key(&to_table),
        };
        if let (Some(columns), Some(to_columns)) = (columns, to_columns) {
            assembly.foreign_key(
                table,
                ForeignKey {
                    columns,
                    to_table,
                    to_columns,
                },
            );
        }
    }
    Ok(())
}

/// The exact spelling of names, which a mapping needs. SQLite looks them up without regard to ASCII
/// case.
struct Names {
    tables: HashMap<String, String>,
    columns: HashMap<(String, String), String>,
    keys: HashMap<String, Vec<String>>,
}

impl Names {
    fn from_assembly(assembly: &TableAssembler) -> Self {
        let mut names = Self {
            tables: HashMap::new(),
            columns: HashMap::new(),
            keys: HashMap::new(),
        };
        for table in assembly.tables() {
            names
                .tables
                .insert(table.name.to_ascii_lowercase(), table.name.clone());
            names
                .keys
                .insert(table.name.clone(), table.primary_key.clone());
            for column in &table.columns {
                let place = (table.name.clone(), column.name.to_ascii_lowercase());
                names.columns.insert(place, column.name.clone());
            }
        }
        names
    }

    fn table(&self, name: &str) -> Option<String> {
        self.tables.get(&name.to_ascii_lowercase()).cloned()
    }

    fn column(&self, table: &str, name: &str) -> Option<String> {
        self.columns
            .get(&(table.to_owned(), name.to_ascii_lowercase()))
            .cloned()
    }

    fn primary_key(&self, table: &str) -> Option<Vec<String>> {
        self.keys.get(table).cloned()
    }
}
