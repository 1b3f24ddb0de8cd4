//! One connection and how far it has walked the chain.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::create::Access;
use super::rows::{self, Stop};
use super::{create, fault, schema};
use crate::chain::{Head, SealedEntry};
use crate::clock::Millis;
use crate::durable::{self, FolderLock, Prepared};
use crate::error::{LedgerError, OpenError};
use crate::event::{Entry, Event};
use crate::head::{HeadFile, Kept};
use crate::stamp::FileStamp;
use crate::state::{Refusal, State};
use crate::verify::{Known, Problem, VerifyReport, Witness};
use crate::walk::{Links, Walk};

pub(super) struct Session {
    conn: Connection,
    access: Access,
    path: PathBuf,
    /// The file that `conn` has open.
    file: FileStamp,
    head_file: HeadFile,
    /// The head file as it was when the walk was last held against it; `None` before that, and
    /// where there was none.
    checked_head: Option<FileStamp>,
    walk: Walk,
}

impl Session {
    pub(super) fn open(
        path: &Path,
        head_file: HeadFile,
        access: Access,
    ) -> Result<Self, OpenError> {
        let (conn, file) = match open_stamped(path, access)? {
            Some(opened) => opened,
            // Once more: layered file systems give a file another inode when it is first opened
            // for writing.
            None => open_stamped(path, access)?.ok_or_else(|| replaced(path))?,
        };
        Ok(Self {
            conn,
            access,
            path: path.to_owned(),
            file,
            head_file,
            checked_head: None,
            walk: Walk::default(),
        })
    }

    /// Whether the path still leads to the file that is open.
    fn has_its_file(&self) -> Result<bool, LedgerError> {
        match FileStamp::at(&self.path)? {
            Some(there) => Ok(there.is_same_file(&self.file)),
            None => Err(replaced(&self.path)),
        }
    }

    /// Opens the file that has taken the place of the one that is open, if any. It must hold by
    /// itself, and its chain must go through the last entry this session passed.
    fn follow_file(&mut self) -> Result<(), LedgerError> {
        if self.has_its_file()? {
            return Ok(());
        }
        let opened = || {
            durable::check_private(self.path.parent().unwrap_or(Path::new(".")))?;
            Self::open(&self.path, self.head_file.clone(), self.access)
        };
        let mut next = opened().map_err(|error| error.into_ledger_error(&self.path))?;
        next.catch_up()?;
        if let Some(head) = self.walk.head() {
            let passed = passes_through(&next.conn, head);
            passed.map_err(|stop| stopped(&self.path, stop))?;
        }
        *self = next;
        Ok(())
    }

    /// What is true now, borne out by the chain and the head file.
    pub(super) fn state(&mut self) -> Result<Arc<State>, LedgerError> {
        self.follow_file()?;
        self.catch_up()?;
        Ok(Arc::clone(self.walk.state()))
    }

