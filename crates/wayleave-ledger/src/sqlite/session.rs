//! One connection and how far it has walked the chain.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::create::Access;
use super::rows::{self, ScanError};
use super::{create, error_mapping, schema};
use crate::chain::{EntryHash, Head, SealedEntry};
use crate::clock::Millis;
use crate::durable::{self, FolderLock, PreparedFile};
use crate::error::{LedgerError, OpenError};
use crate::event::{Entry, Event};
use crate::file_stamp::FileStamp;
use crate::head::{HeadFile, HeadRecord};
use crate::signing::EntrySignature;
use crate::state::{Refusal, State};
use crate::verify::{Problem, TrustAnchor, VerifyReport, Witness, WitnessedHead};
use crate::walk::{ChainWalk, LinkChecker};

pub(super) struct Session {
    pub(super) conn: Connection,
    access: Access,
    pub(super) path: PathBuf,
    /// The file that `conn` has open.
    file: FileStamp,
    pub(super) head_file: HeadFile,
    /// The stamp of the head file that the walk was last compared with; `None` before the first
    /// comparison, or if there was no file.
    checked_head: Option<FileStamp>,
    walk: ChainWalk,
    anchor: TrustAnchor,
}

impl Session {
    pub(super) fn open(
        path: &Path,
        head_file: HeadFile,
        access: Access,
        anchor: TrustAnchor,
    ) -> Result<Self, OpenError> {
        let (conn, file) = match open_stamped(path, access)? {
            Some(opened) => opened,
            // Retry once: overlay file systems change a file's inode when it is first opened for
            // writing.
            None => open_stamped(path, access)?.ok_or_else(|| replaced(path))?,
        };
        Ok(Self {
            conn,
            access,
            path: path.to_owned(),
            file,
            head_file,
            checked_head: None,
            walk: ChainWalk::default(),
            anchor,
        })
    }

    /// Whether the path still names the open file.
    fn is_file_current(&self) -> Result<bool, LedgerError> {
        match FileStamp::at(&self.path)? {
            Some(there) => Ok(there.is_same_file(&self.file)),
            None => Err(replaced(&self.path)),
        }
    }

    /// Opens the file that replaced the open one, if any. It must verify by itself, and its chain
    /// must contain the last entry this session passed.
    fn reopen_if_replaced(&mut self) -> Result<(), LedgerError> {
        if self.is_file_current()? {
            return Ok(());
        }
        let opened = || {
            durable::check_private(create::folder(&self.path))?;
            Self::open(&self.path, self.head_file.clone(), self.access, self.anchor)
        };
        let mut next = opened().map_err(|error| error.into_ledger_error(&self.path))?;
        next.catch_up()?;
        if let Some(head) = self.walk.head() {
            let passed = passes_through(&next.conn, head);
            passed.map_err(|error| scan_error(&self.path, error))?;
        }
        *self = next;
        Ok(())
    }

    /// The current state, verified against the chain and the head file.
    pub(super) fn state(&mut self) -> Result<Arc<State>, LedgerError> {
        self.reopen_if_replaced()?;
        self.catch_up()?;
        Ok(Arc::clone(self.walk.state()))
    }

