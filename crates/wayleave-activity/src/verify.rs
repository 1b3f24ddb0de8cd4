//! Verifies a log: follows every chain from its first record to its head, and reports the first
//! damaged record.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::{
    archive::Archive,
    chain::ChainState,
    codec::{DroppedSegments, LogRecord},
    error::ReadError,
    head::{self, StoredHead},
    log::SegmentSeal,
    reader::ActivityReader,
    segment::{self, FrameFault, FrameWalk, HEADER_BYTES, SegmentFile, SegmentHeader},
};

/// Damage of a log, and the first record it affects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogDamage {
    /// The segment's file, or the writer's folder.
    pub path: PathBuf,
    /// The segment.
    pub segment: u64,
    /// The first damaged record, counted from 1.
    pub record: u64,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (segment, record) = (self.segment, self.record);
        let path = self.path.display();
        write!(
            f,
            "record {record} in segment {segment} (`{path}`): {}",
            self.reason
        )
    }
}

/// The result of verifying one writer's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WriterReport {
    /// Its folder.
    pub folder: PathBuf,
    /// Number of segments found.
    pub segments: u64,
    /// Number of intact records.
    pub records: u64,
    /// Number of records that retention dropped.
    pub dropped: u64,
    /// The first damage.
    pub damage: Option<LogDamage>,
}

/// The result of verifying a whole log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LogReport {
    /// Every writer.
    pub writers: Vec<WriterReport>,
    /// Chains that have a seal in the ledger and were not found.
    pub lost: Vec<LogDamage>,
}

impl LogReport {
    /// Whether no damage was found.
    pub fn is_sound(&self) -> bool {
        self.lost.is_empty() && self.writers.iter().all(|writer| writer.damage.is_none())
    }

    /// All damage found, the first of each chain.
    pub fn damages(&self) -> impl Iterator<Item = &LogDamage> {
        let of_writers = self
            .writers
            .iter()
            .filter_map(|writer| writer.damage.as_ref());
        of_writers.chain(&self.lost)
    }
}

impl ActivityReader {
    /// Verifies the log against itself, its heads and the seals stored elsewhere.
    pub fn verify(&self, seals: &[SegmentSeal]) -> Result<LogReport, ReadError> {
        let mut report = LogReport::default();
        let mut known: BTreeMap<[u8; 16], Vec<&SegmentSeal>> = BTreeMap::new();
        for seal in seals {
            known.entry(seal.writer).or_default().push(seal);
        }
        for folder in self.writers()? {
            let (checked, writers) = verify_writer(&folder, &known)?;
            for writer in writers {
                known.remove(&writer);
            }
            report.writers.push(checked);
        }
        for seals in known.into_values() {
            report.lost.extend(seals.first().map(|seal| LogDamage {
                path: self.folder.clone(),
                segment: seal.segment,
                record: 1,
                reason: "the ledger has the seal of a chain that is gone".to_owned(),
            }));
        }
        Ok(report)
    }
}

/// A walk over one writer's segments.
struct ChainWalk<'s> {
    folder: &'s Path,
    seals: &'s BTreeMap<[u8; 16], Vec<&'s SegmentSeal>>,
    head: Option<StoredHead>,
    report: WriterReport,
    state: ChainState,
    /// The number of the last record.
    record: u64,
    segment: u64,
    /// Segment, record and chain state that the first segment found must continue, if it is not the
    /// first of all.
    begins_after: Option<(u64, u64, ChainState)>,
    dropped: Vec<DroppedSegments>,
    writers: Vec<[u8; 16]>,
    /// Whether the walk passed the record that the head names, with the head's chain state.
    met_head: bool,
}

type CheckResult = Result<(), LogDamage>;

fn verify_writer(
    folder: &Path,
    seals: &BTreeMap<[u8; 16], Vec<&SegmentSeal>>,
) -> Result<(WriterReport, Vec<[u8; 16]>), ReadError> {
    // Read the head first: records appended meanwhile then lie beyond it.
    let head = head::read(folder).map_err(ReadError::disk(folder))?;
    let files = segment::segments(folder).map_err(ReadError::disk(folder))?;
    let mut walk = ChainWalk {
        folder,
        seals,
        head,
        report: WriterReport {
            folder: folder.to_owned(),
            segments: files.len() as u64,
            records: 0,
            dropped: 0,
            damage: None,
        },
        state: ChainState::default(),
        record: 0,
        segment: 0,
        begins_after: None,
        dropped: Vec::new(),
        writers: Vec::new(),
        met_head: false,
    };
    let mut checked = Ok(());
    for file in &files {
        checked = walk.segment(file)?;
        if checked.is_err() {
            break;
        }
    }
    walk.report.damage = checked.and_then(|()| walk.end(&files)).err();
    Ok((walk.report, walk.writers))
}

