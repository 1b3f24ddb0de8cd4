//! The columns that the indexes of a table order by code point, in index order.

use rusqlite::{CachedStatement, Connection, Result};
use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Comparison, Predicate};

use super::dialect::form::Form;

const PATHS: &str = "SELECT i.name, c.name, c.coll FROM pragma_index_list(?1) AS i \
    JOIN pragma_index_xinfo(i.name) AS c WHERE NOT i.partial AND c.\"key\" ORDER BY i.seq, c.seqno";
const PARTIAL_INDEXES: &str = "SELECT i.name, c.name, s.sql FROM pragma_index_list(?1) AS i \
    JOIN pragma_index_xinfo(i.name) AS c JOIN sqlite_schema AS s ON s.name = i.name \
    WHERE i.partial AND c.seqno = 0 AND s.type = 'index'";
const FOLDED: &str = "SELECT c.name FROM pragma_index_list(?1) AS i \
    JOIN pragma_index_xinfo(i.name) AS c WHERE NOT i.partial AND c.seqno = 0 AND c.name IS NOT NULL \
    GROUP BY c.name HAVING min(c.coll = 'NOCASE')";
const UNIQUE: &str = "SELECT i.name, c.name FROM pragma_index_list(?1, 'main') AS i \
    JOIN pragma_index_xinfo(i.name, 'main') AS c WHERE i.\"unique\" AND NOT i.partial AND c.\"key\" \
    ORDER BY i.seq, c.seqno";
const ROW_NUMBER: &str = "SELECT name, type FROM pragma_table_xinfo(?1) WHERE pk > 0";

/// The indexes of a table.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    /// The leading columns of each index that are plain columns compared by code point.
    paths: Vec<Vec<String>>,
    /// The partial indexes of values that do not match a form: index, column, form.
    nonconforming: Vec<(String, String, Form)>,
}

impl Indexes {
    /// Reads the indexes of a table.
    pub(super) fn read(connection: &Connection, table: &str) -> Result<Self> {
        let mut paths: Vec<(String, Vec<String>, bool)> = Vec::new();
        let mut statement = connection.prepare_cached(PATHS)?;
        let mut rows = statement.query([table])?;
        while let Some(row) = rows.next()? {
            let (index, column) = (row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?);
            let by_code_point = row.get::<_, Option<String>>(2)?.as_deref() == Some("BINARY");
            if paths.last().is_none_or(|(last, ..)| *last != index) {
                paths.push((index, Vec::new(), true));
            }
            if let Some((_, path, open)) = paths.last_mut() {
                match column.filter(|_| *open && by_code_point) {
                    Some(column) => path.push(column),
                    // An expression, or another collation.
                    None => *open = false,
                }
            }
        }
        let mut paths: Vec<Vec<String>> = paths.into_iter().map(|(_, path, _)| path).collect();
        paths.extend(row_number(connection, table)?.map(|column| vec![column]));
        let mut nonconforming = Vec::new();
        let mut statement = connection.prepare_cached(PARTIAL_INDEXES)?;
        let mut rows = statement.query([table])?;
        while let Some(row) = rows.next()? {
            if let (Some(column), Some(form)) = (
                row.get::<_, Option<String>>(1)?,
                Form::from_pattern(&row.get::<_, String>(2)?),
            ) {
                nonconforming.push((row.get(0)?, column, form));
            }
        }
        Ok(Self {
            paths,
            nonconforming,
        })
    }

    /// The columns for which every index that begins with them ignores ASCII case.
    pub(super) fn folded(connection: &Connection, table: &str) -> Result<Vec<String>> {
        let mut statement = connection.prepare_cached(FOLDED)?;
        let columns = statement.query_map([table], |row| row.get(0))?;
        columns.collect()
    }

    /// The sets of columns that indexes keep unique, and the rowid column.
    pub(super) fn unique(connection: &Connection, table: &str) -> Result<Vec<Vec<String>>> {
        let mut statement = connection.prepare_cached(UNIQUE)?;
        let rows = statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows: Vec<(String, Option<String>)> = rows.collect::<Result<_>>()?;
        let sets = rows.chunk_by(|a, b| a.0 == b.0);
        // An expression is no column.
        let sets = sets.filter_map(|set| set.iter().map(|(_, column)| column.clone()).collect());
        let number = row_number(connection, table)?.map(|column| vec![column]);
        Ok(sets.chain(number).collect())
    }

    /// The equalities of the predicate that an index needs before it orders by a column; `None` if
    /// no index does.
    pub(super) fn leading_equalities(
        &self,
        column: &str,
        predicate: &Predicate,
    ) -> Option<Vec<Predicate>> {
        let path = |path: &Vec<String>| -> Option<Vec<Predicate>> {
            let place = path.iter().position(|it| it == column)?;
            let before = path.iter().take(place);
            before.map(|it| equal(predicate, it).cloned()).collect()
        };
        self.paths.iter().filter_map(path).min_by_key(Vec::len)
    }

    /// An equality of a predicate whose rows an index finds.
    pub(super) fn indexed_equality<'a>(&self, predicate: &'a Predicate) -> Option<&'a Predicate> {
        let mut first = self.paths.iter().filter_map(|path| path.first());
        first.find_map(|column| equal(predicate, column))
    }

    /// A partial index of the values of a column that do not match a form.
    pub(super) fn nonconforming(&self, column: &str) -> Option<(String, Form)> {
        let found = self.nonconforming.iter().find(|(_, of, _)| of == column)?;
        Some((found.0.clone(), found.2))
    }
}

/// The column that is the rowid.
pub(super) fn row_number(connection: &Connection, table: &str) -> Result<Option<String>> {
    let keys = pairs(connection.prepare_cached(ROW_NUMBER)?, table)?;
    Ok(match keys.as_slice() {
        [(column, declared)] if declared.eq_ignore_ascii_case("INTEGER") => Some(column.clone()),
        _ => None,
    })
}

fn pairs(mut statement: CachedStatement<'_>, table: &str) -> Result<Vec<(String, String)>> {
    let rows = statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// The equality of a predicate for a column, if an index can answer it.
pub(super) fn equal<'a>(predicate: &'a Predicate, name: &str) -> Option<&'a Predicate> {
    match predicate {
        Predicate::And(parts) => parts.iter().find_map(|part| equal(part, name)),
        Predicate::Granted(granted) => equal(granted, name),
        Predicate::Compare {
            column,
            comparison: Comparison::Eq,
            ..
        } if column.own_name() == Some(name)
            && !matches!(
                column.datatype,
                Datatype::Boolean | Datatype::Datetime | Datatype::Json
            ) =>
        {
            Some(predicate)
        }
        _ => None,
    }
}
