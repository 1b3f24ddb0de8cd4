//! Maps errors of SQLite to [`StoreError`].

use std::time::Duration;

use rusqlite::ErrorCode;
use wayleave_store::{Detail, StoreError};

use super::pool::LOCK_TIMEOUT;

/// Maps the failure of one statement. A file has no password, and SQLite does not quote its path.
pub(super) fn store_error(
    doing: &'static str,
    limit: Duration,
    error: &rusqlite::Error,
) -> StoreError {
    let detail = Detail::new(error, []);
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            StoreError::NotADatabase { detail }
        }
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
            StoreError::Denied { detail }
        }
        Some(ErrorCode::OperationInterrupted) => StoreError::Timeout { doing, limit },
        // Another program holds the file's lock, and will release it.
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked {
            waited: LOCK_TIMEOUT,
        },
        Some(ErrorCode::CannotOpen) => {
            // rusqlite includes the path in this message.
            let detail = Detail::from_static("SQLite cannot open the file");
            StoreError::Unreachable { detail }
        }
        code => StoreError::Failed {
            doing,
            code: code.map(|it| format!("{it:?}")),
            detail,
        },
    }
}

/// The error for a working thread that ended without an answer.
pub(super) fn ended(error: &tokio::task::JoinError) -> StoreError {
    let detail = Detail::new(error, []);
    StoreError::Failed {
        doing: "waiting for the reading thread",
        code: None,
        detail,
    }
}
