//! Copies the ledger as of one moment, and every frozen mapping it names.

use std::path::Path;
use std::sync::Arc;

use crate::TrustAnchor;
use crate::blocking;
use crate::chain::Head;
use crate::durable;
use crate::error::{GovernanceError, OpenError};
use crate::frozen_mappings::{self, FrozenMappings};
use crate::governance::{FOLDER, Governance};

impl Governance {
    /// Copies the ledger and the frozen mappings it names into `project`, which has no private
    /// folder yet. Others may write meanwhile: a frozen copy is stored before the entry that names
    /// it, so every mapping of the copied ledger is there. Returns the head of the copy.
    pub async fn copy_into(&self, project: &Path) -> Result<Head, GovernanceError> {
        let folder = project.join(FOLDER);
        let unusable = |error: OpenError| error.into_ledger_error(&folder);
        durable::private_folder(&folder).map_err(unusable)?;
        let head = self.ledger.copy_into(&folder).await?;
        let to = FrozenMappings::open(folder.join("mappings")).map_err(unusable)?;
        // No anchor: the original was checked against it when it was opened.
        let trusted = TrustAnchor::default();
        let copy = Self::open_read_only(project, Arc::clone(&self.clock), trusted);
        let copy = copy.map_err(unusable)?;
        let (named, from) = (copy.ratified_ever().await?, self.frozen.clone());
        let copied = blocking::run(move || {
            named.into_iter().try_for_each(|(digest, dataset)| {
                let path = from.path(digest);
                let bytes = from.read(digest)?;
                let bytes = bytes.ok_or_else(|| GovernanceError::Missing {
                    dataset,
                    path: path.clone(),
                })?;
                frozen_mappings::check(path, digest, &bytes)?;
                to.put(digest, &bytes)
            })
        });
        copied.await.map_err(|cause| self.join_error(cause))??;
        Ok(head)
    }
}
