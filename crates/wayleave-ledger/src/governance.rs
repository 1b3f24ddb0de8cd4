//! The acts of people upon a project: ratify, retire, declare sources, activate.
//!
//! Joins the ledger with the folder of frozen mappings, and holds their order: the frozen copy
//! is durable before the entry that names it. What may follow what is not decided here but in
//! [`crate::state`], inside the ledger's transaction.

mod authority;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wayleave_model::digest::Digest;
use wayleave_model::mapping::{Mapping, SourceKind};
use wayleave_model::ratify::{self, Proposed, Ratification, Ratified};

use crate::blocking;
use crate::clock::{Clock, Millis};
use crate::durable::{FolderLock, WriteHalt};
use crate::error::{GovernanceError, LedgerError, OpenError};
use crate::event::{Entry, Event};
use crate::file_stamp::FileStamp;
use crate::frozen_mappings::FrozenMappings;
use crate::ledger::Ledger;
use crate::sqlite::SqliteLedger;
use crate::state::Refusal;
pub use authority::{GrantRequest, IssuedToken, TokenRequest};

/// The name of the folder, inside a project, that holds the ledger and the frozen mappings.
pub const FOLDER: &str = ".wayleave";

/// The governed state of one project.
#[derive(Clone)]
pub struct Governance {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) frozen: FrozenMappings,
    pub(crate) folder: PathBuf,
    clock: Arc<dyn Clock>,
    halt: WriteHalt,
    is_read_only: bool,
}

impl std::fmt::Debug for Governance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Governance")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// A person's request to ratify a proposed mapping.
#[derive(Debug, Clone)]
pub struct RatifyRequest {
    /// What they read.
    pub proposed: Proposed,
    /// What was ratified when they read it, against which they saw the difference.
    pub replaces: Option<Digest>,
    /// Who they are.
    pub who: String,
    /// Why, in their words.
    pub note: String,
}

/// A source to declare.
#[derive(Debug, Clone)]
pub struct NewSource {
    /// Its name.
    pub name: String,
    /// The kind of store.
    pub kind: SourceKind,
    /// The name of the environment variable that holds its DSN.
    pub env: String,
}

impl Governance {
    /// Opens a project's `.wayleave` folder with its SQLite ledger, and makes what is not there.
    pub fn open(project: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let folder = project.join(FOLDER);
        let halt = WriteHalt::default();
        let ledger = Arc::new(SqliteLedger::open_with(
            &folder,
            clock.as_ref(),
            halt.clone(),
        )?);
        let frozen = FrozenMappings::open(folder.join("mappings"))?;
        Ok(Self {
            ledger,
            frozen,
            folder,
            clock,
            halt,
            is_read_only: false,
        })
    }

    /// Opens a project's `.wayleave` folder to read and verify it, where it cannot be written.
    /// Every act upon it is refused as [`LedgerError::ReadOnly`].
    pub fn open_read_only(project: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let folder = project.join(FOLDER);
        Ok(Self {
            ledger: Arc::new(SqliteLedger::open_read_only(&folder)?),
            frozen: FrozenMappings::open_read_only(folder.join("mappings")),
            folder,
            clock,
            halt: WriteHalt::default(),
            is_read_only: true,
        })
    }

    /// Whether it was opened to be read and verified alone.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Which folder holds the frozen mappings now; `None` when there is none.
    pub fn frozen_folder(&self) -> Result<Option<FileStamp>, LedgerError> {
        Ok(FileStamp::at(self.frozen.folder())?)
    }

    /// The ledger itself: its state, its entries, its epoch.
    pub fn ledger(&self) -> &dyn Ledger {
        self.ledger.as_ref()
    }

    /// Where the frozen copy with that digest is kept.
    pub fn frozen_path(&self, digest: Digest) -> PathBuf {
        self.frozen.path(digest)
    }

    /// Ratifies: stores the exact bytes, then records the act. When it returns both are durable;
    /// when it is cut short at any point, either both will be found or the act did not happen.
    ///
    /// Of two at once that replace the same mapping one wins, and the other is refused as
    /// [`Refusal::Superseded`]. Ratifying what is ratified already records nothing and returns
    /// the act that stands, so that running it again after a crash is safe.
    pub async fn ratify(
        &self,
        request: RatifyRequest,
    ) -> Result<Ratified<Mapping>, GovernanceError> {
        let at = self.clock.now();
        let act = Ratification {
            dataset: request.proposed.mapping().dataset.name.value.clone(),
            digest: request.proposed.digest(),
            replaces: request.replaces,
            who: request.who,
            note: request.note,
        };
        let event = Event::DatasetRatified(act.clone());
        // Refuses what would be refused anyway before a file is left behind.
        event.check_text().map_err(Refusal::from)?;
        match self.ledger.state().await?.admit(&event) {
            Err(Refusal::AlreadyRatified { dataset, .. }) => return self.load(&dataset).await,
            admitted => admitted?,
        }
        let ratified = ratify::ratify(request.proposed, act)
            .map_err(|source| GovernanceError::Unfit { source })?;
        // Spawned, so that a caller who goes away cannot part the file from its entry.
        let this = self.clone();
        blocking::run_to_end(async move { this.record(at, ratified, event).await })
            .await
            .map_err(|cause| self.join_error(cause))?
    }

