//! Creates a new SQLite file, for a demo or an import. Reads never create one.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags};
use wayleave_store::{Detail, StoreError};

use super::error::store_error;

/// Creates a database at `path` from a script of our own. Fails if the path exists.
#[expect(
    clippy::disallowed_methods,
    reason = "a script of ours, of several statements"
)]
pub fn create_sqlite(path: &Path, script: &str) -> Result<(), StoreError> {
    const DOING: &str = "making the database";
    // SQLite itself has no flag for "must not exist".
    std::fs::File::create_new(path).map_err(|cause| StoreError::Failed {
        doing: DOING,
        code: None,
        detail: Detail::new(cause, []),
    })?;
    let failed = |cause: rusqlite::Error| store_error(DOING, Duration::ZERO, &cause);
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    connection.execute_batch(script).map_err(failed)
}
