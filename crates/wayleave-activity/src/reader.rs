//! Reads a log, even while it is being written.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    activity::{Activity, ActivityId},
    archive::Archive,
    chain::ChainState,
    codec::LogRecord,
    error::ReadError,
    filter::ActivityFilter,
    log::SegmentSeal,
    segment::{self, FrameWalk, HEADER_BYTES, SegmentFile, SegmentHeader},
};

/// A reader of the log in a folder. It reads a damaged open segment up to the damage; a damaged
/// archive is an error.
#[derive(Debug, Clone)]
pub struct ActivityReader {
    pub(crate) folder: PathBuf,
}

/// Sizes and times of a log's newest files, to detect new records cheaply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogStamp(Vec<(u64, Option<SystemTime>)>);

impl ActivityReader {
    /// A reader of the log in `folder`, which need not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Finds an activity by its id.
    pub fn find(&self, id: ActivityId) -> Result<Option<Activity>, ReadError> {
        let filter = ActivityFilter {
            id: Some(id),
            ..ActivityFilter::default()
        };
        Ok(self.latest(&filter, 1)?.pop())
    }

    /// Returns the latest activities that match, latest first.
    pub fn latest(
        &self,
        filter: &ActivityFilter,
        limit: usize,
    ) -> Result<Vec<Activity>, ReadError> {
        let mut found = Vec::new();
        for writer in self.writers()? {
            let mut of_writer = Vec::new();
            let segments = segment::segments(&writer).map_err(ReadError::disk(&writer))?;
            for file in segments.iter().rev() {
                let mut of_segment = Vec::new();
                scan(file, filter, &mut |activity| of_segment.push(activity))?;
                of_writer.extend(of_segment.into_iter().rev());
                if of_writer.len() >= limit {
                    break;
                }
            }
            found.extend(of_writer.into_iter().take(limit));
        }
        found.sort_by_key(|activity| std::cmp::Reverse(activity.id));
        found.truncate(limit);
        Ok(found)
    }

    /// Passes every activity that matches to `each`, in the order each writer recorded them.
    pub fn each(
        &self,
        filter: &ActivityFilter,
        mut each: impl FnMut(Activity),
    ) -> Result<(), ReadError> {
        for writer in self.writers()? {
            let segments = segment::segments(&writer).map_err(ReadError::disk(&writer))?;
            for file in &segments {
                scan(file, filter, &mut each)?;
            }
        }
        Ok(())
    }

    /// Passes the activities that match to `each`, the segments of all writers from the one
    /// written last on, until at least `limit` were passed. Returns whether it passed all.
    pub fn recent(
        &self,
        filter: &ActivityFilter,
        limit: usize,
        mut each: impl FnMut(Activity),
    ) -> Result<bool, ReadError> {
        let mut segments = Vec::new();
        for writer in self.writers()? {
            let files = segment::segments(&writer).map_err(ReadError::disk(&writer))?;
            // A segment comes before the next one of its writer, whatever the clock said.
            let mut latest = SystemTime::now();
            for file in files.into_iter().rev() {
                latest = latest.min(last_written(&file).unwrap_or(latest));
                segments.push((latest, file));
            }
        }
        segments.sort_by_key(|(latest, file)| Reverse((*latest, file.number)));
        let mut passed = 0;
        for (_, file) in &segments {
            if passed >= limit {
                return Ok(false);
            }
            scan(file, filter, &mut |activity| {
                passed += 1;
                each(activity);
            })?;
        }
        Ok(true)
    }

    /// Returns the stamp of the log. It differs from an earlier one if a record was written since.
    pub fn stamp(&self) -> Result<LogStamp, ReadError> {
        let mut files = Vec::new();
        for writer in self.writers()? {
            let segments = segment::segments(&writer).map_err(ReadError::disk(&writer))?;
            let newest = segments.last().map(|it| fs::metadata(&it.path));
            if let Some(Ok(file)) = newest {
                files.push((file.len(), file.modified().ok()));
            }
        }
        Ok(LogStamp(files))
    }

