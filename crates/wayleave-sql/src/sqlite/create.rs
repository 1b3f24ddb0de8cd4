//! Making a new SQLite file, for a demo or an import. Reading never does.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags};
use wayleave_store::{Detail, StoreError};

use super::error::store_error;

/// Makes a database at `path` from a script of our own. Fails if something is there already.
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
        detail: Detail::scrubbed(cause, []),
    })?;
    let failed = |cause: rusqlite::Error| store_error(DOING, Duration::ZERO, &cause);
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    connection.execute_batch(script).map_err(failed)
}
