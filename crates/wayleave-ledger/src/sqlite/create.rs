//! Making and opening the database file.
//!
//! A ledger is built under a passing name and appears whole, with its first entry, or not at
//! all. So a file that is empty or half made was never a ledger, and is refused, not adopted.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::{fault, rows, schema, session};
use crate::clock::Millis;
use crate::durable::{FolderLock, PASSING, Prepared};
use crate::error::{Action, DiskError, LedgerError, OpenError};
use crate::event::Event;

/// How long to wait for another process's write.
const BUSY: Duration = Duration::from_secs(5);

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Makes a new ledger with its first entry at `path`, unless one is there by then.
pub(super) fn create(path: &Path, at: Millis) -> Result<(), OpenError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let _lock = FolderLock::shared(folder)?;
    let ledger = uuid::Uuid::new_v4().to_string();
    let passing = folder.join(format!("{PASSING}ledger-{ledger}"));
    // Made here and not by SQLite, which would take its permissions from the umask.
    let prepared = Prepared::write(passing.clone(), b"", 0o600)?;
    build(&passing, at, &Event::LedgerCreated { ledger })?;
    prepared.sync()?;
    prepared.publish_new(path)?;
    Ok(())
}

fn build(path: &Path, at: Millis, event: &Event) -> Result<(), LedgerError> {
    let fault = fault::of(path);
    let conn = connect(path)?;
    // Without a write-ahead log, so that all is in the one file that will be published.
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
                action: Action::Remove,
                path: beside,
                source,
            }
            .into());
        }
    }
    Ok(())
}

/// Opens the ledger at `path`, and brings its schema up to date. Writes nothing to a file that
/// is not a ledger.
pub(super) fn open(path: &Path) -> Result<Connection, OpenError> {
    check_magic(path)?;
    let conn = connect(path)?;
    let fault = fault::of(path);
    let id: i64 = conn
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .map_err(fault)?;
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
    write_ahead(&conn).map_err(fault)?;
    if found < known {
        schema::migrate(&conn).map_err(fault)?;
    }
    Ok(conn)
}

fn check_magic(path: &Path) -> Result<(), OpenError> {
    let read = DiskError::wrap(Action::Read, path);
    let mut magic = Vec::with_capacity(MAGIC.len());
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) => return Err(read(error).into()),
    };
    file.take(MAGIC.len() as u64)
        .read_to_end(&mut magic)
        .map_err(read)?;
    if magic == MAGIC {
        return Ok(());
    }
    Err(OpenError::NotADatabase {
        path: path.to_owned(),
    })
}

fn connect(path: &Path) -> Result<Connection, LedgerError> {
    let fault = fault::of(path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(fault)?;
    configure(&conn).map_err(fault)?;
    Ok(conn)
}

fn configure(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(BUSY)?;
    // The file may have been prepared by someone hostile.
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
