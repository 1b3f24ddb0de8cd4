//! The writing side of one chain: its folder, newest segment and head.
//!
//! A batch is written whole or not at all: after a failure the segment is truncated to its former
//! length, and opened again before the next batch. A failed sync is never repeated on the same
//! bytes, because the failure may have discarded them.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::FlockOperation;

use crate::{
    archive::{self, Archive},
    chain::ChainState,
    codec::LogRecord,
    error::LogError,
    head::{self, LogHead, LogHeadFile},
    segment::{self, FrameFault, FrameWalk, HEADER_BYTES, SegmentHeader, push_frame},
};

/// Maximum number of concurrent writers of one log.
const MAX_WRITERS: usize = 256;
/// Largest buffer reused between batches, in bytes.
const MAX_REUSED_BUFFER_BYTES: usize = 64 * 1024;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Size limit of a segment, and whether batches are synced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentLimits {
    pub(crate) bytes: u64,
    /// Whether a batch is synced before it counts as written.
    pub(crate) sync: bool,
}

/// The writer's state after the last batch.
#[derive(Debug, Clone, Copy)]
struct End {
    header: SegmentHeader,
    offset: u64,
    /// The number of the last record.
    record: u64,
    state: ChainState,
    /// Number of writes of the head.
    count: u64,
}

impl End {
    fn head(&self) -> LogHead {
        LogHead {
            count: self.count,
            segment: self.header.number,
            offset: self.offset,
            record: self.record,
            state: self.state,
        }
    }
}

/// The writer of one chain.
pub(crate) struct SegmentWriter {
    folder: PathBuf,
    /// Held as long as the writer lives; the system releases it with the process.
    _lock: File,
    head: LogHeadFile,
    file: File,
    end: End,
    limits: SegmentLimits,
    /// The bytes of a batch; the buffer is reused.
    batch: Vec<u8>,
}

