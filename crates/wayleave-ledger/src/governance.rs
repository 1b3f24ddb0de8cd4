//! The acts of people upon a project: ratify, retire, declare sources, activate.
//!
//! Combines the ledger with the folder of frozen mappings, and keeps their order: the frozen copy
//! is durable before the entry that names it. [`crate::state`] decides, inside the ledger's
//! transaction, which acts are allowed.

mod authority;
mod owners;

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
use crate::signing::Signer;
use crate::sqlite::SqliteLedger;
use crate::state::Refusal;
use crate::verify::TrustAnchor;
pub use authority::{GrantRequest, IssuedToken, TokenRequest};

/// The name of the folder, inside a project, that holds the ledger and the frozen mappings.
pub const FOLDER: &str = ".wayleave";

/// The governed state of one project.
#[derive(Clone)]
pub struct Governance {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) frozen: FrozenMappings,
    pub(crate) folder: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    halt: WriteHalt,
    is_read_only: bool,
    signer: Option<Arc<dyn Signer>>,
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
    /// The mapping they read.
    pub proposed: Proposed,
    /// The mapping that was ratified when they read it, which the shown diff is against.
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
    /// Opens a project's `.wayleave` folder with its SQLite ledger, and creates what is missing.
    pub fn open(project: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        Self::open_with_anchor(project, clock, TrustAnchor::default())
    }

    /// The same, with an anchor that the caller kept outside the project. A ledger that contradicts
    /// the anchor opens, but is neither read nor added to.
    pub fn open_with_anchor(
        project: &Path,
        clock: Arc<dyn Clock>,
        anchor: TrustAnchor,
    ) -> Result<Self, OpenError> {
        let folder = project.join(FOLDER);
        let halt = WriteHalt::default();
        let ledger = Arc::new(SqliteLedger::open_with(
            &folder,
            clock.as_ref(),
            halt.clone(),
            anchor,
        )?);
        let frozen = FrozenMappings::open(folder.join("mappings"))?;
        Ok(Self {
            ledger,
            frozen,
            folder,
            clock,
            halt,
            is_read_only: false,
            signer: None,
        })
    }

    /// Opens a project's `.wayleave` folder read-only, to read and verify it. Every act fails with
    /// [`LedgerError::ReadOnly`].
    pub fn open_read_only(
        project: &Path,
        clock: Arc<dyn Clock>,
        anchor: TrustAnchor,
    ) -> Result<Self, OpenError> {
        let folder = project.join(FOLDER);
        Ok(Self {
            ledger: Arc::new(SqliteLedger::open_read_only_with(&folder, anchor)?),
            frozen: FrozenMappings::open_read_only(folder.join("mappings")),
            folder,
            clock,
            halt: WriteHalt::default(),
            is_read_only: true,
            signer: None,
        })
    }

    /// Whether it was opened read-only.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// The stamp of the folder of frozen mappings; `None` if there is none.
    pub fn frozen_folder(&self) -> Result<Option<FileStamp>, LedgerError> {
        Ok(FileStamp::at(self.frozen.folder())?)
    }

    /// The ledger itself: its state, its entries, its epoch.
    pub fn ledger(&self) -> &dyn Ledger {
        self.ledger.as_ref()
    }

    /// The path of the frozen copy with this digest.
    pub fn frozen_path(&self, digest: Digest) -> PathBuf {
        self.frozen.path(digest)
    }

    /// Ratifies a mapping: stores the exact bytes, then records the act. When it returns, both are
    /// durable; if it is interrupted at any point, either both exist or the act did not happen.
    ///
    /// Of two concurrent acts that replace the same mapping one wins, and the other is refused with
    /// [`Refusal::Superseded`]. Ratifying the same bytes again records nothing and returns the
    /// existing act, so repeating it after a crash is safe.
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
        // Refuse early, so that no file is left behind.
        event.check_text().map_err(Refusal::from)?;
        let state = self.ledger.state().await?;
        match state.admit(&event) {
            Err(Refusal::AlreadyRatified { dataset, .. }) => return self.load(&dataset).await,
            admitted => admitted?,
        }
        self.check_signer(&state, &event).await?;
        let ratified = ratify::ratify(request.proposed, act)
            .map_err(|source| GovernanceError::Unfit { source })?;
        // Spawned, so that a caller that is dropped cannot leave the file without its entry.
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
            // Held until the entry is recorded: `gc` must not remove the file as an orphan.
            let lock = FolderLock::shared(&this.folder)?;
            this.frozen.put(ratified.digest(), ratified.bytes())?;
            Ok((lock, ratified))
        });
        let stored = stored.await.map_err(|cause| self.join_error(cause))?;
        let (_lock, ratified) = stored.map_err(|error| self.note_fatal(error))?;
        match self.append_at(at, event).await {
            Err(GovernanceError::Ledger(LedgerError::Refused(Refusal::AlreadyRatified {
                dataset,
                ..
            }))) => self.load(&dataset).await,
            appended => appended.map(|_| ratified),
        }
    }

    /// Loads the dataset as currently ratified. Verifies the digest of the frozen copy every time.
    pub async fn load(&self, dataset: &str) -> Result<Ratified<Mapping>, GovernanceError> {
        let state = self.ledger.state().await?;
        let entry = state
            .ratified(dataset)
            .ok_or_else(|| Refusal::NotRatified {
                dataset: dataset.to_owned(),
            })?;
        self.load_as(&entry.act).await
    }

    /// Loads the mapping that `act` ratified, even if another has replaced it since: an active
    /// mapping stays active until another is activated. Verifies the digest every time.
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

    /// Retires a dataset: it is no longer ratified, active or served. Its history stays.
    ///
    /// Works even if the frozen copy is damaged.
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

    /// Records the end of a closed segment of the activity log.
    pub async fn seal_activity(
        &self,
        writer: String,
        segment: u64,
        last_record: u64,
        state: Digest,
    ) -> Result<Entry, GovernanceError> {
        self.append(Event::ActivitySealed {
            writer,
            segment,
            last_record,
            state,
        })
        .await
    }

    /// Activates a dataset in the deployment. Takes the ratified mapping that the caller has
    /// checked against the source; refused if another was ratified since.
    pub async fn activate(
        &self,
        mapping: &Ratified<Mapping>,
        who: &str,
    ) -> Result<Entry, GovernanceError> {
        let state = self.ledger.state().await?;
        let revision = state.next_revision(&mapping.ratification().dataset);
        self.activate_as(mapping, revision, who).await
    }

    /// Activates a dataset as this revision, the next one when the caller read the state. Refused
    /// if another act came in between, so of two concurrent acts only one succeeds.
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

    /// Deactivates a dataset. It stays ratified.
    pub async fn deactivate(&self, dataset: &str, who: &str) -> Result<Entry, GovernanceError> {
        let revision = self.ledger.state().await?.next_revision(dataset);
        self.deactivate_as(dataset, revision, who).await
    }

    /// Deactivates a dataset as this revision; refused if another act came in between.
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
        self.append_at(self.clock.now(), event).await
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
            GovernanceError::Ledger(error) => self.halt.halt_if_fatal(error).into(),
            other => other,
        }
    }
}
