//! A ledger in one SQLite file, for one machine and any number of processes on it.
//!
//! Uses a write-ahead log, `synchronous = FULL`, immediate transactions and a busy timeout: writers
//! take turns, and readers never wait for them. A process has two connections, one for writing and
//! one for reading; their work runs on blocking threads.

mod copy;
mod create;
mod error_mapping;
mod rows;
mod schema;
mod session;

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::blocking;
use crate::chain::Head;
use crate::clock::{Clock, Millis};
use crate::durable::{self, FolderLock, WriteHalt};
use crate::error::{LedgerError, OpenError};
use crate::event::{Entry, Event};
use crate::head::{HeadFile, HeadRecord};
use crate::ledger::Ledger;
use crate::signing::EntrySignature;
use crate::state::State;
use crate::verify::{TrustAnchor, VerifyReport};
use create::Access;
use session::Session;

/// The ledger of a project folder, `.wayleave/ledger.db`.
#[derive(Clone)]
pub struct SqliteLedger {
    connections: Arc<Connections>,
}

/// The connections of one process.
struct Connections {
    reader: Mutex<Session>,
    /// `None` if the ledger is open read-only.
    writer: Option<Mutex<Session>>,
    halt: WriteHalt,
    path: std::path::PathBuf,
    head_file: HeadFile,
    anchor: TrustAnchor,
}

impl std::fmt::Debug for SqliteLedger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteLedger")
            .field("path", &self.connections.path)
            .finish_non_exhaustive()
    }
}

impl SqliteLedger {
    /// Opens the ledger in `folder`, and creates both if they are missing.
    ///
    /// A damaged ledger opens: `verify` then reports the problem, and everything else fails. A file
    /// that is not a ledger does not open, and is left unchanged.
    pub fn open(folder: &Path, clock: &dyn Clock) -> Result<Self, OpenError> {
        Self::open_with(folder, clock, WriteHalt::default(), TrustAnchor::default())
    }

    pub(crate) fn open_with(
        folder: &Path,
        clock: &dyn Clock,
        halt: WriteHalt,
        anchor: TrustAnchor,
    ) -> Result<Self, OpenError> {
        durable::private_folder(folder)?;
        let path = folder.join("ledger.db");
        let head_file = HeadFile::in_folder(folder);
        if !path.exists() {
            // A head file without its ledger means that the ledger was lost.
            if head_file.read()? != HeadRecord::Missing {
                return Err(OpenError::Missing { path });
            }
            create::create(&path, clock.now())?;
        }
        let reader = Session::open(&path, head_file.clone(), Access::ReadWrite, anchor)?;
        let mut writer = Session::open(&path, head_file.clone(), Access::ReadWrite, anchor)?;
        remove_leftovers(folder);
        // A lagging head file is tolerated; a disk that cannot sync is not.
        if let Err(error) = writer.repair_head()
            && error.is_fatal()
        {
            return Err(halt.halt_if_fatal(error).into());
        }
        Ok(Self::from_sessions(
            reader,
            Some(writer),
            halt,
            path,
            head_file,
            anchor,
        ))
    }

    /// Opens the ledger in a folder that cannot be written, such as a copy or another user's. It
    /// can be read and verified, but nothing can be recorded.
    pub fn open_read_only(folder: &Path) -> Result<Self, OpenError> {
        Self::open_read_only_with(folder, TrustAnchor::default())
    }

    pub(crate) fn open_read_only_with(
        folder: &Path,
        anchor: TrustAnchor,
    ) -> Result<Self, OpenError> {
        durable::check_private(folder)?;
        let path = folder.join("ledger.db");
        let head_file = HeadFile::in_folder(folder);
        if !path.exists() && head_file.read()? != HeadRecord::Missing {
            return Err(OpenError::Missing { path });
        }
        let reader = Session::open(&path, head_file.clone(), Access::ReadOnly, anchor)?;
        Ok(Self::from_sessions(
            reader,
            None,
            WriteHalt::default(),
            path,
            head_file,
            anchor,
        ))
    }

