//! The head of a writer's log: the position of its end, so that a shortened log is noticed.
//!
//! Two slots are written in turn, so one of them is intact after any crash. The head is written
//! after the records it covers: it may be behind them, never ahead.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use crate::chain::{ChainState, TAG_BYTES, sha256};

const UNTAGGED_BYTES: usize = 8 + 8 + 8 + 8 + 32;
const SLOT_BYTES: usize = UNTAGGED_BYTES + TAG_BYTES;
const SLOTS: u64 = 2;

/// The position of the end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogHead {
    /// Number of writes of the head; the slot with the higher count is newer.
    pub(crate) count: u64,
    /// The newest segment.
    pub(crate) segment: u64,
    /// Its length in bytes.
    pub(crate) offset: u64,
    /// The number of the last record.
    pub(crate) record: u64,
    /// The state of the chain after it.
    pub(crate) state: ChainState,
}

impl LogHead {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SLOT_BYTES);
        for number in [self.count, self.segment, self.offset, self.record] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.state.0);
        let sum = sha256(&bytes);
        bytes.extend(sum.iter().take(TAG_BYTES));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk()?;
        let (segment, rest) = rest.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let (record, rest) = rest.split_first_chunk()?;
        let (state, _) = rest.split_first_chunk()?;
        let head = Self {
            count: u64::from_le_bytes(*count),
            segment: u64::from_le_bytes(*segment),
            offset: u64::from_le_bytes(*offset),
            record: u64::from_le_bytes(*record),
            state: ChainState(*state),
        };
        (head.encode() == bytes).then_some(head)
    }
}

/// The open head file.
#[derive(Debug)]
pub(crate) struct LogHeadFile(File);

/// The parsed contents of a head file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredHead {
    /// The newest intact slot.
    pub(crate) head: Option<LogHead>,
    /// Whether a slot is damaged or missing, or the file is too long.
    pub(crate) has_damage: bool,
}

pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join("head")
}

impl LogHeadFile {
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        options.mode(0o600).open(path(folder)).map(Self)
    }

    pub(crate) fn write(&self, head: &LogHead) -> io::Result<()> {
        let at = (head.count % SLOTS) * SLOT_BYTES as u64;
        self.0.write_all_at(&head.encode(), at)
    }
}

/// Reads a head file; `None` if there is none.
pub(crate) fn read(folder: &Path) -> io::Result<Option<StoredHead>> {
    let bytes = match std::fs::read(path(folder)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(parse(&bytes)))
}

/// Parses the bytes of a head file.
pub(crate) fn parse(bytes: &[u8]) -> StoredHead {
    let slots = || bytes.chunks(SLOT_BYTES);
    let heads = slots().filter_map(LogHead::decode);
    // An unwritten slot is all zeros: the second slot is written first.
    let is_unwritten = |slot: &[u8]| slot.iter().all(|byte| *byte == 0);
    let written = slots().filter(|slot| !is_unwritten(slot)).count();
    let (head, whole) = (heads.clone().max_by_key(|head| head.count), heads.count());
    let expected = head.map_or(0, |head| head.count.min(SLOTS));
    StoredHead {
        head,
        has_damage: whole != written || whole as u64 != expected || bytes.len() > SLOT_BYTES * 2,
    }
}
