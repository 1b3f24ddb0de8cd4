//! The format of a segment: a header, then records, each with its chain tag.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::chain::{ChainState, TAG_BYTES};

const MAGIC: &[u8; 8] = b"WLACT1\r\n";
const UNTAGGED_BYTES: usize = 8 + 8 + 8 + 8 + 16 + 32;
/// Size of the header in bytes.
pub(crate) const HEADER_BYTES: usize = UNTAGGED_BYTES + TAG_BYTES;
/// Largest record in bytes. Lists in a record are bounded far below it.
pub(crate) const MAX_RECORD_BYTES: usize = 1 << 20;
const LENGTH_BYTES: usize = 4;

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Number of the segment within its writer, from 1.
    pub(crate) number: u64,
    /// Number of its first record. Records are numbered from 1 over all segments.
    pub(crate) first_record: u64,
    /// Creation time, in milliseconds since 1970-01-01T00:00:00Z.
    pub(crate) created_ms: u64,
    /// Random id of the chain, different for every chain.
    pub(crate) writer: [u8; 16],
    /// The state of the chain after the previous segment.
    pub(crate) before: ChainState,
}

impl SegmentHeader {
    fn facts(&self) -> Vec<u8> {
        let mut facts = Vec::with_capacity(HEADER_BYTES);
        facts.extend_from_slice(MAGIC);
        for number in [self.number, self.first_record, self.created_ms] {
            facts.extend_from_slice(&number.to_le_bytes());
        }
        facts.extend_from_slice(&self.writer);
        facts.extend_from_slice(&self.before.0);
        facts
    }

    /// The state of the chain before the first record.
    pub(crate) fn state(&self) -> ChainState {
        self.before.after(&self.facts())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.facts();
        bytes.extend_from_slice(&self.state().tag());
        bytes
    }

    /// Decodes the header at the start of `bytes`; `None` if it is incomplete or does not match its
    /// tag.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (first_record, rest) = rest.split_first_chunk()?;
        let (created_ms, rest) = rest.split_first_chunk()?;
        let (writer, rest) = rest.split_first_chunk()?;
        let (before, rest) = rest.split_first_chunk()?;
        let (tag, _) = rest.split_first_chunk::<TAG_BYTES>()?;
        let header = Self {
            number: u64::from_le_bytes(*number),
            first_record: u64::from_le_bytes(*first_record),
            created_ms: u64::from_le_bytes(*created_ms),
            writer: *writer,
            before: ChainState(*before),
        };
        (magic == MAGIC && *tag == header.state().tag()).then_some(header)
    }
}

/// Appends a record to `out`; returns the state of the chain after it.
#[expect(
    clippy::expect_used,
    reason = "the encoder bounds a record far below four gigabytes"
)]
pub(crate) fn push_frame(out: &mut Vec<u8>, state: ChainState, body: &[u8]) -> ChainState {
    let length = u32::try_from(body.len()).expect("a record is below four gigabytes");
    let begin = out.len();
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(body);
    let (_, chained) = out.split_at(begin);
    let state = state.after(chained);
    out.extend_from_slice(&state.tag());
    state
}

/// A stored record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordFrame<'b> {
    pub(crate) body: &'b [u8],
    /// The whole frame, with its length and tag.
    pub(crate) bytes: &'b [u8],
}

/// The reason a walk stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameFault {
    /// The bytes end within a record.
    Incomplete,
    /// A record does not continue the chain.
    Broken,
}

/// Walks records along the chain, and verifies it.
#[derive(Debug, Clone)]
pub(crate) struct FrameWalk<'b> {
    rest: &'b [u8],
    /// Number of bytes walked.
    pub(crate) offset: usize,
    pub(crate) state: ChainState,
}

impl<'b> FrameWalk<'b> {
    pub(crate) fn new(bytes: &'b [u8], state: ChainState) -> Self {
        Self {
            rest: bytes,
            offset: 0,
            state,
        }
    }

    pub(crate) fn next_frame(&mut self) -> Option<Result<RecordFrame<'b>, FrameFault>> {
        if self.rest.is_empty() {
            return None;
        }
        Some(self.read())
    }

    fn read(&mut self) -> Result<RecordFrame<'b>, FrameFault> {
        let (length, _) = self
            .rest
            .split_first_chunk::<LENGTH_BYTES>()
            .ok_or(FrameFault::Incomplete)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length == 0 || length > MAX_RECORD_BYTES {
            return Err(FrameFault::Broken);
        }
        let chained = LENGTH_BYTES + length;
        let (bytes, rest) = self
            .rest
            .split_at_checked(chained + TAG_BYTES)
            .ok_or(FrameFault::Incomplete)?;
        let (before_tag, tag) = bytes
            .split_at_checked(chained)
            .ok_or(FrameFault::Incomplete)?;
        let (_, body) = before_tag
            .split_at_checked(LENGTH_BYTES)
            .ok_or(FrameFault::Incomplete)?;
        let state = self.state.after(before_tag);
        if tag != state.tag() {
            return Err(FrameFault::Broken);
        }
        self.rest = rest;
        self.offset += bytes.len();
        self.state = state;
        Ok(RecordFrame { body, bytes })
    }
}

/// A segment's file: still open, or compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentFile {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) archived: bool,
}

const OPEN_SUFFIX: &str = "log";
const ARCHIVE_SUFFIX: &str = "arc";

pub(crate) fn open_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.{OPEN_SUFFIX}"))
}

pub(crate) fn archive_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.{ARCHIVE_SUFFIX}"))
}

/// Lists the segments in a writer's folder, oldest first. If a segment exists in both forms, lists
/// only the archive.
pub(crate) fn segments(folder: &Path) -> io::Result<Vec<SegmentFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let suffix = path.extension().and_then(|suffix| suffix.to_str());
        let archived = match suffix {
            Some(OPEN_SUFFIX) => false,
            Some(ARCHIVE_SUFFIX) => true,
            _ => continue,
        };
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if let Some(number) = stem.and_then(|stem| stem.parse().ok()) {
            found.push(SegmentFile {
                number,
                path,
                archived,
            });
        }
    }
    found.sort_by_key(|segment| (segment.number, !segment.archived));
    found.dedup_by_key(|segment| segment.number);
    Ok(found)
}

/// Lists the writers' folders of a log, sorted.
pub(crate) fn writers(root: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut folders = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

/// The bodies of consecutive records. Does not verify the chain.
pub(crate) fn bodies(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<LENGTH_BYTES>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (body, after) = after.split_at_checked(length)?;
        rest = after.get(TAG_BYTES..)?;
        Some(body)
    })
}
