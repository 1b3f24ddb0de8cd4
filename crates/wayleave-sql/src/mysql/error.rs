//! Maps errors of MySQL, MariaDB and their driver to [`StoreError`].

use mysql_async::{DriverError, Error, IoError};
use wayleave_store::{Limits, StoreError};

use crate::dsn::Server;
use crate::tls;

/// Maps a failure, by the server's error number where it gave one.
pub(super) fn store_error(
    server: &Server,
    limits: Limits,
    doing: &'static str,
    error: &Error,
) -> StoreError {
    let detail = server.detail(error);
    match error {
        Error::Server(said) => match said.code {
            // Access denied: at login, to the database, without a password, to a table or column.
            1044 | 1045 | 1142 | 1143 | 1227 | 1698 => StoreError::Denied { detail },
            1049 => StoreError::Missing { detail },
            // The statement ran out of time (MariaDB, MySQL), was cancelled, or waited too long for
            // a lock.
            1969 | 3024 | 1317 | 1205 => StoreError::Timeout {
                doing,
                limit: limits.statement,
            },
            // Too many connections; shutting down.
            1040 | 1053 => StoreError::Unreachable { detail },
            // A value is out of range for its type.
            1690 => StoreError::OutOfRange { detail },
            code => StoreError::Failed {
                doing,
                code: Some(code.to_string()),
                detail,
            },
        },
        Error::Io(IoError::Tls(_)) | Error::Driver(DriverError::NoClientSslFlagFromServer) => {
            StoreError::Tls { detail }
        }
        Error::Io(IoError::Io(said)) if tls::is_failure(said) => StoreError::Tls { detail },
        Error::Io(IoError::Io(_)) | Error::Driver(DriverError::ConnectionClosed) => {
            StoreError::Unreachable { detail }
        }
        Error::Driver(_) | Error::Other(_) | Error::Url(_) => StoreError::Failed {
            doing,
            code: None,
            detail,
        },
    }
}
