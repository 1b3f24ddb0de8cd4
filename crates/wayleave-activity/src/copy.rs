//! Copies a log while writers append to it.
//!
//! The head of a writer is read after its segments are listed, so a record that the head covers
//! states every drop before the listing. The newest segment is copied up to the head. If a segment
//! is packed or dropped during the copy, the copy of that writer starts over.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

use crate::{
    error::LogError,
    head::{self, LogHead, StoredHead},
    reader::ActivityReader,
    segment::{self, HEADER_BYTES, SegmentFile},
};

/// Maximum number of attempts to copy one writer's log, or to read its head. Segments are packed
/// once in 16 MiB or a day.
const MAX_ATTEMPTS: usize = 100;

/// Whether the copy of a writer's log is a consistent snapshot.
enum CopyOutcome {
    Whole,
    /// A segment was packed, dropped or begun during the copy.
    Moved,
}

impl ActivityReader {
    /// Copies the log into a new folder, each writer's chain up to its head. Creates no folder if
    /// there is no log.
    pub fn copy_into(&self, to: &Path) -> Result<(), LogError> {
        let read = |error| LogError::disk("read", &self.folder)(error);
        let writers = segment::writers(&self.folder).map_err(read)?;
        if writers.is_empty() {
            return Ok(());
        }
        make_folder(to)?;
        for writer in writers {
            let Some(name) = writer.file_name() else {
                continue;
            };
            copy_writer(&writer, &to.join(name))?;
        }
        Ok(())
    }
}

fn copy_writer(from: &Path, to: &Path) -> Result<(), LogError> {
    for _ in 0..MAX_ATTEMPTS {
        make_folder(to)?;
        match try_copy(from, to)? {
            CopyOutcome::Whole => return Ok(()),
            CopyOutcome::Moved => {
                fs::remove_dir_all(to).map_err(LogError::disk("removed", to))?;
            }
        }
    }
    let cause = io::Error::other("its segments change faster than they are copied");
    Err(LogError::disk("copied", from)(cause))
}

fn try_copy(from: &Path, to: &Path) -> Result<CopyOutcome, LogError> {
    let read = |error| LogError::disk("read", from)(error);
    let files = segment::segments(from).map_err(read)?;
    let Some((bytes, stored)) = whole_head(from)? else {
        // A new writer that has recorded nothing.
        let is_new = |file: &SegmentFile| {
            let found = fs::metadata(&file.path);
            !file.archived && found.is_ok_and(|found| found.len() <= HEADER_BYTES as u64)
        };
        if files.iter().all(is_new) {
            return Ok(CopyOutcome::Whole);
        }
        return copy_segments(&files, None, to);
    };
    let newest = files.last().map_or(0, |file| file.number);
    if stored.head.is_some_and(|head| head.segment > newest) && !files.is_empty() {
        // Begun since the listing. If it is missing for good, the copy preserves that damage.
        let again = segment::segments(from).map_err(read)?;
        if again.last().is_some_and(|file| file.number > newest) {
            return Ok(CopyOutcome::Moved);
        }
    }
    write_file(&head::path(to), &bytes)?;
    copy_segments(&files, stored.head, to)
}

/// Reads and parses the head file; `None` if there is none. Retries while a slot is being written;
/// returns a slot that stays damaged as it is.
fn whole_head(folder: &Path) -> Result<Option<(Vec<u8>, StoredHead)>, LogError> {
    let path = head::path(folder);
    let mut last = None;
    for _ in 0..MAX_ATTEMPTS {
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LogError::disk("read", &path)(error)),
        };
        let stored = head::parse(&bytes);
        last = Some((bytes, stored));
        if !stored.has_damage {
            break;
        }
    }
    Ok(last)
}

fn copy_segments(
    files: &[SegmentFile],
    head: Option<LogHead>,
    to: &Path,
) -> Result<CopyOutcome, LogError> {
    for file in files {
        let mut bytes = match fs::read(&file.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(CopyOutcome::Moved),
            Err(error) => return Err(LogError::disk("read", &file.path)(error)),
        };
        if let Some(head) = head.filter(|_| !file.archived) {
            if file.number > head.segment {
                continue;
            }
            if file.number == head.segment {
                bytes.truncate(usize::try_from(head.offset).unwrap_or(usize::MAX));
            }
        }
        if let Some(name) = file.path.file_name() {
            write_file(&to.join(name), &bytes)?;
        }
    }
    Ok(CopyOutcome::Whole)
}

fn make_folder(path: &Path) -> Result<(), LogError> {
    let made = DirBuilder::new().mode(0o700).create(path);
    made.map_err(LogError::disk("written", path))
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), LogError> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(LogError::disk("written", path))
}
