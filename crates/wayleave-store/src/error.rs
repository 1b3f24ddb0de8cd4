//! The errors of a store, whose messages contain no secret.
//!
//! Drivers put hosts, users, statements and sometimes passwords into their messages. A
//! [`StoreError`] carries a driver's words only as a [`Detail`], which is scrubbed when it is made.

use std::fmt;
use std::time::Duration;

use thiserror::Error;
use wayleave_model::mapping::Datatype;

/// Why a source did not answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The DSN cannot be parsed. The reason quotes none of it.
    #[error("the DSN is not valid: {reason}")]
    BadDsn {
        /// The error, in words fixed at compile time.
        reason: &'static str,
    },
    /// No session could be opened.
    #[error("the source cannot be reached")]
    Unreachable {
        /// The driver's message.
        #[source]
        detail: Detail,
    },
    /// The source has no such database or file.
    #[error("the source does not exist")]
    Missing {
        /// The driver's message.
        #[source]
        detail: Detail,
    },
    /// The source refused the credentials, or the role may not read.
    #[error("the source refused access")]
    Denied {
        /// The driver's message.
        #[source]
        detail: Detail,
    },
    /// A session was opened, but its answers cannot be trusted.
    #[error("a session of the source is refused: {reason}")]
    SessionRefused {
        /// The problem, in words fixed at compile time.
        reason: &'static str,
    },
    /// TLS was required and could not be established.
    #[error("a TLS session could not be established")]
    Tls {
        /// The TLS library's message.
        #[source]
        detail: Detail,
    },
    /// An answer did not come in time.
    #[error("the source did not answer in {} ms while {doing}", limit.as_millis())]
    Timeout {
        /// The current activity: `connecting`, `reading columns`, …
        doing: &'static str,
        /// The limit that was exceeded.
        limit: Duration,
    },
    /// The file is not a database, or is damaged.
    #[error("the source is not readable as a database")]
    NotADatabase {
        /// The driver's message.
        #[source]
        detail: Detail,
    },
    /// The store cannot do what was requested.
    #[error("the source does not support {what}")]
    Unsupported {
        /// The missing ability.
        what: &'static str,
    },
    /// The schema does not exist, or the role cannot see it.
    #[error("{}", no_schema(schema.as_deref()))]
    NoSchema {
        /// The requested schema; `None` if none was requested and the source has no default.
        schema: Option<String>,
        /// The visible schemas, sorted.
        visible: Vec<String>,
    },
    /// A table or column that the mapping names no longer exists.
    #[error("{} is not in the source any more", missing(table, column.as_deref()))]
    SchemaDrift {
        /// The table.
        table: String,
        /// The column; `None` if the whole table is missing.
        column: Option<String>,
    },
    /// A stream is suspended, because it no longer fits its source. The store is not read.
    #[error("stream `{stream}` is suspended: its source does not fit the mapping")]
    Suspended {
        /// The stream.
        stream: String,
    },
    /// A value in the store is not of the datatype that the mapping gives its column.
    #[error("a value of column `{column}` is not of datatype `{datatype}`")]
    MalformedValue {
        /// The column.
        column: String,
        /// The datatype.
        datatype: Datatype,
    },
    /// Every session is taken, and none came free in time.
    #[error("the source is busy: no session came free in {} ms", waited.as_millis())]
    Busy {
        /// Time that the read waited.
        waited: Duration,
    },
    /// Another program holds the file's lock, and did not release it in time.
    #[error("the source is locked by another program; gave up after {} ms", waited.as_millis())]
    Locked {
        /// Time that the read waited.
        waited: Duration,
    },
    /// The result is beyond what the store can compute: a sum too great for its numbers, a time
    /// before or after its calendar.
    #[error("a result is out of the range of the source's numbers or times")]
    OutOfRange {
        /// The driver's message.
        #[source]
        detail: Detail,
    },
    /// Nobody wants the answer any more.
    #[error("the read was cancelled")]
    Cancelled,
    /// The store failed on one of our statements.
    #[error("the source failed while {doing}")]
    Failed {
        /// The current activity.
        doing: &'static str,
        /// The store's own code: an SQLSTATE, a result code.
        code: Option<String>,
        /// The driver's message.
        #[source]
        detail: Detail,
    },
}

