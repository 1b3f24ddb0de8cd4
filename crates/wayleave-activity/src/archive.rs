//! The archive of a closed segment: its records, compressed in blocks, with an index of their keys.
//!
//! ```text
//! magic · segment header · blocks · keys, sorted · block table · summary
//! ```
//!
//! A block is a run of whole records. An index entry is the hash of a key, such as a record id or a
//! stream, with the number of a block that contains it. The block table has a checksum of each
//! block; the summary has checksums of everything else and of itself.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};

use crate::{
    activity::Activity,
    chain::{ChainState, TAG_BYTES, sha256},
    codec::LogRecord,
    error::ReadError,
    log::SegmentSeal,
    segment::{FrameWalk, HEADER_BYTES, SegmentHeader},
};

const MAGIC: &[u8; 8] = b"WLARC1\r\n";
/// Uncompressed bytes after which a block is closed. Reading one record unpacks its whole block.
const BLOCK_BYTES: usize = 32 * 1024;
/// Deflate level. Higher levels cost more time than they gain: ids and digests do not compress.
const DEFLATE_LEVEL: u32 = 4;
const KEY_BYTES: usize = 12;
const ENTRY_BYTES: usize = 8 + 4 + 4 + 8 + TAG_BYTES;
const SUMMARY_BYTES: usize = 8 * 7 + 32 + 32 + 32;

/// The kinds of keys in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Id,
    Record,
    Token,
    Dataset,
    Stream,
    Outcome,
    Target,
}

/// Hashes a key.
pub(crate) fn key(kind: KeyKind, value: &[u8]) -> u64 {
    let mut bytes = Vec::with_capacity(value.len() + 1);
    bytes.push(kind as u8);
    bytes.extend_from_slice(value);
    let sum = sha256(&bytes);
    sum.first_chunk()
        .map_or(0, |first| u64::from_le_bytes(*first))
}

fn keys(activity: &Activity, into: &mut BTreeSet<u64>) {
    into.insert(key(KeyKind::Id, activity.id.as_bytes()));
    into.insert(key(KeyKind::Token, activity.agent.token.as_bytes()));
    into.insert(key(KeyKind::Outcome, activity.outcome.as_str().as_bytes()));
    if let Some(target) = &activity.target {
        into.insert(key(KeyKind::Target, target.as_bytes()));
    }
    for grant in &activity.grants {
        into.insert(key(KeyKind::Dataset, grant.dataset.as_bytes()));
    }
    for stream in &activity.streams {
        into.insert(key(KeyKind::Stream, stream.as_bytes()));
    }
    for id in activity.used.ids.iter().chain(&activity.generated.ids) {
        into.insert(key(KeyKind::Record, id.as_bytes()));
    }
}

/// An entry of the block table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockEntry {
    offset: u64,
    packed: u32,
    raw: u32,
    pub(crate) first_record: u64,
    tag: [u8; TAG_BYTES],
}

/// The summary at the end of an archive: offsets, totals and checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArchiveSummary {
    keys_offset: u64,
    key_count: u64,
    table_offset: u64,
    block_count: u64,
    pub(crate) last_record: u64,
    /// Start of the earliest call and end of the latest, in milliseconds.
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
    /// The state of the chain after its last record.
    pub(crate) state: ChainState,
    /// The hash of magic, header, keys and block table.
    sum: [u8; 32],
}

impl ArchiveSummary {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SUMMARY_BYTES);
        for number in [
            self.keys_offset,
            self.key_count,
            self.table_offset,
            self.block_count,
            self.last_record,
            self.from_ms,
            self.to_ms,
        ] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.state.0);
        bytes.extend_from_slice(&self.sum);
        let own = sha256(&bytes);
        bytes.extend_from_slice(&own);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut number = || {
            let (number, after) = rest.split_first_chunk()?;
            rest = after;
            Some(u64::from_le_bytes(*number))
        };
        let mut summary = Self {
            keys_offset: number()?,
            key_count: number()?,
            table_offset: number()?,
            block_count: number()?,
            last_record: number()?,
            from_ms: number()?,
            to_ms: number()?,
            state: ChainState::default(),
            sum: [0; 32],
        };
        let (state, rest) = rest.split_first_chunk()?;
        let (sum, _) = rest.split_first_chunk()?;
        summary.state = ChainState(*state);
        summary.sum = *sum;
        (summary.encode() == bytes).then_some(summary)
    }
}

