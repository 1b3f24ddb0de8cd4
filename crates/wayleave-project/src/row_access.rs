//! The record of people who were shown rows: who, when, and of which stream. Never the rows.
//!
//! An access is recorded before any row is read, so that no row is shown without a record.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
};

use serde::{Deserialize, Serialize};
use wayleave_ledger::{FOLDER, Millis, rfc3339};

use crate::project::Project;

/// The file, inside the project's private folder: one JSON document per line.
pub const ROW_ACCESS_FILE: &str = "looks.jsonl";

/// A person's access to rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowAccess<'a> {
    /// Who was shown rows.
    pub who: &'a str,
    /// `sample` of a proposal, or `try` of a query.
    pub how: &'static str,
    /// The stream, if one was named.
    pub stream: &'a str,
    /// The proposal whose rows were shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<u64>,
    /// The token whose rights a query was tried with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<&'a str>,
}

/// Appends an access to the record.
pub fn record(project: &Project, access: &RowAccess<'_>, now: Millis) -> io::Result<()> {
    let mut line = serde_json::to_value(access)?;
    if let Some(members) = line.as_object_mut() {
        members.insert("at".to_owned(), rfc3339(now).into());
    }
    let path = project.folder().join(FOLDER).join(ROW_ACCESS_FILE);
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).mode(0o600).open(path)?;
    // One write, so that lines of several processes do not mix.
    file.write_all(format!("{line}\n").as_bytes())
}

/// An access, as read from the record.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RecordedRowAccess {
    /// Who was shown rows.
    pub who: String,
    /// When, as RFC 3339 in UTC.
    pub at: String,
    /// The stream, if one was named.
    #[serde(default)]
    pub stream: String,
    /// The proposal whose rows were shown.
    pub proposal: Option<u64>,
    /// The token whose rights a query was tried with.
    pub token: Option<String>,
}

/// Number of bytes read from the end of the file for the latest accesses.
const MAX_READ_BYTES: u64 = 64 * 1024;

/// The latest accesses, latest first. Skips lines that do not parse.
pub fn latest(project: &Project, limit: usize) -> io::Result<Vec<RecordedRowAccess>> {
    let path = project.folder().join(FOLDER).join(ROW_ACCESS_FILE);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_READ_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let accesses = text.lines().rev();
    let accesses = accesses.filter_map(|line| serde_json::from_str(line).ok());
    Ok(accesses.take(limit).collect())
}
