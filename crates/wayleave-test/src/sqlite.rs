//! SQLite files.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::StartError;

/// Creates a SQLite file with the contents that `sql` makes; it is removed with the returned
/// folder.
pub fn sqlite_file(sql: &str) -> Result<(TempDir, PathBuf), StartError> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("fixture.db");
    let failed = |error: rusqlite::Error| StartError::Statement {
        database: "fixture.db".to_owned(),
        reason: error.to_string(),
    };
    let connection = rusqlite::Connection::open(&path).map_err(failed)?;
    connection
        .execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;")
        .map_err(failed)?;
    connection
        .execute_batch(&format!("BEGIN; {sql}\n; COMMIT;"))
        .map_err(failed)?;
    Ok((folder, path))
}

/// Runs statements on a SQLite file, as its owner.
pub fn sqlite_execute(path: &str, sql: &str) -> Result<(), StartError> {
    let failed = |error: rusqlite::Error| StartError::Statement {
        database: path.to_owned(),
        reason: error.to_string(),
    };
    let connection = rusqlite::Connection::open(path).map_err(failed)?;
    connection
        .busy_timeout(std::time::Duration::from_secs(10))
        .map_err(failed)?;
    connection.execute_batch(sql).map_err(failed)
}

/// A lock on a SQLite file, which nobody else can read until this is dropped.
pub struct SqliteLock {
    _held: rusqlite::Connection,
}

/// Locks a SQLite file, like a program in a long write.
pub fn sqlite_lock(path: &str) -> Result<SqliteLock, StartError> {
    let failed = |error: rusqlite::Error| StartError::Statement {
        database: path.to_owned(),
        reason: error.to_string(),
    };
    let held = rusqlite::Connection::open(path).map_err(failed)?;
    held.execute_batch("BEGIN EXCLUSIVE").map_err(failed)?;
    Ok(SqliteLock { _held: held })
}
