//! Creates and opens the database file.
//!
//! A ledger is built under a temporary name and published complete, with its first entry. So an
//! empty or incomplete file was never a ledger, and is refused.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{error_mapping, rows, schema, session};
use crate::clock::Millis;
use crate::durable::{FolderLock, PreparedFile, TEMP_PREFIX};
use crate::error::{DiskAction, DiskError, LedgerError, OpenError};
use crate::event::Event;
use crate::verify::Problem;

/// How long SQLite waits for another process's write lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    ReadWrite,
    /// For a copy, or a folder that cannot be written.
    ReadOnly,
}

/// The folder of a ledger's file.
#[expect(
    clippy::expect_used,
    reason = "the path of a file that was made or opened has a last component"
)]
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().expect("a ledger is a file in a folder")
}

/// Creates a ledger with its first entry at `path`, unless another process does so first.
pub(super) fn create(path: &Path, at: Millis) -> Result<(), OpenError> {
    let folder = folder(path);
    let _lock = FolderLock::shared(folder)?;
    let ledger = uuid::Uuid::new_v4().to_string();
    let temporary = folder.join(format!("{TEMP_PREFIX}ledger-{ledger}"));
    // Created here, because SQLite would take the permissions from the umask.
    let prepared = PreparedFile::write(temporary.clone(), b"", 0o600)?;
    build(&temporary, at, &Event::LedgerCreated { ledger })?;
    prepared.sync()?;
    prepared.publish_new(path)?;
    Ok(())
}

fn build(path: &Path, at: Millis, event: &Event) -> Result<(), LedgerError> {
    let fault = error_mapping::ledger_error(path);
    let conn = connect(path, Access::ReadWrite).map_err(fault)?;
    // Without a write-ahead log, so that everything is in the one file to publish.
    schema::migrate(&conn).map_err(fault)?;
    rows::insert(&conn, &session::seal(None, at, event, path)?).map_err(fault)?;
    write_ahead(&conn).map_err(fault)?;
    conn.close().map_err(|(_, error)| fault(error))?;
    for suffix in ["-wal", "-journal"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        let beside = PathBuf::from(beside);
        if beside.exists() {
            let source = io::Error::other("it should be empty and gone by now");
            return Err(DiskError {
                action: DiskAction::Remove,
                path: beside,
                source,
            }
            .into());
        }
    }
    Ok(())
}

/// Opens the ledger at `path`, and migrates its schema if it is writable. Writes nothing to a file
/// that is not a ledger.
pub(super) fn open(path: &Path, access: Access) -> Result<Connection, OpenError> {
    let not_a_database = || OpenError::NotADatabase {
        path: path.to_owned(),
    };
    // SQLite would treat an empty file as a new database.
    let found = fs::metadata(path).map_err(DiskError::wrap(DiskAction::Read, path))?;
    if !found.is_file() || found.len() == 0 {
        return Err(not_a_database());
    }
    let fault = error_mapping::ledger_error(path);
    let first_fault = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => not_a_database(),
        _ => fault(error).into(),
    };
    let conn = connect(path, access).map_err(first_fault)?;
    let id: i64 = conn
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .map_err(first_fault)?;
    let found = schema::version(&conn).map_err(fault)?;
    let known = schema::newest();
    if id != schema::APPLICATION_ID || found < 1 {
        return Err(OpenError::Foreign {
            path: path.to_owned(),
        });
    }
    if found > known {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    if access == Access::ReadWrite {
        // SQLite silently falls back to read-only if it cannot write.
        if conn.is_readonly("main").map_err(fault)? {
            return Err(read_only(path).into());
        }
        write_ahead(&conn).map_err(fault)?;
        if found < known {
            migrate(&conn, path)?;
        }
    } else if found < known {
        return Err(read_only(path).into());
    }
    Ok(conn)
}

/// Brings an older ledger up to date. One whose tables are not those of its version was altered,
/// such as by setting the version back.
fn migrate(conn: &Connection, path: &Path) -> Result<(), LedgerError> {
    schema::migrate(conn).map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::Unknown) => LedgerError::Tampered {
            ledger: path.display().to_string(),
            problem: Problem::SchemaAltered {
                object: "user_version".to_owned(),
            },
        },
        _ => error_mapping::ledger_error(path)(error),
    })
}

pub(super) fn read_only(path: &Path) -> LedgerError {
    LedgerError::ReadOnly {
        ledger: path.display().to_string(),
    }
}

fn connect(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = match access {
        Access::ReadWrite => {
            Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE)
        }
        Access::ReadOnly => {
            let flags = flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(read_only_uri(path), flags)
        }
    };
    let conn = conn?;
    configure(&conn)?;
    Ok(conn)
}

/// A database with a write-ahead log needs its shared-memory file, which SQLite creates if it may.
/// One with an empty log needs neither if it is opened as immutable.
fn read_only_uri(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let is_logged = fs::metadata(&log).is_ok_and(|log| log.len() > 0);
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' => uri.extend(b"%25"),
            b'?' => uri.extend(b"%3f"),
            b'#' => uri.extend(b"%23"),
            byte => uri.push(*byte),
        }
    }
    uri.extend(if is_logged {
        &b"?mode=ro"[..]
    } else {
        b"?mode=ro&immutable=1"
    });
    OsString::from_vec(uri).into()
}

fn configure(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(BUSY_TIMEOUT)?;
    // The file may come from an attacker.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    conn.pragma_update(None, "synchronous", "FULL")
}

fn write_ahead(conn: &Connection) -> rusqlite::Result<()> {
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode == "wal" {
        return Ok(());
    }
    Err(rusqlite::Error::InvalidParameterName(format!(
        "journal mode is `{mode}`, not `wal`"
    )))
}