/// Compresses a complete, undamaged segment.
pub(crate) fn pack(segment: &[u8]) -> io::Result<Vec<u8>> {
    let unsound = || io::Error::new(io::ErrorKind::InvalidData, "the segment is damaged");
    let header = SegmentHeader::decode(segment).ok_or_else(unsound)?;
    let (head, records) = segment.split_at_checked(HEADER_BYTES).ok_or_else(unsound)?;
    let mut packer = ArchiveWriter {
        out: [MAGIC, head].concat(),
        raw: Vec::new(),
        blocks: Vec::new(),
        keys: Vec::new(),
        block_keys: BTreeSet::new(),
        first_record: header.first_record,
    };
    let mut walk = FrameWalk::new(records, header.state());
    let mut last_record = header.first_record - 1;
    let (mut from_ms, mut to_ms) = (u64::MAX, 0);
    while let Some(frame) = walk.next_frame() {
        let frame = frame.map_err(|_| unsound())?;
        last_record += 1;
        if let Ok(LogRecord::Activity(activity)) = LogRecord::decode(frame.body) {
            keys(&activity, &mut packer.block_keys);
            from_ms = from_ms.min(activity.id.started_ms());
            to_ms = to_ms.max(activity.ended_ms());
        }
        packer.raw.extend_from_slice(frame.bytes);
        if packer.raw.len() >= BLOCK_BYTES {
            packer.end_block(last_record + 1)?;
        }
    }
    packer.end_block(last_record + 1)?;
    Ok(packer.finish(ArchiveSummary {
        keys_offset: 0,
        key_count: 0,
        table_offset: 0,
        block_count: 0,
        last_record,
        from_ms: if to_ms == 0 {
            header.created_ms
        } else {
            from_ms
        },
        to_ms: to_ms.max(header.created_ms),
        state: walk.state,
        sum: [0; 32],
    }))
}

struct ArchiveWriter {
    out: Vec<u8>,
    raw: Vec<u8>,
    blocks: Vec<BlockEntry>,
    keys: Vec<(u64, u32)>,
    block_keys: BTreeSet<u64>,
    first_record: u64,
}

impl ArchiveWriter {
    #[expect(
        clippy::expect_used,
        reason = "a default would make an unreadable archive"
    )]
    fn end_block(&mut self, next_record: u64) -> io::Result<()> {
        if self.raw.is_empty() {
            return Ok(());
        }
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::new(DEFLATE_LEVEL));
        deflate.write_all(&self.raw)?;
        let packed = deflate.finish()?;
        let number = u32::try_from(self.blocks.len());
        let number = number.expect("an archive has fewer blocks than 2^32");
        let length =
            |bytes: &[u8]| u32::try_from(bytes.len()).expect("a block is below four gigabytes");
        let keys = std::mem::take(&mut self.block_keys);
        self.keys.extend(keys.into_iter().map(|key| (key, number)));
        self.blocks.push(BlockEntry {
            offset: self.out.len() as u64,
            packed: length(&packed),
            raw: length(&self.raw),
            first_record: self.first_record,
            tag: tag(&packed),
        });
        self.out.extend_from_slice(&packed);
        self.raw.clear();
        self.first_record = next_record;
        Ok(())
    }

    fn finish(mut self, mut summary: ArchiveSummary) -> Vec<u8> {
        self.keys.sort_unstable();
        summary.keys_offset = self.out.len() as u64;
        summary.key_count = self.keys.len() as u64;
        let begin = self.out.len();
        for (key, block) in &self.keys {
            self.out.extend_from_slice(&key.to_le_bytes());
            self.out.extend_from_slice(&block.to_le_bytes());
        }
        summary.table_offset = self.out.len() as u64;
        summary.block_count = self.blocks.len() as u64;
        for block in &self.blocks {
            self.out.extend_from_slice(&block.offset.to_le_bytes());
            self.out.extend_from_slice(&block.packed.to_le_bytes());
            self.out.extend_from_slice(&block.raw.to_le_bytes());
            self.out
                .extend_from_slice(&block.first_record.to_le_bytes());
            self.out.extend_from_slice(&block.tag);
        }
        let (start, _) = self.out.split_at(MAGIC.len() + HEADER_BYTES);
        let (_, tables) = self.out.split_at(begin);
        summary.sum = sha256(&[start, tables].concat());
        self.out.extend_from_slice(&summary.encode());
        self.out
    }
}

fn tag(bytes: &[u8]) -> [u8; TAG_BYTES] {
    ChainState(sha256(bytes)).tag()
}

/// Writes an archive under a temporary name, syncs it and renames it.
pub(crate) fn publish(bytes: &[u8], target: &Path) -> io::Result<()> {
    let temporary = target.with_extension("tmp");
    let _ = fs::remove_file(&temporary);
    let mut options = OpenOptions::new();
    let mut file = (options.write(true).create_new(true).mode(0o600)).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, target)?;
    sync_folder(target)
}

/// Syncs the parent folder of a file.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// An archive, open for reading.
#[derive(Debug)]
pub(crate) struct Archive<'p> {
    path: &'p Path,
    file: File,
    pub(crate) header: SegmentHeader,
    pub(crate) summary: ArchiveSummary,
}

