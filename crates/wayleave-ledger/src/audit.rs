//! Audits a whole project: verifies the ledger, compares the frozen mappings with it, and removes
//! leftovers of crashes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use wayleave_model::digest::Digest;

use crate::blocking;
use crate::chain::Head;
use crate::durable::{FolderLock, TEMP_PREFIX, remove_files};
use crate::error::{GovernanceError, LedgerError};
use crate::event::Event;
use crate::frozen_mappings::{self, FrozenMappings};
use crate::governance::Governance;
use crate::state::State;
use crate::verify::VerifyReport;

/// Entries read at a time.
const PAGE_ENTRIES: u32 = 512;

/// The result of an audit.
#[derive(Debug)]
pub struct AuditReport {
    /// The walk over the ledger.
    pub ledger: VerifyReport,
    /// Frozen mappings that are missing or altered. Checked only if the ledger verifies: the
    /// digests in a damaged ledger cannot be trusted.
    pub mappings: Vec<GovernanceError>,
}

impl AuditReport {
    /// Whether no problem was found.
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
        let checked = blocking::run(move || {
            let check = |(digest, dataset)| check(&frozen, dataset, digest).err();
            named.into_iter().filter_map(check).collect()
        });
        let mappings = checked.await.map_err(|cause| self.join_error(cause))?;
        Ok(AuditReport { ledger, mappings })
    }

    /// Checks that the frozen copy of every active dataset exists and has its ratified digest.
    pub async fn check_active(&self, state: &State) -> Result<(), GovernanceError> {
        let active = state.active();
        let active: Vec<_> = active
            .map(|(dataset, it)| (dataset.to_owned(), it.digest))
            .collect();
        let frozen = self.frozen.clone();
        let checked = blocking::run(move || {
            let mut active = active.into_iter();
            active.try_for_each(|(dataset, digest)| check(&frozen, dataset, digest))
        });
        checked.await.map_err(|cause| self.join_error(cause))?
    }

    /// Removes leftovers of crashes: temporary files, and frozen mappings that no entry names.
    /// Returns the removed paths. Fails as busy while any process writes.
    pub async fn gc(&self) -> Result<Vec<PathBuf>, GovernanceError> {
        let busy = || LedgerError::Busy {
            ledger: self.folder.display().to_string(),
        };
        let exclusive = FolderLock::exclusive(&self.folder)?.ok_or_else(busy)?;
        let (named, this) = (self.ratified_ever().await?, self.clone());
        let removal = blocking::run(move || {
            let _alone = exclusive;
            let temporary = |name: &str| name.starts_with(TEMP_PREFIX);
            let orphan = |name: &str| {
                FrozenMappings::digest_of_name(name)
                    .is_some_and(|digest| !named.contains_key(&digest))
            };
            let mut removed = remove_files(&this.folder, temporary)?;
            removed.extend(remove_files(this.frozen.folder(), |name| {
                temporary(name) || orphan(name)
            })?);
            Ok(removed)
        });
        removal.await.map_err(|cause| self.join_error(cause))?
    }

    /// Every digest that was ever ratified, with its dataset.
    pub(crate) async fn ratified_ever(&self) -> Result<BTreeMap<Digest, String>, GovernanceError> {
        let (mut named, mut after) = (BTreeMap::new(), 0);
        loop {
            let page = self.ledger.entries(after, PAGE_ENTRIES).await?;
            let Some(last) = page.last() else {
                return Ok(named);
            };
            after = last.seq;
            for entry in page {
                if let Event::DatasetRatified(act) = entry.event {
                    named.insert(act.digest, act.dataset);
                }
            }
        }
    }
}

fn check(frozen: &FrozenMappings, dataset: String, digest: Digest) -> Result<(), GovernanceError> {
    let path = frozen.path(digest);
    match frozen.read(digest)? {
        Some(bytes) => frozen_mappings::check(path, digest, &bytes),
        None => Err(GovernanceError::Missing { dataset, path }),
    }
}
