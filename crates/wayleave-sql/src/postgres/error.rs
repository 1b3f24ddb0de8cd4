//! Maps errors of PostgreSQL and its driver to [`StoreError`].

use std::error::Error;
use std::io;

use tokio_postgres::error::SqlState;
use wayleave_store::{Limits, StoreError};

use super::cleartext::CleartextRefused;
use crate::dsn::Server;
use crate::tls;

/// Maps a failure, by SQLSTATE where the server gave one.
pub(super) fn store_error(
    server: &Server,
    limits: Limits,
    doing: &'static str,
    error: &tokio_postgres::Error,
) -> StoreError {
    match error.as_db_error() {
        Some(said) => server_error(server, limits, doing, said.code(), said.message()),
        None => session_error(server, doing, error),
    }
}

/// Maps a network failure.
pub(super) fn io_error(server: &Server, what: &str, error: &io::Error) -> StoreError {
    let detail = server.detail(format!("{what}: {error}"));
    if tls::is_failure(error) {
        StoreError::Tls { detail }
    } else {
        StoreError::Unreachable { detail }
    }
}

fn server_error(
    server: &Server,
    limits: Limits,
    doing: &'static str,
    code: &SqlState,
    message: &str,
) -> StoreError {
    let detail = server.detail(message);
    match code {
        &SqlState::INVALID_PASSWORD
        | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION
        | &SqlState::INSUFFICIENT_PRIVILEGE => StoreError::Denied { detail },
        &SqlState::INVALID_CATALOG_NAME => StoreError::Missing { detail },
        &SqlState::QUERY_CANCELED
        | &SqlState::LOCK_NOT_AVAILABLE
        | &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => StoreError::Timeout {
            doing,
            limit: limits.statement,
        },
        &SqlState::TOO_MANY_CONNECTIONS
        | &SqlState::CANNOT_CONNECT_NOW
        | &SqlState::ADMIN_SHUTDOWN
        | &SqlState::CRASH_SHUTDOWN => StoreError::Unreachable { detail },
        &SqlState::NUMERIC_VALUE_OUT_OF_RANGE | &SqlState::DATETIME_FIELD_OVERFLOW => {
            StoreError::OutOfRange { detail }
        }
        code => StoreError::Failed {
            doing,
            code: Some(code.code().to_owned()),
            detail,
        },
    }
}

/// Maps a failure below the protocol: the network, TLS, or a server that is not PostgreSQL.
fn session_error(
    server: &Server,
    doing: &'static str,
    error: &tokio_postgres::Error,
) -> StoreError {
    let mut causes = Vec::new();
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(this) = cause {
        causes.push(this);
        cause = this.source();
    }
    let words: Vec<String> = causes.iter().map(ToString::to_string).collect();
    let detail = server.detail(words.join(": "));
    let refused = causes.iter().any(|it| is_cleartext_refusal(*it));
    let secure = refused || causes.iter().any(|it| tls::is_failure(*it));
    // The driver has no public error kind for this; match its fixed wording.
    if secure || words.first().is_some_and(|it| it.contains("TLS")) {
        return StoreError::Tls { detail };
    }
    if error.is_closed() || causes.iter().any(|it| it.is::<io::Error>()) {
        return StoreError::Unreachable { detail };
    }
    if words
        .first()
        .is_some_and(|it| it.contains("authenti") || it.contains("password"))
    {
        return StoreError::Denied { detail };
    }
    StoreError::Failed {
        doing,
        code: None,
        detail,
    }
}

fn is_cleartext_refusal(error: &(dyn Error + 'static)) -> bool {
    let inside = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    inside.is_some_and(<dyn Error + Send + Sync>::is::<CleartextRefused>)
}
