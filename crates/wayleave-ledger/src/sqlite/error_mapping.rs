//! Maps SQLite errors to ledger errors.

use std::io;
use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use crate::error::{DiskAction, DiskError, LedgerError};

/// Maps a database error of the ledger at `path`.
pub(super) fn ledger_error(path: &Path) -> impl Fn(Error) -> LedgerError + Copy + '_ {
    move |error| {
        let ledger = path.display().to_string();
        let disk = |action, kind| {
            let source = io::Error::new(kind, error.to_string());
            LedgerError::Disk(DiskError {
                action,
                path: path.to_owned(),
                source,
            })
        };
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                LedgerError::Busy { ledger }
            }
            Some(ErrorCode::ReadOnly) => LedgerError::ReadOnly { ledger },
            Some(ErrorCode::DiskFull) => disk(DiskAction::Write, io::ErrorKind::StorageFull),
            Some(ErrorCode::SystemIoFailure) => disk(failed_action(&error), io::ErrorKind::Other),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => LedgerError::Corrupt {
                ledger,
                cause: Box::new(error),
            },
            _ => LedgerError::Database {
                ledger,
                cause: Box::new(error),
            },
        }
    }
}

/// Maps the error of committing entry `seq`. After an I/O error the write-ahead log may hold the
/// whole transaction, which the next process to open it would then find.
pub(super) fn commit_error(path: &Path, seq: u64) -> impl Fn(Error) -> LedgerError + '_ {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) => LedgerError::Uncertain {
            ledger: path.display().to_string(),
            seq,
            cause: Box::new(error),
        },
        _ => ledger_error(path)(error),
    }
}

/// The system call of SQLite that failed.
fn failed_action(error: &Error) -> DiskAction {
    match error.sqlite_error().map(|error| error.extended_code) {
        Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => DiskAction::Sync,
        Some(ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ) => DiskAction::Read,
        _ => DiskAction::Write,
    }
}

/// Whether a stored value does not have the type or form it was written with.
pub(super) fn is_unreadable_value(error: &Error) -> bool {
    matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::InvalidColumnType(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
    )
}