impl<'p> Archive<'p> {
    pub(crate) fn open(path: &'p Path) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(ReadError::disk(path))?;
        let length = file.metadata().map_err(ReadError::disk(path))?.len();
        let damaged = |reason| ReadError::damaged(path, reason);
        let mut start = [0; MAGIC.len() + HEADER_BYTES];
        let mut end = [0; SUMMARY_BYTES];
        let end_at = length
            .checked_sub(SUMMARY_BYTES as u64)
            .ok_or_else(|| damaged("it is cut short"))?;
        let mut read = file.read_exact_at(&mut start, 0);
        read = read.and_then(|()| file.read_exact_at(&mut end, end_at));
        read.map_err(|_| damaged("it is cut short"))?;
        let header = start
            .strip_prefix(MAGIC)
            .and_then(SegmentHeader::decode)
            .ok_or_else(|| damaged("its header is invalid"))?;
        let summary = ArchiveSummary::decode(&end);
        let summary = summary.ok_or_else(|| damaged("its summary is invalid"))?;
        let table_bytes = summary.block_count.checked_mul(ENTRY_BYTES as u64);
        let table_end = table_bytes.and_then(|bytes| summary.table_offset.checked_add(bytes));
        if table_end != Some(end_at) {
            return Err(damaged("its length is not the one it states"));
        }
        Ok(Self {
            path,
            file,
            header,
            summary,
        })
    }

    /// The seal of the segment.
    pub(crate) fn seal(&self) -> SegmentSeal {
        SegmentSeal {
            writer: self.header.writer,
            segment: self.header.number,
            last_record: self.summary.last_record,
            state: self.summary.state.0,
        }
    }

    fn read_at(&self, offset: u64, length: u64) -> Result<Vec<u8>, ReadError> {
        let length = usize::try_from(length)
            .map_err(|_| ReadError::damaged(self.path, "a length is invalid"))?;
        let mut bytes = vec![0; length];
        self.file
            .read_exact_at(&mut bytes, offset)
            .map_err(ReadError::disk(self.path))?;
        Ok(bytes)
    }

    /// Checks the tables against their checksum.
    pub(crate) fn check_tables(&self) -> Result<(), ReadError> {
        let start = self.read_at(0, (MAGIC.len() + HEADER_BYTES) as u64)?;
        let end = self.summary.table_offset + self.summary.block_count * ENTRY_BYTES as u64;
        let bytes = end.checked_sub(self.summary.keys_offset);
        let bytes =
            bytes.ok_or_else(|| ReadError::damaged(self.path, "its tables are displaced"))?;
        let tables = self.read_at(self.summary.keys_offset, bytes)?;
        if sha256(&[start, tables].concat()) == self.summary.sum {
            Ok(())
        } else {
            Err(ReadError::damaged(self.path, "its tables were altered"))
        }
    }

    /// All blocks, in order.
    pub(crate) fn blocks(&self) -> Result<Vec<BlockEntry>, ReadError> {
        let bytes = self.summary.block_count * ENTRY_BYTES as u64;
        let table = self.read_at(self.summary.table_offset, bytes)?;
        let entries = table.chunks_exact(ENTRY_BYTES).map(|entry| {
            let (offset, rest) = entry.split_first_chunk()?;
            let (packed, rest) = rest.split_first_chunk()?;
            let (raw, rest) = rest.split_first_chunk()?;
            let (first_record, rest) = rest.split_first_chunk()?;
            let (tag, _) = rest.split_first_chunk()?;
            Some(BlockEntry {
                offset: u64::from_le_bytes(*offset),
                packed: u32::from_le_bytes(*packed),
                raw: u32::from_le_bytes(*raw),
                first_record: u64::from_le_bytes(*first_record),
                tag: *tag,
            })
        });
        let entries: Option<Vec<BlockEntry>> = entries.collect();
        entries.ok_or_else(|| ReadError::damaged(self.path, "its block table is invalid"))
    }

    /// Unpacks the records of a block, byte for byte as in the segment.
    pub(crate) fn unpack(&self, block: &BlockEntry) -> Result<Vec<u8>, ReadError> {
        let packed = self.read_at(block.offset, u64::from(block.packed))?;
        if tag(&packed) != block.tag {
            return Err(ReadError::damaged(self.path, "a block was altered"));
        }
        let mut raw = Vec::new();
        let most = u64::from(block.raw) + 1;
        let inflated = DeflateDecoder::new(packed.as_slice())
            .take(most)
            .read_to_end(&mut raw);
        match inflated {
            Ok(length) if length as u64 == u64::from(block.raw) => Ok(raw),
            _ => Err(ReadError::damaged(self.path, "a block cannot be unpacked")),
        }
    }

    /// The numbers of the blocks that contain a key.
    pub(crate) fn blocks_with(&self, key: u64) -> Result<BTreeSet<u32>, ReadError> {
        let (mut low, mut high) = (0, self.summary.key_count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key_at(middle)?.0 < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut blocks = BTreeSet::new();
        while low < self.summary.key_count {
            let (found, block) = self.key_at(low)?;
            if found != key {
                break;
            }
            blocks.insert(block);
            low += 1;
        }
        Ok(blocks)
    }

    fn key_at(&self, at: u64) -> Result<(u64, u32), ReadError> {
        let mut bytes = [0; KEY_BYTES];
        let offset = self.summary.keys_offset + at * KEY_BYTES as u64;
        self.file
            .read_exact_at(&mut bytes, offset)
            .map_err(ReadError::disk(self.path))?;
        let [key @ .., a, b, c, d] = bytes;
        Ok((u64::from_le_bytes(key), u32::from_le_bytes([a, b, c, d])))
    }
}