impl StoreError {
    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::BadDsn { .. } => {
                "a DSN is a scheme (`postgres`, `mysql`), `://`, user and password with a colon \
                 between them, `@`, host, port and database, or the path of a SQLite file; \
                 percent-encode special characters"
            }
            Self::Unreachable { .. } => {
                "check that the server runs and that host and port are right"
            }
            Self::Missing { .. } => {
                "check the database name or the file's path; a missing file is never created"
            }
            Self::Denied { .. } => "check user and password, and that the role may read",
            Self::SessionRefused { .. } => {
                "connect to the server itself, or through a pooler that pools sessions"
            }
            Self::Tls { .. } => {
                "name the server's authority with `sslrootcert=/path/ca.pem`, or choose another `sslmode`"
            }
            Self::Timeout { .. } => "check the server's load, or allow more time",
            Self::NotADatabase { .. } => {
                "check that the path names a database and not another file"
            }
            Self::Unsupported { .. } => "see the reference of this kind of source",
            Self::NoSchema { .. } => "name one of the visible schemas",
            Self::SchemaDrift { .. } => {
                "run `wayleave check --live` to see what changed, then ratify the mapping again"
            }
            Self::Suspended { .. } => {
                "run `wayleave doctor` to see what changed; correct the source, or ratify the mapping again"
            }
            Self::MalformedValue { .. } => {
                "map the column with the datatype of what it holds, or leave the field out"
            }
            Self::Busy { .. } => "try again in a moment, or allow the source more sessions",
            Self::Locked { .. } => "try again when the other program is done with the file",
            Self::OutOfRange { .. } => "exclude the extreme values with a filter",
            Self::Cancelled => "the caller cancelled it; no action is needed",
            Self::Failed { .. } => "see the store's own message in the detail",
        }
    }

    /// Whether a changed source could explain the error, so that it should be compared with its
    /// mapping.
    pub fn suggests_drift(&self) -> bool {
        matches!(
            self,
            Self::SchemaDrift { .. }
                | Self::MalformedValue { .. }
                | Self::Unsupported { .. }
                | Self::Failed { .. }
                | Self::NoSchema { .. }
        )
    }

    /// Whether the same call may succeed later with nothing changed by the operator.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Timeout { .. }
                | Self::Busy { .. }
                | Self::Locked { .. }
        )
    }
}

fn no_schema(schema: Option<&str>) -> String {
    match schema {
        Some(schema) => format!("no schema `{schema}` is visible in the source"),
        None => "no schema is named, and the source has no default one".to_owned(),
    }
}

fn missing(table: &str, column: Option<&str>) -> String {
    match column {
        Some(column) => format!("column `{column}` of table `{table}`"),
        None => format!("table `{table}`"),
    }
}

/// A driver's message with every secret of the session replaced.
#[derive(Clone, PartialEq, Eq)]
pub struct Detail(String);

impl Detail {
    /// Maximum length of a detail, in characters.
    const MAX_DETAIL_CHARS: usize = 400;

    /// Takes a message, replacing each of `secrets` by `***` and control characters by spaces.
    pub fn new<'a>(message: impl fmt::Display, secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut text = message.to_string();
        let mut secrets: Vec<&str> = secrets.into_iter().filter(|it| !it.is_empty()).collect();
        // Replace the longest first: a secret may contain another.
        secrets.sort_by_key(|it| std::cmp::Reverse(it.len()));
        for secret in secrets {
            text = text.replace(secret, "***");
        }
        let one_line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        Self(one_line.take(Self::MAX_DETAIL_CHARS).collect())
    }

    /// A fixed message of our own.
    pub fn from_static(words: &'static str) -> Self {
        Self(words.to_owned())
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::error::Error for Detail {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_holds_no_secret_whole_or_nested() {
        let detail = Detail::new(
            "login bob:hunter2hunter failed\nfor hunter2",
            ["hunter2", "hunter2hunter", ""],
        );
        assert_eq!(detail.to_string(), "login bob:*** failed for ***");
        assert_eq!(format!("{detail:?}"), "\"login bob:*** failed for ***\"");
    }

    #[test]
    fn a_detail_is_bounded() {
        let detail = Detail::new("é".repeat(10_000), []);
        assert_eq!(detail.to_string().chars().count(), Detail::MAX_DETAIL_CHARS);
    }

    #[test]
    fn every_error_tells_what_to_do_next() {
        let error = StoreError::NoSchema {
            schema: Some("pubic".into()),
            visible: vec!["public".into()],
        };
        assert_eq!(
            error.to_string(),
            "no schema `pubic` is visible in the source"
        );
        assert!(!error.hint().is_empty());
        assert!(!error.is_retryable());
    }

    #[test]
    fn a_source_without_a_default_schema_is_not_said_to_miss_one() {
        let error = StoreError::NoSchema {
            schema: None,
            visible: vec!["crm".into()],
        };
        assert_eq!(
            error.to_string(),
            "no schema is named, and the source has no default one"
        );
    }
}
