//! The DSN of a SQLite file: a path.

use std::path::PathBuf;

use wayleave_store::StoreError;

use crate::dsn::{bad, decoded};

/// Parameters allowed after the `?`.
pub(super) const PARAMETERS: [&str; 1] = ["immutable"];

/// A SQLite file.
#[derive(Clone)]
pub(crate) struct SqliteFile {
    pub(crate) path: PathBuf,
    /// Whether the operator promises that nothing writes to the file, so that no lock is needed.
    pub(crate) immutable: bool,
}

impl SqliteFile {
    pub(crate) fn parse(text: &str) -> Result<Self, StoreError> {
        let Some(rest) = text.strip_prefix("sqlite:") else {
            if text.contains("://") {
                return Err(bad("a SQLite source takes `sqlite:` or a path"));
            }
            return Ok(Self {
                path: PathBuf::from(text),
                immutable: false,
            });
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() {
            return Err(bad("it names no file"));
        }
        let mut immutable = false;
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match (name.as_ref(), value.as_ref()) {
                ("immutable", "1") => immutable = true,
                ("immutable", "0") => immutable = false,
                _ => {
                    return Err(bad(
                        "a SQLite source takes only the parameter `immutable`, `0` or `1`",
                    ));
                }
            }
        }
        Ok(Self {
            path: PathBuf::from(decoded(path)?),
            immutable,
        })
    }
}