impl ChainWalk<'_> {
    fn damage(&self, path: &Path, segment: u64, reason: impl Into<String>) -> LogDamage {
        LogDamage {
            path: path.to_owned(),
            segment,
            record: self.record + 1,
            reason: reason.into(),
        }
    }

    fn segment(&mut self, file: &SegmentFile) -> Result<CheckResult, ReadError> {
        Ok(if file.archived {
            match Archive::open(&file.path) {
                Ok(archive) => self.archive(file, &archive),
                Err(error) => Err(self.unreadable(file, error)?),
            }
        } else {
            let bytes = fs::read(&file.path).map_err(ReadError::disk(&file.path))?;
            self.open_segment(file, &bytes)
        })
    }

    /// Converts damage to a report; only a disk failure is an error.
    fn unreadable(&self, file: &SegmentFile, error: ReadError) -> Result<LogDamage, ReadError> {
        match error {
            ReadError::Damaged { reason, .. } => Ok(self.damage(&file.path, file.number, reason)),
            error @ ReadError::Disk { .. } => Err(error),
        }
    }

    fn header(&mut self, file: &SegmentFile, header: &SegmentHeader) -> CheckResult {
        let fail = |reason: &str| Err(self.damage(&file.path, file.number, reason));
        if header.number != file.number {
            return fail("the segment number in its header differs from its file name");
        }
        let is_first_here = self.segment == 0;
        if is_first_here && header.number > 1 {
            self.begins_after = Some((header.number - 1, header.first_record - 1, header.before));
            self.record = header.first_record - 1;
        } else if header.number != self.segment + 1 {
            return fail("segments before it are missing");
        } else if header.before != self.state || header.first_record != self.record + 1 {
            return fail("it does not continue the segment before it");
        }
        self.segment = header.number;
        self.state = header.state();
        if !self.writers.contains(&header.writer) {
            self.writers.push(header.writer);
        }
        Ok(())
    }

    fn open_segment(&mut self, file: &SegmentFile, bytes: &[u8]) -> CheckResult {
        let Some(header) = SegmentHeader::decode(bytes) else {
            let named = self.named_by_head(file.number);
            let is_unfinished = bytes.len() < HEADER_BYTES && !named;
            return if is_unfinished {
                Ok(())
            } else {
                Err(self.damage(&file.path, file.number, "its header is invalid"))
            };
        };
        self.header(file, &header)?;
        let records = bytes.get(HEADER_BYTES..).unwrap_or_default();
        let mut walk = FrameWalk::new(records, self.state);
        loop {
            match walk.next_frame() {
                None => break,
                Some(Ok(frame)) => self.frame(file, frame.body, walk.state)?,
                // A record being written, or whose writer was killed: no caller was answered.
                Some(Err(FrameFault::Incomplete)) if !self.is_before_head(file, walk.offset) => {
                    break;
                }
                Some(Err(FrameFault::Incomplete)) => {
                    return Err(self.damage(&file.path, file.number, "it is cut short"));
                }
                Some(Err(FrameFault::Broken)) => {
                    let reason = "it does not continue the chain";
                    return Err(self.damage(&file.path, file.number, reason));
                }
            }
        }
        self.sealed(file, &header)
    }

    fn named_by_head(&self, segment: u64) -> bool {
        let head = self.head.and_then(|stored| stored.head);
        head.is_some_and(|head| head.segment >= segment)
    }

    fn is_before_head(&self, file: &SegmentFile, walked: usize) -> bool {
        let head = self.head.and_then(|stored| stored.head);
        let offset = (HEADER_BYTES + walked) as u64;
        head.is_some_and(|head| {
            head.segment > file.number || (head.segment == file.number && head.offset > offset)
        })
    }

    fn archive(&mut self, file: &SegmentFile, archive: &Archive<'_>) -> CheckResult {
        self.header(file, &archive.header)?;
        let fail = |walk: &Self, error: ReadError| match error {
            ReadError::Damaged { reason, .. } => walk.damage(&file.path, file.number, reason),
            ReadError::Disk { cause, .. } => walk.damage(
                &file.path,
                file.number,
                format!("it cannot be read: {cause}"),
            ),
        };
        let blocks = archive.blocks().map_err(|error| fail(self, error))?;
        for block in blocks {
            if block.first_record != self.record + 1 {
                return Err(self.damage(&file.path, file.number, "a block is missing"));
            }
            let raw = archive.unpack(&block).map_err(|error| fail(self, error))?;
            let mut walk = FrameWalk::new(&raw, self.state);
            while let Some(frame) = walk.next_frame() {
                let Ok(frame) = frame else {
                    let reason = "it does not continue the chain";
                    return Err(self.damage(&file.path, file.number, reason));
                };
                self.frame(file, frame.body, walk.state)?;
            }
        }
        archive.check_tables().map_err(|error| fail(self, error))?;
        let summary = &archive.summary;
        if summary.last_record != self.record || summary.state != self.state {
            return Err(self.damage(&file.path, file.number, "records at its end are missing"));
        }
        self.sealed(file, &archive.header)
    }

    fn frame(&mut self, file: &SegmentFile, body: &[u8], state: ChainState) -> CheckResult {
        match LogRecord::decode(body) {
            Ok(LogRecord::Activity(_)) => {}
            Ok(LogRecord::Retention(dropped)) => self.dropped.push(dropped),
            Ok(LogRecord::Gap { missing }) => {
                let reason = format!("{missing} records before it were lost");
                return Err(self.damage(&file.path, file.number, reason));
            }
            Err(error) => {
                return Err(self.damage(&file.path, file.number, error.to_string()));
            }
        }
        self.record += 1;
        self.report.records += 1;
        self.state = state;
        if let Some(head) = self.head.and_then(|stored| stored.head)
            && head.record == self.record
        {
            if head.state != state {
                self.record -= 1;
                return Err(self.damage(
                    &file.path,
                    file.number,
                    "its chain state differs from the head's",
                ));
            }
            self.met_head = true;
        }
        Ok(())
    }

    /// Compares the end of a segment with its seal.
    fn sealed(&self, file: &SegmentFile, header: &SegmentHeader) -> CheckResult {
        let seals = self.seals.get(&header.writer).into_iter().flatten();
        for seal in seals.filter(|seal| seal.segment == file.number) {
            if seal.last_record != self.record || seal.state != self.state.0 {
                let reason = "its end is not the one in the ledger";
                return Err(self.damage(&file.path, file.number, reason));
            }
        }
        Ok(())
    }

    /// Checks what only the complete walk shows.
    fn end(&mut self, files: &[SegmentFile]) -> CheckResult {
        let (folder, last) = (self.folder.to_owned(), self.segment);
        if let Some((segment, record, state)) = self.begins_after {
            let mut proofs = self.dropped.iter();
            let proof = proofs.find(|dropped| {
                (dropped.last, dropped.last_record, ChainState(dropped.state))
                    == (segment, record, state)
            });
            if proof.is_none() {
                let mut damage =
                    self.damage(&folder, segment, "segments at the beginning are missing");
                damage.record = 1;
                return Err(damage);
            }
            self.report.dropped = record;
        }
        let Some(stored) = self.head else {
            return match files {
                [] => Ok(()),
                _ => Err(self.damage(&folder, last, "the head is missing")),
            };
        };
        if stored.has_damage {
            return Err(self.damage(&head::path(&folder), last, "the head was altered"));
        }
        match stored.head {
            Some(head) if head.record > self.record => {
                let reason = format!(
                    "{} records at the end are missing",
                    head.record - self.record
                );
                Err(self.damage(&folder, last, reason))
            }
            None if self.report.records > 0 => {
                Err(self.damage(&folder, last, "the head is missing"))
            }
            Some(head) if head.record > 0 && !self.met_head && self.report.records > 0 => {
                Err(self.damage(&folder, last, "the head states another chain"))
            }
            _ => self.seals_beyond(last),
        }
    }

    /// Reports a seal beyond the last segment: segments at the end are missing, and the head with
    /// them.
    fn seals_beyond(&self, last: u64) -> CheckResult {
        let seals = self
            .writers
            .iter()
            .filter_map(|writer| self.seals.get(writer));
        let beyond = seals.flatten().find(|seal| seal.segment > last);
        match beyond {
            Some(seal) => Err(self.damage(
                self.folder,
                seal.segment,
                "the ledger has the seal of a segment that is gone",
            )),
            None => Ok(()),
        }
    }
}