    /// The seals of all archives that are present and readable.
    pub fn seals(&self) -> Result<Vec<SegmentSeal>, ReadError> {
        let mut seals = Vec::new();
        for writer in self.writers()? {
            let segments = segment::segments(&writer).map_err(ReadError::disk(&writer))?;
            let archives = segments.iter().filter(|file| file.archived);
            seals.extend(archives.filter_map(|file| {
                let archive = Archive::open(&file.path).ok()?;
                Some(archive.seal())
            }));
        }
        Ok(seals)
    }

    pub(crate) fn writers(&self) -> Result<Vec<PathBuf>, ReadError> {
        segment::writers(&self.folder).map_err(ReadError::disk(&self.folder))
    }
}

/// The time of a segment's last record. The file of an archive may be packed, or restored from a
/// backup, long after it.
fn last_written(file: &SegmentFile) -> Option<SystemTime> {
    if file.archived {
        let ended = Archive::open(&file.path).ok()?.summary.to_ms;
        return UNIX_EPOCH.checked_add(Duration::from_millis(ended));
    }
    fs::metadata(&file.path).and_then(|it| it.modified()).ok()
}

fn scan(
    file: &SegmentFile,
    filter: &ActivityFilter,
    each: &mut dyn FnMut(Activity),
) -> Result<(), ReadError> {
    let scanned = if file.archived {
        scan_archive(&file.path, filter, each)
    } else {
        scan_open(&file.path, filter, each)
    };
    match scanned {
        // Packed or dropped since the folder was listed.
        Err(ReadError::Disk { cause, .. }) if cause.kind() == std::io::ErrorKind::NotFound => {
            let packed = file.path.with_extension("arc");
            if !file.archived && packed.exists() {
                return scan_archive(&packed, filter, each);
            }
            Ok(())
        }
        scanned => scanned,
    }
}

fn scan_open(
    path: &Path,
    filter: &ActivityFilter,
    each: &mut dyn FnMut(Activity),
) -> Result<(), ReadError> {
    let bytes = fs::read(path).map_err(ReadError::disk(path))?;
    if let Some(header) = SegmentHeader::decode(&bytes) {
        let records = bytes.get(HEADER_BYTES..).unwrap_or_default();
        scan_frames(records, header.state(), filter, each);
    }
    Ok(())
}

fn scan_archive(
    path: &Path,
    filter: &ActivityFilter,
    each: &mut dyn FnMut(Activity),
) -> Result<(), ReadError> {
    let archive = Archive::open(path)?;
    if !filter.may_match_between(archive.summary.from_ms, archive.summary.to_ms) {
        return Ok(());
    }
    let mut wanted: Option<BTreeSet<u32>> = None;
    for key in filter.keys() {
        let found = archive.blocks_with(key)?;
        let both = match wanted {
            Some(wanted) => wanted.intersection(&found).copied().collect(),
            None => found,
        };
        if both.is_empty() {
            return Ok(());
        }
        wanted = Some(both);
    }
    for (number, block) in (0..).zip(archive.blocks()?) {
        if wanted
            .as_ref()
            .is_none_or(|wanted| wanted.contains(&number))
        {
            let raw = archive.unpack(&block)?;
            scan_block(&raw, filter, each);
        }
    }
    Ok(())
}

/// Scans the records of one block. The block's checksum covers them, so the chain is not verified.
fn scan_block(raw: &[u8], filter: &ActivityFilter, each: &mut dyn FnMut(Activity)) {
    for body in segment::bodies(raw) {
        pick(body, filter, each);
    }
}

fn scan_frames(
    records: &[u8],
    state: ChainState,
    filter: &ActivityFilter,
    each: &mut dyn FnMut(Activity),
) {
    let mut walk = FrameWalk::new(records, state);
    while let Some(Ok(frame)) = walk.next_frame() {
        pick(frame.body, filter, each);
    }
}

fn pick(body: &[u8], filter: &ActivityFilter, each: &mut dyn FnMut(Activity)) {
    if let Ok(LogRecord::Activity(activity)) = LogRecord::decode(body)
        && filter.matches(&activity)
    {
        each(*activity);
    }
}
