//! Looking over a whole project: does the ledger hold, are the frozen mappings what it says, and
//! what did crashes leave lying about.

use std::collections::BTreeMap;
use std::path::PathBuf;

use wayleave_model::digest::Digest;

use crate::chain::Head;
use crate::durable::{FolderLock, PASSING, remove_files};
use crate::error::{GovernanceError, LedgerError};
use crate::event::Event;
use crate::frozen::{self, Frozen};
use crate::governance::Governance;
use crate::offload;
use crate::state::State;
use crate::verify::VerifyReport;

/// How many entries are held at once.
const PAGE: u32 = 512;

/// What an audit found.
#[derive(Debug)]
pub struct AuditReport {
    /// The walk over the ledger.
    pub ledger: VerifyReport,
    /// Frozen mappings that are missing or altered, each named. Looked for only when the ledger
    /// holds: a ledger with something wrong names no mappings.
    pub mappings: Vec<GovernanceError>,
}

impl AuditReport {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.ledger.is_ok() && self.mappings.is_empty()
    }
}

impl Governance {
    /// Verifies the ledger, then every frozen mapping that was ever ratified.
    pub async fn audit(&self, anchor: Option<Head>) -> Result<AuditReport, GovernanceError> {
        let ledger = self.ledger.verify(anchor).await?;
        if !ledger.is_ok() {
            return Ok(AuditReport {
                ledger,
                mappings: Vec::new(),
            });
        }
        let (named, frozen) = (self.ratified_ever().await?, self.frozen.clone());
        let checked = offload::blocking(move || {
            let check = |(digest, dataset)| check(&frozen, dataset, digest).err();
            named.into_iter().filter_map(check).collect()
        });
        let mappings = checked.await.map_err(|cause| self.failed(cause))?;
        Ok(AuditReport { ledger, mappings })
    }

    /// Whether the frozen copy of everything active is there and as it was ratified.
    pub async fn check_active(&self, state: &State) -> Result<(), GovernanceError> {
        let active = state.active();
        let active: Vec<_> = active
            .map(|(dataset, it)| (dataset.to_owned(), it.digest))
            .collect();
        let frozen = self.frozen.clone();
        let checked = offload::blocking(move || {
            let mut active = active.into_iter();
            active.try_for_each(|(dataset, digest)| check(&frozen, dataset, digest))
        });
        checked.await.map_err(|cause| self.failed(cause))?
    }

    /// Removes what crashes left: files under passing names, and frozen mappings that no entry
    /// names. Returns what it removed. Refuses as busy while any process writes.
    pub async fn gc(&self) -> Result<Vec<PathBuf>, GovernanceError> {
        let busy = || LedgerError::Busy {
            ledger: self.folder.display().to_string(),
        };
        let alone = FolderLock::alone(&self.folder)?.ok_or_else(busy)?;
        let (named, this) = (self.ratified_ever().await?, self.clone());
        let removal = offload::blocking(move || {
            let _alone = alone;
            let passing = |name: &str| name.starts_with(PASSING);
            let orphan = |name: &str| {
                Frozen::digest_of_name(name).is_some_and(|digest| !named.contains_key(&digest))
            };
            let mut removed = remove_files(&this.folder, passing)?;
            removed.extend(remove_files(this.frozen.folder(), |name| {
                passing(name) || orphan(name)
            })?);
            Ok(removed)
        });
        removal.await.map_err(|cause| self.failed(cause))?
    }

    /// Every digest that was ever ratified, with its dataset.
    async fn ratified_ever(&self) -> Result<BTreeMap<Digest, String>, GovernanceError> {
        let (mut named, mut after) = (BTreeMap::new(), 0);
        loop {
            let page = self.ledger.entries(after, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(named);
            };
            after = last.seq;
            for entry in page {
                if let Event::DatasetRatified {
                    dataset, digest, ..
                } = entry.event
                {
                    named.insert(digest, dataset);
                }
            }
        }
    }
}

fn check(frozen: &Frozen, dataset: String, digest: Digest) -> Result<(), GovernanceError> {
    let path = frozen.path(digest);
    match frozen.read(digest)? {
        Some(bytes) => frozen::check(path, digest, &bytes),
        None => Err(GovernanceError::Missing { dataset, path }),
    }
}