    fn catch_up(&mut self) -> Result<(), LedgerError> {
        // Taken before the file is read, so that a replacement in between is noticed next time.
        let stamp = self.head_file.stamp()?;
        let record = self.head_file.read()?;
        let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Deferred)
            .map_err(error_mapping::ledger_error(&self.path))?;
        catch_up(&tx, &mut self.walk, record, &self.anchor)
            .map_err(|error| scan_error(&self.path, error))?;
        self.checked_head = stamp;
        Ok(())
    }

    /// The last sequence number; `None` if a file was replaced since the last call of `state`,
    /// which must then run again.
    pub(super) fn epoch(&self) -> Result<Option<u64>, LedgerError> {
        if self.checked_head != self.head_file.stamp()? || !self.is_file_current()? {
            return Ok(None);
        }
        let last = rows::last(&self.conn).map_err(error_mapping::ledger_error(&self.path))?;
        Ok(Some(last))
    }

    /// The last sequence number, after verifying whatever changed.
    pub(super) fn checked_epoch(&mut self) -> Result<u64, LedgerError> {
        self.state()?;
        rows::last(&self.conn).map_err(error_mapping::ledger_error(&self.path))
    }

    /// Verified, consecutive entries. Entries that this session has verified before are read again,
    /// so they are verified again.
    pub(super) fn entries(&mut self, after: u64, limit: u32) -> Result<Vec<Entry>, LedgerError> {
        self.state()?;
        let before =
            rows::hash_at(&self.conn, after).map_err(error_mapping::ledger_error(&self.path))?;
        let mut links = LinkChecker::after(before.map(|hash| Head { seq: after, hash }));
        let mut entries = Vec::new();
        let from = Some(after.saturating_add(1));
        rows::scan(&self.conn, from, Some(limit), |sealed| {
            entries.push(links.step(&sealed)?);
            Ok(())
        })
        .map_err(|error| scan_error(&self.path, error))?;
        Ok(entries)
    }

    /// Records an event, with its signature and the head that was signed, if any. Every step that a
    /// full disk can fail comes before the commit.
    pub(super) fn append(
        &mut self,
        at: Millis,
        event: &Event,
        signed: Option<&(Option<Head>, EntrySignature)>,
    ) -> Result<Entry, LedgerError> {
        let folder = create::folder(&self.path);
        let _lock = FolderLock::shared(folder)?;
        self.reopen_if_replaced()?;
        let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Immediate)
            .map_err(error_mapping::ledger_error(&self.path))?;
        let record = self.head_file.read()?;
        check_version(&tx, &self.path)?;
        catch_up(&tx, &mut self.walk, record, &self.anchor)
            .map_err(|error| scan_error(&self.path, error))?;
        event.check_text().map_err(Refusal::from)?;
        self.walk.state().admit(event)?;
        let sealed = seal_signed(self.walk.head(), at, event, signed, &self.path)?;
        let signature = signed.map(|(_, signature)| signature);
        let state = self.walk.state();
        state.authorize(event, signature, || sealed.message())?;
        if let (HeadRecord::Missing, Some(head)) = (record, self.walk.head()) {
            // Only a ledger's first entry may stand without a head file: see
            // `HeadRecord::witnessed_head`.
            self.head_file.publish(self.head_file.prepare(head)?)?;
        }
        rows::insert(&tx, &sealed).map_err(error_mapping::ledger_error(&self.path))?;
        let prepared = self.head_file.prepare(sealed.head())?;
        tx.commit()
            .map_err(error_mapping::commit_error(&self.path, sealed.seq))?;
        let entry = self
            .walk
            .step(&sealed)
            .map_err(|problem| scan_error(&self.path, problem.into()))?;
        self.publish(sealed.head(), prepared)?;
        Ok(entry)
    }

    /// Publishes a head unless the chain has grown past it, so that the head never goes back.
    ///
    /// The ledger's write lock orders the publishers. If it is taken, another writer is at work and
    /// will publish a later head.
    fn publish(&self, head: Head, prepared: PreparedFile) -> Result<(), LedgerError> {
        let behavior = TransactionBehavior::Immediate;
        let Ok(tx) = Transaction::new_unchecked(&self.conn, behavior) else {
            return Ok(());
        };
        if rows::last(&tx).is_ok_and(|last| last == head.seq) {
            self.head_file
                .publish(prepared)
                .map_err(|source| LedgerError::HeadLags {
                    seq: head.seq,
                    source,
                })?;
        }
        Ok(())
    }

    /// Updates a head file that a crash left outdated or missing. Leaves a damaged ledger
    /// unchanged, for `verify` to report.
    pub(super) fn repair_head(&mut self) -> Result<(), LedgerError> {
        if self.state().is_err() {
            return Ok(());
        }
        let Some(head) = self.walk.head() else {
            return Ok(());
        };
        let lags = match self.head_file.read()? {
            HeadRecord::Missing => true,
            HeadRecord::Head(recorded) => recorded.seq < head.seq,
            HeadRecord::Damaged => false,
        };
        if lags {
            // So that no process removes the prepared file as a leftover of a crash.
            let folder = create::folder(&self.path);
            let _lock = FolderLock::shared(folder)?;
            let prepared = self.head_file.prepare(head)?;
            self.publish(head, prepared)?;
        }
        Ok(())
    }

    /// Walks the whole chain from the start.
    pub(super) fn verify(&self, anchor: Option<Head>) -> Result<VerifyReport, LedgerError> {
        let record = self.head_file.read()?;
        let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Deferred)
            .map_err(error_mapping::ledger_error(&self.path))?;
        let mut walk = ChainWalk::default();
        let problem = match verify(&tx, &mut walk, record, anchor, &self.anchor) {
            Ok(()) => None,
            Err(ScanError::Problem(problem)) => Some(problem),
            Err(ScanError::Database(error)) => {
                return Err(error_mapping::ledger_error(&self.path)(error));
            }
        };
        Ok(VerifyReport {
            good: walk.seq(),
            head: walk.head(),
            signed: walk.signed(),
            owner: walk.state().first_owner(),
            problem,
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Closing removes the write-ahead log by name, which may belong to another ledger by now.
        if !self.is_file_current().unwrap_or(false) {
            let _ = self
                .conn
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

/// Opens a ledger and returns the stamp of the opened file. `None` if the file at the path changed
/// meanwhile.
fn open_stamped(path: &Path, access: Access) -> Result<Option<(Connection, FileStamp)>, OpenError> {
    let before = FileStamp::at(path)?;
    let conn = create::open(path, access)?;
    let file = match (before, FileStamp::at(path)?) {
        (Some(before), Some(after)) if before.is_same_file(&after) => after,
        _ => return Ok(None),
    };
    Ok(Some((conn, file)))
}

fn replaced(path: &Path) -> LedgerError {
    LedgerError::Replaced {
        path: path.to_owned(),
    }
}

/// Refuses to write with rules that a newer program has replaced.
fn check_version(conn: &Connection, path: &Path) -> Result<(), LedgerError> {
    let (found, known) = (
        schema::version(conn).map_err(error_mapping::ledger_error(path))?,
        schema::newest(),
    );
    if found == known {
        return Ok(());
    }
    Err(LedgerError::Newer {
        ledger: path.display().to_string(),
        found,
        known,
    })
}

/// Seals an event after `head`.
pub(super) fn seal(
    head: Option<Head>,
    at: Millis,
    event: &Event,
    path: &Path,
) -> Result<SealedEntry, LedgerError> {
    let (kind, body) = event.encode().map_err(|cause| LedgerError::Database {
        ledger: path.display().to_string(),
        cause: Box::new(cause),
    })?;
    Ok(SealedEntry::seal(head, at, kind, body))
}

/// Seals an event with its signature, if the signature was made after the same head.
fn seal_signed(
    head: Option<Head>,
    at: Millis,
    event: &Event,
    signed: Option<&(Option<Head>, EntrySignature)>,
    path: &Path,
) -> Result<SealedEntry, LedgerError> {
    let sealed = seal(head, at, event, path)?;
    match signed {
        None => Ok(sealed),
        Some((after, _)) if *after != head => Err(Refusal::HeadMoved.into()),
        Some((_, signature)) => Ok(sealed.with_signature(signature.to_string())),
    }
}

pub(super) fn scan_error(path: &Path, error: ScanError) -> LedgerError {
    match error {
        ScanError::Database(error) => error_mapping::ledger_error(path)(error),
        ScanError::Problem(problem) => LedgerError::Tampered {
            ledger: path.display().to_string(),
            problem,
        },
    }
}

/// Continues the walk. Checks that the chain still passes through the last verified entry and the
/// recorded head, and that it matches the caller's trust anchor.
fn catch_up(
    conn: &Connection,
    walk: &mut ChainWalk,
    record: HeadRecord,
    anchor: &TrustAnchor,
) -> Result<(), ScanError> {
    let seen = walk.head();
    if let Some(head) = seen {
        passes_through(conn, head)?;
    }
    rows::scan(
        conn,
        seen.map(|head| head.seq.saturating_add(1)),
        None,
        |sealed| walk.step(&sealed).map(|_| ()),
    )?;
    if walk.seq() == 0 && record == HeadRecord::Missing {
        return Err(Problem::Empty.into());
    }
    anchor.check_owner(walk.state().first_owner())?;
    let record = record.witnessed_head(walk.seq())?;
    for known in record.into_iter().chain(anchor.witnessed_head()) {
        known.check_end(walk.seq())?;
        if let Some(hash) = rows::hash_at(conn, known.head.seq)? {
            known.check_at(Head {
                seq: known.head.seq,
                hash,
            })?;
        }
    }
    Ok(())
}

/// Checks that the chain still contains an entry that this process has verified.
fn passes_through(conn: &Connection, head: Head) -> Result<(), ScanError> {
    let memory = WitnessedHead {
        head,
        witness: Witness::Memory,
    };
    memory.check_end(rows::last(conn)?)?;
    // No entry has this hash, so a missing one differs from the one verified before.
    let hash = rows::hash_at(conn, head.seq)?.unwrap_or(EntryHash::NONE);
    memory.check_at(Head {
        seq: head.seq,
        hash,
    })?;
    Ok(())
}

fn verify(
    conn: &Connection,
    walk: &mut ChainWalk,
    record: HeadRecord,
    anchor: Option<Head>,
    trust: &TrustAnchor,
) -> Result<(), ScanError> {
    schema::check(conn)??;
    let record = record.witnessed_head(rows::last(conn)?);
    let anchor = anchor.map(|head| WitnessedHead {
        head,
        witness: Witness::Anchor,
    });
    let record_head = record.as_ref().ok().copied().flatten();
    let known = [record_head, anchor, trust.witnessed_head()];
    rows::scan(conn, None, None, |sealed| {
        walk.step(&sealed)?;
        known
            .iter()
            .flatten()
            .try_for_each(|known| known.check_at(sealed.head()))
    })?;
    trust.check_owner(walk.state().first_owner())?;
    known
        .iter()
        .flatten()
        .try_for_each(|known| known.check_end(walk.seq()))?;
    if walk.seq() == 0 {
        return Err(Problem::Empty.into());
    }
    record?;
    Ok(())
}
