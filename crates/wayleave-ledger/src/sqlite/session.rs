//! One connection and how far it has walked the chain.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::rows::{self, Stop};
use super::{create, fault, schema};
use crate::chain::{Head, SealedEntry};
use crate::clock::Millis;
use crate::durable::{FolderLock, Prepared};
use crate::error::{LedgerError, OpenError};
use crate::event::{Entry, Event};
use crate::head::{HeadFile, Kept};
use crate::state::{Refusal, State};
use crate::verify::{Known, Problem, VerifyReport, Witness};
use crate::walk::{Links, Walk};

pub(super) struct Session {
    conn: Connection,
    path: PathBuf,
    head_file: HeadFile,
    walk: Walk,
}

impl Session {
    pub(super) fn open(path: &Path, head_file: HeadFile) -> Result<Self, OpenError> {
        let conn = create::open(path)?;
        Ok(Self {
            conn,
            path: path.to_owned(),
            head_file,
            walk: Walk::default(),
        })
    }

    /// What is true now, borne out by the chain and the head file.
    pub(super) fn state(&mut self) -> Result<Arc<State>, LedgerError> {
        let kept = self.head_file.read()?;
        let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Deferred)
            .map_err(fault::of(&self.path))?;
        catch_up(&tx, &mut self.walk, kept).map_err(|stop| stopped(&self.path, stop))?;
        Ok(Arc::clone(self.walk.state()))
    }

    pub(super) fn epoch(&self) -> Result<u64, LedgerError> {
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
