//! Copies a ledger while other processes may write to it.
//!
//! SQLite writes the copy from one read transaction, so it is the ledger as of one moment. Its head
//! file is written for that moment, not copied: the file beside the original may be ahead of it.

use std::path::Path;

use super::create::{self, Access};
use super::error_mapping;
use super::rows::{self, ScanError};
use super::session::{Session, scan_error};
use crate::chain::Head;
use crate::durable::PreparedFile;
use crate::error::LedgerError;
use crate::head::HeadFile;
use crate::verify::Problem;

impl Session {
    /// Copies the ledger and its head into an empty folder. Fails if the copy does not pass through
    /// the head that was published when it began.
    pub(super) fn copy_into(&self, folder: &Path) -> Result<Head, LedgerError> {
        // Before the copy: a head published later may name an entry that is not in it.
        let known = self.head_file.read()?;
        let path = folder.join("ledger.db");
        // Created here, because SQLite would take the permissions from the umask.
        PreparedFile::write(path.clone(), b"", 0o600)?.keep_in_place();
        let target = path.to_string_lossy().into_owned();
        let fault = error_mapping::ledger_error(&self.path);
        let copied = self.conn.execute("VACUUM INTO ?1", [target]);
        copied.map_err(fault)?;
        let conn = create::open(&path, Access::ReadOnly);
        let conn = conn.map_err(|error| error.into_ledger_error(&path))?;
        let found = || -> Result<Head, ScanError> {
            let seq = rows::last(&conn)?;
            let hash = rows::hash_at(&conn, seq)?.ok_or(Problem::Empty)?;
            if let Some(known) = known.witnessed_head(seq)? {
                known.check_end(seq)?;
                if let Some(hash) = rows::hash_at(&conn, known.head.seq)? {
                    let seq = known.head.seq;
                    known.check_at(Head { seq, hash })?;
                }
            }
            Ok(Head { seq, hash })
        };
        let head = found().map_err(|error| scan_error(&self.path, error))?;
        crate::durable::sync(&path)?;
        let head_file = HeadFile::in_folder(folder);
        head_file.publish(head_file.prepare(head)?)?;
        Ok(head)
    }
}