impl SegmentWriter {
    /// Locks the first free writer's folder of a log, and resumes where its last writer ended.
    pub(crate) fn open(root: &Path, limits: SegmentLimits, now_ms: u64) -> Result<Self, LogError> {
        make_folder(root)?;
        for number in 0..MAX_WRITERS {
            let folder = root.join(format!("{number:02}"));
            make_folder(&folder)?;
            if let Some(lock) = lock(&folder)? {
                return Self::resume(folder, lock, limits, now_ms);
            }
        }
        Err(LogError::TooManyWriters {
            path: root.to_owned(),
            limit: MAX_WRITERS,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The number of the newest segment.
    pub(crate) fn segment(&self) -> u64 {
        self.end.header.number
    }

    fn resume(
        folder: PathBuf,
        lock: File,
        limits: SegmentLimits,
        now_ms: u64,
    ) -> Result<Self, LogError> {
        let head_file =
            LogHeadFile::open(&folder).map_err(LogError::disk("written", &head::path(&folder)))?;
        let stored = head::read(&folder).map_err(LogError::disk("read", &folder))?;
        let head = stored.and_then(|stored| stored.head);
        let last = last_segment(&folder)?;
        let found = last.map(|path| Tail::read(&path)).transpose()?;
        let plan = Resumption::new(head, found.as_ref(), now_ms)?;
        let (file, end) = match plan {
            Resumption::Append(end) => (append_to(&folder, &end, found.as_ref())?, end),
            Resumption::Begin { end, .. } => (begin(&folder, &end.header)?, end),
        };
        let mut writer = Self {
            folder,
            _lock: lock,
            head: head_file,
            file,
            end,
            limits,
            batch: Vec::new(),
        };
        if head.is_none() {
            // From here on, a missing head means that it was removed.
            let end = End {
                count: writer.end.count + 1,
                ..writer.end
            };
            let written = writer.head.write(&end.head());
            written.map_err(LogError::disk("written", &head::path(&writer.folder)))?;
            writer.end = end;
        }
        if let Resumption::Begin {
            missing: Some(missing),
            ..
        } = plan
        {
            let gap = LogRecord::Gap { missing };
            tracing::error!(missing, "the activity log is shorter than its head states");
            writer.commit(&[gap.encode()])?;
        }
        Ok(writer)
    }

    /// Writes records as one batch: all of them, or none.
    pub(crate) fn commit(&mut self, bodies: &[impl AsRef<[u8]>]) -> Result<(), LogError> {
        let mut bytes = std::mem::take(&mut self.batch);
        bytes.clear();
        let mut state = self.end.state;
        for body in bodies {
            state = push_frame(&mut bytes, state, body.as_ref());
        }
        let end = End {
            offset: self.end.offset + bytes.len() as u64,
            record: self.end.record + bodies.len() as u64,
            state,
            count: self.end.count + 1,
            ..self.end
        };
        let written = self.write(&bytes, &end);
        if bytes.capacity() <= MAX_REUSED_BUFFER_BYTES {
            self.batch = bytes;
        }
        match written {
            Ok(()) => {
                self.end = end;
                Ok(())
            }
            Err(error) => {
                let path = segment::open_path(&self.folder, self.segment());
                // If truncation fails, opening the segment again repeats it.
                let _ = self.file.set_len(self.end.offset);
                Err(LogError::disk("written", &path)(error))
            }
        }
    }

    fn write(&self, bytes: &[u8], end: &End) -> io::Result<()> {
        self.file.write_all_at(bytes, self.end.offset)?;
        if self.limits.sync {
            self.file.sync_data()?;
        }
        // Not synced: a head left behind its records by a power cut does no harm.
        self.head.write(&end.head())
    }

    /// Begins another segment if this one is full or from another day; returns the number of the
    /// closed one.
    pub(crate) fn rotate_if_due(&mut self, now_ms: u64) -> Result<Option<u64>, LogError> {
        let header = &self.end.header;
        let is_empty = self.end.record < header.first_record;
        let same_day = header.created_ms / DAY_MS == now_ms / DAY_MS;
        if is_empty || (self.end.offset < self.limits.bytes && same_day) {
            return Ok(None);
        }
        self.rotate(now_ms).map(Some)
    }

    /// Begins another segment; returns the number of the closed one.
    pub(crate) fn rotate(&mut self, now_ms: u64) -> Result<u64, LogError> {
        let ended = self.segment();
        let header = SegmentHeader {
            number: ended + 1,
            first_record: self.end.record + 1,
            created_ms: now_ms,
            writer: self.end.header.writer,
            before: self.end.state,
        };
        self.file = begin(&self.folder, &header)?;
        self.end = End {
            header,
            offset: HEADER_BYTES as u64,
            state: header.state(),
            ..self.end
        };
        Ok(ended)
    }
}

/// The newest segment as found on disk.
struct Tail {
    header: Option<SegmentHeader>,
    /// The end of its last intact record.
    offset: u64,
    record: u64,
    state: ChainState,
    /// Whether further bytes follow that record.
    has_more: bool,
    is_archived: bool,
}

impl Tail {
    fn read(file: &segment::SegmentFile) -> Result<Self, LogError> {
        if file.archived {
            let archive = Archive::open(&file.path).map_err(|_| LogError::Damaged {
                path: file.path.clone(),
                offset: 0,
            })?;
            return Ok(Self {
                header: Some(archive.header),
                offset: 0,
                record: archive.summary.last_record,
                state: archive.summary.state,
                has_more: false,
                is_archived: true,
            });
        }
        let bytes = fs::read(&file.path).map_err(LogError::disk("read", &file.path))?;
        let header = SegmentHeader::decode(&bytes);
        let state = header.map_or(ChainState::default(), |header| header.state());
        let records = bytes.get(HEADER_BYTES..).unwrap_or_default();
        let mut walk = FrameWalk::new(records, state);
        let mut record = header.map_or(0, |header| header.first_record - 1);
        let mut has_more = header.is_none();
        while header.is_some()
            && let Some(frame) = walk.next_frame()
        {
            match frame {
                Ok(_) => record += 1,
                Err(FrameFault::Incomplete | FrameFault::Broken) => {
                    has_more = true;
                    break;
                }
            }
        }
        Ok(Self {
            header,
            offset: (HEADER_BYTES + walk.offset) as u64,
            record,
            state: walk.state,
            has_more,
            is_archived: false,
        })
    }
}

/// How a writer resumes a chain.
enum Resumption {
    /// Appends to the newest segment.
    Append(End),
    /// Begins a new segment. `missing` is the number of lost records, if the log is damaged.
    Begin { end: End, missing: Option<u64> },
}

impl Resumption {
    fn new(head: Option<LogHead>, tail: Option<&Tail>, now_ms: u64) -> Result<Self, LogError> {
        let count = head.map_or(0, |head| head.count);
        let Some((tail, header)) = tail.and_then(|tail| Some((tail, tail.header?))) else {
            // No segment, or none that can be continued.
            let missing = head.map(|head| head.record);
            let writer = random()?;
            return Ok(Self::begin(head, None, writer, missing, now_ms));
        };
        let behind = head.is_some_and(|head| {
            let further = head.segment == header.number && head.offset > tail.offset;
            head.segment > header.number || (further && !tail.is_archived)
        });
        let end = End {
            header,
            offset: tail.offset,
            record: tail.record,
            state: tail.state,
            count,
        };
        if behind {
            let missing = head.map_or(0, |head| head.record.saturating_sub(tail.record));
            Ok(Self::begin(
                head,
                Some(end),
                header.writer,
                Some(missing),
                now_ms,
            ))
        } else if head.is_none() && tail.record > 0 {
            Ok(Self::begin(None, Some(end), header.writer, Some(0), now_ms))
        } else if tail.is_archived {
            Ok(Self::begin(None, Some(end), header.writer, None, now_ms))
        } else {
            Ok(Self::Append(end))
        }
    }

    /// Begins a new segment after the head, or else after the end found on disk.
    fn begin(
        head: Option<LogHead>,
        found: Option<End>,
        writer: [u8; 16],
        missing: Option<u64>,
        now_ms: u64,
    ) -> Self {
        let found_segment = found.map_or(0, |end| end.header.number);
        let found_count = found.map_or(0, |end| end.count);
        let (segment, record, before, count) = match (head, found) {
            (Some(head), _) => (head.segment, head.record, head.state, head.count),
            (None, Some(end)) => (end.header.number, end.record, end.state, end.count),
            (None, None) => (0, 0, ChainState::default(), 0),
        };
        let header = SegmentHeader {
            number: segment.max(found_segment) + 1,
            first_record: record + 1,
            created_ms: now_ms,
            writer,
            before,
        };
        let end = End {
            header,
            offset: HEADER_BYTES as u64,
            record,
            state: header.state(),
            count: count.max(found_count),
        };
        Self::Begin { end, missing }
    }
}

fn random() -> Result<[u8; 16], LogError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| LogError::Random)?;
    Ok(bytes)
}

/// Finds the newest segment. Removes one with an incomplete header: its writer ended while creating
/// it, so it contains no record.
fn last_segment(folder: &Path) -> Result<Option<segment::SegmentFile>, LogError> {
    loop {
        let mut found = segment::segments(folder).map_err(LogError::disk("read", folder))?;
        let Some(last) = found.pop() else {
            return Ok(None);
        };
        let length = fs::metadata(&last.path).map_err(LogError::disk("read", &last.path))?;
        if last.archived || length.len() >= HEADER_BYTES as u64 {
            return Ok(Some(last));
        }
        fs::remove_file(&last.path).map_err(LogError::disk("removed", &last.path))?;
    }
}

fn append_to(folder: &Path, end: &End, tail: Option<&Tail>) -> Result<File, LogError> {
    let path = segment::open_path(folder, end.header.number);
    let opened = OpenOptions::new().read(true).write(true).open(&path);
    let file = opened.map_err(LogError::disk("written", &path))?;
    if tail.is_some_and(|tail| tail.has_more) {
        // Truncate a record that its writer did not finish: no caller was answered.
        let cut = file.set_len(end.offset);
        cut.map_err(LogError::disk("written", &path))?;
    }
    Ok(file)
}

fn begin(folder: &Path, header: &SegmentHeader) -> Result<File, LogError> {
    let path = segment::open_path(folder, header.number);
    let make = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.mode(0o600).open(&path)?;
        file.write_all_at(&header.encode(), 0)?;
        file.sync_all()?;
        archive::sync_folder(&path)?;
        Ok(file)
    };
    make().map_err(|cause| {
        let _ = fs::remove_file(&path);
        LogError::disk("written", &path)(cause)
    })
}

fn make_folder(path: &Path) -> Result<(), LogError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => archive::sync_folder(path).map_err(LogError::disk("written", path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(LogError::disk("written", path)(error)),
    }
}

/// Locks a writer's folder; `None` if another writer holds the lock.
fn lock(folder: &Path) -> Result<Option<File>, LogError> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let opened = options.mode(0o600).open(&path);
    let file = opened.map_err(LogError::disk("written", &path))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(LogError::disk("locked", &path)(error.into())),
    }
}