    fn catch_up(&mut self) -> Result<(), LedgerError> {
        // Looked at before it is read: one that is replaced meanwhile is looked at again.
        let stamp = self.head_file.stamp()?;
        let kept = self.head_file.read()?;
        let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Deferred)
            .map_err(fault::of(&self.path))?;
        catch_up(&tx, &mut self.walk, kept).map_err(|stop| stopped(&self.path, stop))?;
        self.checked_head = stamp;
        Ok(())
    }

    /// The place of the last entry; `None` when a file was replaced since `state` last looked,
    /// so that it must look again.
    pub(super) fn epoch(&self) -> Result<Option<u64>, LedgerError> {
        if self.checked_head != self.head_file.stamp()? || !self.has_its_file()? {
            return Ok(None);
        }
        let last = rows::last(&self.conn).map_err(fault::of(&self.path))?;
        Ok(Some(last))
    }

    /// The place of the last entry, whatever has to be looked at for it.
    pub(super) fn checked_epoch(&mut self) -> Result<u64, LedgerError> {
        self.state()?;
        rows::last(&self.conn).map_err(fault::of(&self.path))
    }

    /// Entries that are whole and follow one another. Those that this session passed earlier
    /// are read again here, so they are checked again.
    pub(super) fn entries(&mut self, after: u64, limit: u32) -> Result<Vec<Entry>, LedgerError> {
        self.state()?;
        let before = rows::hash_at(&self.conn, after).map_err(fault::of(&self.path))?;
        let mut links = Links::after(before.map(|hash| Head { seq: after, hash }));
        let mut entries = Vec::new();
        let from = Some(after.saturating_add(1));
        rows::scan(&self.conn, from, Some(limit), |sealed| {
            entries.push(links.step(&sealed)?);
            Ok(())
        })
        .map_err(|stop| stopped(&self.path, stop))?;
        Ok(entries)
    }

    /// Records an event. Whatever can fail for want of space is done before the commit.
    pub(super) fn append(&mut self, at: Millis, event: &Event) -> Result<Entry, LedgerError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let _lock = FolderLock::shared(folder)?;
        self.follow_file()?;
        let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Immediate)
            .map_err(fault::of(&self.path))?;
        let kept = self.head_file.read()?;
        check_version(&tx, &self.path)?;
        catch_up(&tx, &mut self.walk, kept).map_err(|stop| stopped(&self.path, stop))?;
        event.check_text().map_err(Refusal::from)?;
        self.walk.state().admit(event)?;
        if let (Kept::Missing, Some(head)) = (kept, self.walk.head()) {
            // Only a ledger's first entry may stand without a head file: see `Kept::known`.
            self.head_file.publish(self.head_file.prepare(head)?)?;
        }
        let sealed = seal(self.walk.head(), at, event, &self.path)?;
        rows::insert(&tx, &sealed).map_err(fault::of(&self.path))?;
        let prepared = self.head_file.prepare(sealed.head())?;
        tx.commit()
            .map_err(fault::of_commit(&self.path, sealed.seq))?;
        let entry = self
            .walk
            .step(&sealed)
            .map_err(|problem| stopped(&self.path, problem.into()))?;
        self.publish(sealed.head(), prepared)?;
        Ok(entry)
    }

    /// Puts a head in place unless the chain has grown past it, so that it never goes back.
    ///
    /// The ledger's own write lock orders the publishers. Where it cannot be had, another writer
    /// is at work and will publish a later head.
    fn publish(&self, head: Head, prepared: Prepared) -> Result<(), LedgerError> {
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

    /// Brings up to date a head file that a crash left behind or kept from being made.
    /// A ledger with something wrong is left as it is, for `verify` to report.
    pub(super) fn mend_head(&mut self) -> Result<(), LedgerError> {
        if self.state().is_err() {
            return Ok(());
        }
        let Some(head) = self.walk.head() else {
            return Ok(());
        };
        let lags = match self.head_file.read()? {
            Kept::Missing => true,
            Kept::Head(kept) => kept.seq < head.seq,
            Kept::Damaged => false,
        };
        if lags {
            // So that nobody takes the file being prepared for one that a crash left.
            let folder = self.path.parent().unwrap_or(Path::new("."));
            let _lock = FolderLock::shared(folder)?;
            let prepared = self.head_file.prepare(head)?;
            self.publish(head, prepared)?;
        }
        Ok(())
    }

    /// Walks the whole chain afresh.
    pub(super) fn verify(&self, anchor: Option<Head>) -> Result<VerifyReport, LedgerError> {
        let kept = self.head_file.read()?;
        let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Deferred)
            .map_err(fault::of(&self.path))?;
        let mut walk = Walk::default();
        let problem = match verify(&tx, &mut walk, kept, anchor) {
            Ok(()) => None,
            Err(Stop::Problem(problem)) => Some(problem),
            Err(Stop::Database(error)) => return Err(fault::of(&self.path)(error)),
        };
        Ok(VerifyReport {
            good: walk.seq(),
            head: walk.head(),
            problem,
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Closing removes the write-ahead log by its name, under which there may be another
        // ledger's by now.
        if !self.has_its_file().unwrap_or(false) {
            let _ = self
                .conn
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

/// Opens a ledger, and tells which file was opened: the one at the path both before and after.
/// `None` when there were two.
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

/// Refuses to write by rules that a newer program has replaced.
fn check_version(conn: &Connection, path: &Path) -> Result<(), LedgerError> {
    let (found, known) = (
        schema::version(conn).map_err(fault::of(path))?,
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

fn stopped(path: &Path, stop: Stop) -> LedgerError {
    match stop {
        Stop::Database(error) => fault::of(path)(error),
        Stop::Problem(problem) => LedgerError::Tampered {
            ledger: path.display().to_string(),
            problem,
        },
    }
}

/// Walks on from where the walk stands, seeing that the chain still passes through there and
/// through the kept head.
fn catch_up(conn: &Connection, walk: &mut Walk, kept: Kept) -> Result<(), Stop> {
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
    if walk.seq() == 0 && kept == Kept::Missing {
        return Err(Problem::Empty.into());
    }
    let Some(known) = kept.known(walk.seq())? else {
        return Ok(());
    };
    known.check_end(walk.seq())?;
    if let Some(hash) = rows::hash_at(conn, known.head.seq)? {
        known.check_at(Head {
            seq: known.head.seq,
            hash,
        })?;
    }
    Ok(())
}

/// Whether the chain still has the entry this process passed.
fn passes_through(conn: &Connection, head: Head) -> Result<(), Stop> {
    let memory = Known {
        head,
        witness: Witness::Memory,
    };
    memory.check_end(rows::last(conn)?)?;
    let hash = rows::hash_at(conn, head.seq)?.unwrap_or(crate::chain::EntryHash::NONE);
    memory.check_at(Head {
        seq: head.seq,
        hash,
    })?;
    Ok(())
}

fn verify(
    conn: &Connection,
    walk: &mut Walk,
    kept: Kept,
    anchor: Option<Head>,
) -> Result<(), Stop> {
    schema::check(conn)??;
    let kept = kept.known(rows::last(conn)?);
    let anchor = anchor.map(|head| Known {
        head,
        witness: Witness::Anchor,
    });
    let known = [kept.as_ref().ok().copied().flatten(), anchor];
    rows::scan(conn, None, None, |sealed| {
        walk.step(&sealed)?;
        known
            .iter()
            .flatten()
            .try_for_each(|known| known.check_at(sealed.head()))
    })?;
    known
        .iter()
        .flatten()
        .try_for_each(|known| known.check_end(walk.seq()))?;
    if walk.seq() == 0 {
        return Err(Problem::Empty.into());
    }
    kept?;
    Ok(())
}