    async fn record(
        &self,
        at: Millis,
        ratified: Ratified<Mapping>,
        event: Event,
    ) -> Result<Ratified<Mapping>, GovernanceError> {
        self.halt.check()?;
        let this = self.clone();
        let stored = blocking::run(move || {
            // Held until the entry is recorded: `gc` must not take the file for an orphan.
            let lock = FolderLock::shared(&this.folder)?;
            this.frozen.put(ratified.digest(), ratified.bytes())?;
            Ok((lock, ratified))
        });
        let stored = stored.await.map_err(|cause| self.join_error(cause))?;
        let (_lock, ratified) = stored.map_err(|error| self.note_fatal(error))?;
        match self.ledger.append(at, event).await {
            Err(LedgerError::Refused(Refusal::AlreadyRatified { dataset, .. })) => {
                self.load(&dataset).await
            }
            appended => appended.map(|_| ratified).map_err(Into::into),
        }
    }

    /// The dataset as ratified now. Reads the frozen copy and compares its digest, every time.
    pub async fn load(&self, dataset: &str) -> Result<Ratified<Mapping>, GovernanceError> {
        let state = self.ledger.state().await?;
        let entry = state
            .ratified(dataset)
            .ok_or_else(|| Refusal::NotRatified {
                dataset: dataset.to_owned(),
            })?;
        self.load_as(&entry.act).await
    }

    /// The dataset as that act ratified it, which another may have replaced since: what was made
    /// live stays live until another is. Compares the digest too, every time.
    pub async fn load_as(&self, act: &Ratification) -> Result<Ratified<Mapping>, GovernanceError> {
        let act = act.clone();
        let frozen = self.frozen.clone();
        let read = blocking::run(move || {
            let path = frozen.path(act.digest);
            match frozen.read(act.digest)? {
                Some(bytes) => ratify::verify(&bytes, &act)
                    .map_err(|source| GovernanceError::Altered { path, source }),
                None => Err(GovernanceError::Missing {
                    dataset: act.dataset,
                    path,
                }),
            }
        });
        read.await.map_err(|cause| self.join_error(cause))?
    }

    /// Retires a dataset: it is served no more, and no longer active. Its history stays.
    ///
    /// Works also when the frozen copy is damaged.
    pub async fn retire(
        &self,
        dataset: &str,
        who: &str,
        note: &str,
    ) -> Result<Entry, GovernanceError> {
        let state = self.ledger.state().await?;
        let digest = state
            .ratified(dataset)
            .ok_or_else(|| Refusal::NotRatified {
                dataset: dataset.to_owned(),
            })?
            .act
            .digest;
        let (dataset, who, note) = (dataset.to_owned(), who.to_owned(), note.to_owned());
        self.append(Event::DatasetRetired {
            dataset,
            digest,
            who,
            note,
        })
        .await
    }

    /// Declares a source.
    pub async fn add_source(&self, source: NewSource, who: &str) -> Result<Entry, GovernanceError> {
        let NewSource { name, kind, env } = source;
        self.append(Event::SourceAdded {
            name,
            kind,
            env,
            who: who.to_owned(),
        })
        .await
    }

    /// Withdraws a source.
    pub async fn remove_source(&self, name: &str, who: &str) -> Result<Entry, GovernanceError> {
        self.append(Event::SourceRemoved {
            name: name.to_owned(),
            who: who.to_owned(),
        })
        .await
    }

    /// Makes a dataset live in the deployment. It takes the ratified mapping itself, the one the
    /// caller has checked against the source; if another was ratified since, it is refused.
    pub async fn activate(
        &self,
        mapping: &Ratified<Mapping>,
        who: &str,
    ) -> Result<Entry, GovernanceError> {
        let state = self.ledger.state().await?;
        let revision = state.next_revision(&mapping.ratification().dataset);
        self.activate_as(mapping, revision, who).await
    }

    /// The same as that revision of the dataset: what the caller saw to come next. If another act
    /// came between it is refused, so of two who act at once only one does.
    pub async fn activate_as(
        &self,
        mapping: &Ratified<Mapping>,
        revision: u64,
        who: &str,
    ) -> Result<Entry, GovernanceError> {
        let dataset = mapping.ratification().dataset.clone();
        let (digest, who) = (mapping.digest(), who.to_owned());
        self.append(Event::DatasetActivated {
            dataset,
            digest,
            revision,
            who,
        })
        .await
    }

    /// Takes a dataset out of service. It stays ratified.
    pub async fn deactivate(&self, dataset: &str, who: &str) -> Result<Entry, GovernanceError> {
        let revision = self.ledger.state().await?.next_revision(dataset);
        self.deactivate_as(dataset, revision, who).await
    }

    /// The same as that revision of the dataset, refused if another act came between.
    pub async fn deactivate_as(
        &self,
        dataset: &str,
        revision: u64,
        who: &str,
    ) -> Result<Entry, GovernanceError> {
        let (dataset, who) = (dataset.to_owned(), who.to_owned());
        self.append(Event::DatasetDeactivated {
            dataset,
            revision,
            who,
        })
        .await
    }

    async fn append(&self, event: Event) -> Result<Entry, GovernanceError> {
        Ok(self.ledger.append(self.clock.now(), event).await?)
    }

    pub(crate) fn join_error(&self, cause: tokio::task::JoinError) -> GovernanceError {
        let ledger = self.folder.display().to_string();
        LedgerError::Database {
            ledger,
            cause: Box::new(cause),
        }
        .into()
    }

    fn note_fatal(&self, error: GovernanceError) -> GovernanceError {
        match error {
            GovernanceError::Ledger(error) => self.halt.note(error).into(),
            other => other,
        }
    }
}
