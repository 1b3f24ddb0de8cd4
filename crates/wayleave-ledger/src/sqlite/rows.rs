//! Reads and writes entries as rows.

use rusqlite::{Connection, Row, params};

use super::error_mapping;
use crate::chain::{EntryHash, SealedEntry};
use crate::verify::Problem;

/// Why a scan stopped.
pub(super) enum ScanError {
    Database(rusqlite::Error),
    Problem(Problem),
}

impl From<rusqlite::Error> for ScanError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<Problem> for ScanError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// Inserts a row. The triggers check that its sequence number is the next one.
pub(super) fn insert(conn: &Connection, entry: &SealedEntry) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO entries (seq, at, kind, body, prev_hash, hash, signature) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        signed(entry.seq),
        entry.at,
        entry.kind,
        entry.body,
        entry.prev.as_bytes(),
        entry.hash.as_bytes(),
        entry.signature,
    ])?;
    Ok(())
}

/// Visits rows in order, from sequence number `from` (`None`: all, including invalid numbers that
/// only tampering can produce), at most `limit`.
pub(super) fn scan(
    conn: &Connection,
    from: Option<u64>,
    limit: Option<u32>,
    mut each: impl FnMut(SealedEntry) -> Result<(), Problem>,
) -> Result<(), ScanError> {
    let mut statement = conn.prepare_cached(
        "SELECT seq, at, kind, body, prev_hash, hash, signature FROM entries \
         WHERE seq >= ?1 ORDER BY seq LIMIT ?2",
    )?;
    let from = from.map_or(i64::MIN, signed);
    let mut rows = statement.query(params![from, limit.map_or(-1, i64::from)])?;
    while let Some(row) = rows.next()? {
        each(sealed(row)?)?;
    }
    Ok(())
}

/// The last sequence number; 0 in an empty table.
pub(super) fn last(conn: &Connection) -> rusqlite::Result<u64> {
    let last: Option<i64> = conn
        .prepare_cached("SELECT max(seq) FROM entries")?
        .query_row([], |row| row.get(0))?;
    Ok(last.and_then(|seq| u64::try_from(seq).ok()).unwrap_or(0))
}

/// The hash stored for a sequence number.
pub(super) fn hash_at(conn: &Connection, seq: u64) -> rusqlite::Result<Option<EntryHash>> {
    use rusqlite::OptionalExtension as _;
    conn.prepare_cached("SELECT hash FROM entries WHERE seq = ?1")?
        .query_row([signed(seq)], |row| row.get(0).map(EntryHash::from_bytes))
        .optional()
}

fn sealed(row: &Row<'_>) -> Result<SealedEntry, ScanError> {
    let place: i64 = row.get(0)?;
    let seq = u64::try_from(place).unwrap_or(0);
    let read = || {
        Ok(SealedEntry {
            seq,
            at: row.get(1)?,
            kind: row.get(2)?,
            body: row.get(3)?,
            prev: EntryHash::from_bytes(row.get(4)?),
            hash: EntryHash::from_bytes(row.get(5)?),
            signature: row.get(6)?,
        })
    };
    read().map_err(|error: rusqlite::Error| {
        if error_mapping::is_unreadable_value(&error) {
            ScanError::Problem(Problem::Unreadable { seq })
        } else {
            ScanError::Database(error)
        }
    })
}

/// SQLite integers are signed. No ledger reaches the difference.
fn signed(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