    fn from_sessions(
        reader: Session,
        writer: Option<Session>,
        halt: WriteHalt,
        path: std::path::PathBuf,
        head_file: HeadFile,
        anchor: TrustAnchor,
    ) -> Self {
        Self {
            connections: Arc::new(Connections {
                reader: Mutex::new(reader),
                writer: writer.map(Mutex::new),
                halt,
                path,
                head_file,
                anchor,
            }),
        }
    }

    async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connections) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let connections = Arc::clone(&self.connections);
        let done = blocking::run(move || work(&connections)).await;
        done.unwrap_or_else(|cause| {
            let ledger = self.connections.path.display().to_string();
            Err(LedgerError::Database {
                ledger,
                cause: Box::new(cause),
            })
        })
    }
}

/// Removes unpublished head files of killed writers. Skipped while any process writes: one of them
/// may be about to be published.
fn remove_leftovers(folder: &Path) {
    // A leftover is harmless, so a failure to remove it is ignored.
    if let Ok(Some(_lock)) = FolderLock::exclusive(folder) {
        let _ = durable::remove_files(folder, HeadFile::is_temporary);
    }
}

impl Connections {
    fn with_reader<T>(
        &self,
        work: impl FnOnce(&mut Session) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        work(&mut *self.reader.lock().map_err(|_| LedgerError::Halted)?)
    }

    /// A session of its own for long work, so that it blocks no one.
    fn fresh_session(&self) -> Result<Session, LedgerError> {
        let access = match self.writer {
            Some(_) => Access::ReadWrite,
            None => Access::ReadOnly,
        };
        let head_file = self.head_file.clone();
        let opened = Session::open(&self.path, head_file, access, self.anchor);
        opened.map_err(|error| error.into_ledger_error(&self.path))
    }

    fn with_writer<T>(
        &self,
        work: impl FnOnce(&mut Session) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let writer = self.writer.as_ref();
        let writer = writer.ok_or_else(|| create::read_only(&self.path))?;
        let mut session = writer.lock().map_err(|_| LedgerError::Halted)?;
        self.halt.check()?;
        work(&mut session).map_err(|error| self.halt.halt_if_fatal(error))
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn append(&self, at: Millis, event: Event) -> Result<Entry, LedgerError> {
        self.on_thread(move |connections| {
            connections.with_writer(|session| session.append(at, &event, None))
        })
        .await
    }

    async fn append_signed(
        &self,
        at: Millis,
        event: Event,
        after: Option<Head>,
        signature: EntrySignature,
    ) -> Result<Entry, LedgerError> {
        self.on_thread(move |connections| {
            let signed = Some((after, signature));
            connections.with_writer(|session| session.append(at, &event, signed.as_ref()))
        })
        .await
    }

    fn state_blocking(&self) -> Result<Arc<State>, LedgerError> {
        self.connections.with_reader(Session::state)
    }

    async fn state(&self) -> Result<Arc<State>, LedgerError> {
        self.on_thread(|connections| connections.with_reader(Session::state))
            .await
    }

    async fn epoch(&self) -> Result<u64, LedgerError> {
        // Runs on every request. Two `stat` calls and one cached page take less time than waking
        // another thread, unless a reader holds the connection just now.
        if let Ok(session) = self.connections.reader.try_lock()
            && let Some(epoch) = session.epoch()?
        {
            return Ok(epoch);
        }
        self.on_thread(|connections| connections.with_reader(Session::checked_epoch))
            .await
    }

    async fn entries(&self, after: u64, limit: u32) -> Result<Vec<Entry>, LedgerError> {
        self.on_thread(move |connections| {
            connections.with_reader(|session| session.entries(after, limit))
        })
        .await
    }

    async fn copy_into(&self, folder: &Path) -> Result<Head, LedgerError> {
        let folder = folder.to_owned();
        self.on_thread(move |connections| connections.fresh_session()?.copy_into(&folder))
            .await
    }

    async fn verify(&self, anchor: Option<Head>) -> Result<VerifyReport, LedgerError> {
        self.on_thread(move |connections| connections.fresh_session()?.verify(anchor))
            .await
    }
}
