//! Opens a file in a session that cannot change it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, Row};
use wayleave_store::{Detail, Limits, StoreError};

use super::dsn::SqliteFile;
use super::error::store_error;

/// Virtual machine steps between two checks of whether a statement must stop.
pub(super) const STEPS_PER_CHECK: i32 = 1_000;

/// Interrupts the sessions that watch it when it is dropped.
#[derive(Default)]
pub(super) struct InterruptOnDrop(Arc<()>);

impl InterruptOnDrop {
    pub(super) fn watch(&self) -> Weak<()> {
        Arc::downgrade(&self.0)
    }
}

/// A read-only session for the catalogue.
pub(super) struct SqliteCatalogueSession {
    connection: Connection,
    statement_limit: Duration,
    wanted: Weak<()>,
}

impl SqliteCatalogueSession {
    /// Opens an existing file. Never creates one, and writes no sidecar file where `immutable` is
    /// promised.
    pub(super) fn open(
        file: &SqliteFile,
        limits: Limits,
        wanted: Weak<()>,
    ) -> Result<Self, StoreError> {
        let exists = std::fs::metadata(&file.path);
        match exists {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return Err(not_a_file()),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return Err(StoreError::Denied {
                    detail: Detail::new(error, []),
                });
            }
            Err(error) => {
                return Err(StoreError::Missing {
                    detail: Detail::new(error, []),
                });
            }
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| store_error("opening the file", limits.statement, &error);
        let connection = if file.immutable {
            let uri = immutable_uri(file)?;
            Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
        } else {
            Connection::open_with_flags(&file.path, flags)
        }
        .map_err(failed)?;
        harden(&connection, limits).map_err(failed)?;
        Ok(Self {
            connection,
            statement_limit: limits.statement,
            wanted,
        })
    }

    /// The connection, for reads beyond the catalogue.
    pub(super) fn into_connection(self) -> Connection {
        self.connection
    }

    /// Reads the file's header, which reveals a file that is not a database.
    pub(super) fn ping(&mut self) -> Result<(), StoreError> {
        self.read("reading the header", "PRAGMA schema_version", |_| Ok(()))
            .map(|_| ())
    }

    /// Runs one of our constant statements within the statement time limit.
    pub(super) fn read<T>(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.read_with(doing, sql, [], row)
    }

    /// Like [`read`](Self::read), with bound values.
    pub(super) fn read_with<T>(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        values: impl rusqlite::Params,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.run(doing, sql, values, row)
    }

    /// Runs a statement that samples a column.
    pub(super) fn sample<T>(
        &mut self,
        doing: &'static str,
        sql: &str,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.run(doing, sql, [], row)
    }

    fn run<T>(
        &mut self,
        doing: &'static str,
        sql: &str,
        values: impl rusqlite::Params,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let failed = |error| store_error(doing, self.statement_limit, &error);
        let deadline = Instant::now().checked_add(self.statement_limit);
        let wanted = self.wanted.clone();
        let stop =
            move || wanted.strong_count() == 0 || deadline.is_some_and(|it| Instant::now() >= it);
        self.connection
            .progress_handler(STEPS_PER_CHECK, Some(stop))
            .map_err(failed)?;
        let mut statement = self.connection.prepare(sql).map_err(failed)?;
        let rows = statement.query_map(values, row).map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }
}

/// Closes what a read-only open still allows: temporary tables, attached files, and anything that
/// the file's own schema could trigger (a schema is input too).
fn harden(connection: &Connection, limits: Limits) -> rusqlite::Result<()> {
    connection.busy_timeout(limits.connect)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.pragma_update(None, "query_only", true)
}

fn not_a_file() -> StoreError {
    StoreError::NotADatabase {
        detail: Detail::from_static("the path is not a file"),
    }
}

/// SQLite's URI for a path, with every byte encoded that could mean something else.
fn immutable_uri(file: &SqliteFile) -> Result<String, StoreError> {
    let absolute = std::path::absolute(&file.path).map_err(|_| not_a_file())?;
    let mut uri = url::Url::from_file_path(absolute).map_err(|()| not_a_file())?;
    uri.set_query(Some("immutable=1"));
    Ok(uri.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tries what must fail")]
    fn a_session_cannot_write_nor_attach() {
        let (_folder, path) = wayleave_test::sqlite_file("CREATE TABLE t (id INTEGER)").unwrap();
        for immutable in [false, true] {
            let wanted = InterruptOnDrop::default();
            let file = SqliteFile {
                path: path.clone(),
                immutable,
            };
            let session =
                SqliteCatalogueSession::open(&file, Limits::default(), wanted.watch()).unwrap();
            for sql in [
                "INSERT INTO t VALUES (1)",
                "CREATE TABLE u (id INTEGER)",
                "CREATE TEMP TABLE u (id INTEGER)",
                "ATTACH ':memory:' AS other",
                "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = ''",
            ] {
                assert!(session.connection.execute_batch(sql).is_err(), "{sql}");
            }
        }
    }

    #[test]
    fn work_that_nobody_waits_for_is_stopped() {
        let (_folder, path) = wayleave_test::sqlite_file("CREATE TABLE t (id INTEGER)").unwrap();
        let wanted = InterruptOnDrop::default();
        let file = SqliteFile {
            path,
            immutable: false,
        };
        let mut session =
            SqliteCatalogueSession::open(&file, Limits::default(), wanted.watch()).unwrap();
        drop(wanted);
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                       SELECT count(*) FROM n";
        let error = session
            .read("counting without end", endless, |_| Ok(()))
            .unwrap_err();
        assert!(matches!(error, StoreError::Timeout { .. }), "{error:?}");
    }
}
