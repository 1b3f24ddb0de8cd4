//! The activity log of a project: where it is, its keys, and its seals in the ledger.

use std::{fmt::Write as _, path::PathBuf};

use wayleave_activity::{
    ActivityReader, ArgumentKeyError, ArgumentKeys, LogReport, ReadError, SegmentSeal,
};
use wayleave_ledger::{Event, FOLDER, GovernanceError, LedgerError};
use wayleave_model::digest::Digest;

use crate::Project;

/// The folder of the log, in the project's private folder.
pub(crate) const LOG_FOLDER: &str = "activity";
/// Ledger entries read at a time.
const PAGE: u32 = 1_000;

/// Why the log cannot be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyLogError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] ReadError),
}

/// The folder of a project's activity log.
pub fn log_folder(project: &Project) -> PathBuf {
    project.folder().join(FOLDER).join(LOG_FOLDER)
}

/// Reads a project's activity log.
pub fn reader(project: &Project) -> ActivityReader {
    ActivityReader::new(log_folder(project))
}

/// The keys that seal the arguments of calls.
pub fn argument_keys(project: &Project) -> Result<ArgumentKeys, ArgumentKeyError> {
    ArgumentKeys::open(&project.folder().join(FOLDER))
}

/// The seals of closed segments that the ledger has recorded.
pub async fn recorded_seals(project: &Project) -> Result<Vec<SegmentSeal>, LedgerError> {
    let ledger = project.governance().ledger();
    let mut seals = Vec::new();
    let mut after = 0;
    loop {
        let entries = ledger.entries(after, PAGE).await?;
        let Some(last) = entries.last() else {
            return Ok(seals);
        };
        after = last.seq;
        seals.extend(entries.iter().filter_map(|entry| match &entry.event {
            Event::ActivitySealed {
                writer,
                segment,
                last_record,
                state,
            } => Some(SegmentSeal {
                writer: writer_id(writer)?,
                segment: *segment,
                last_record: *last_record,
                state: *state.as_bytes(),
            }),
            _ => None,
        }));
    }
}

/// Records the seal of a closed segment in the ledger.
pub async fn record_seal(project: &Project, seal: &SegmentSeal) -> Result<(), GovernanceError> {
    let mut writer = String::with_capacity(32);
    for byte in seal.writer {
        let _ = write!(writer, "{byte:02x}");
    }
    let state = Digest::from_raw(seal.state);
    let governance = project.governance();
    let recorded = governance.seal_activity(writer, seal.segment, seal.last_record, state);
    recorded.await.map(drop)
}

/// Verifies the log against itself and against the ledger.
pub async fn verify(project: &Project) -> Result<LogReport, VerifyLogError> {
    let seals = recorded_seals(project).await?;
    Ok(reader(project).verify(&seals)?)
}

fn writer_id(hex: &str) -> Option<[u8; 16]> {
    let mut id = [0; 16];
    if hex.len() != 32 {
        return None;
    }
    for (byte, at) in id.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?;
    }
    Some(id)
}
