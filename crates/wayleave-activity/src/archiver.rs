//! Packs closed segments into archives, and drops archives past their retention period.

use std::{fs, io, path::Path, sync::Arc};

use crate::{
    archive::{self, Archive},
    codec::{DroppedSegments, LogRecord},
    log::{Shared, now_ms},
    segment,
};

impl Shared {
    pub(crate) fn pack_closed(&self, folder: &Path, newest: u64) -> io::Result<()> {
        for file in segment::segments(folder)? {
            if file.number >= newest {
                break;
            }
            let open = segment::open_path(folder, file.number);
            if file.archived {
                // An earlier writer stopped between the two steps below.
                if open.exists() {
                    fs::remove_file(open)?;
                }
                continue;
            }
            // Leave a damaged segment in place, for diagnosis.
            let Ok(packed) = archive::pack(&fs::read(&open)?) else {
                continue;
            };
            let target = segment::archive_path(folder, file.number);
            archive::publish(&packed, &target)?;
            fs::remove_file(open)?;
            if let (Some(on_seal), Ok(archive)) = (&self.options.on_seal, Archive::open(&target)) {
                on_seal(archive.seal());
            }
        }
        Ok(())
    }

    /// Drops the oldest segments past the retention period, after recording their removal.
    pub(crate) fn drop_old(self: &Arc<Self>, folder: &Path) -> io::Result<()> {
        let Some(keep) = self.options.keep else {
            return Ok(());
        };
        let keep_ms = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
        let oldest = now_ms().saturating_sub(keep_ms);
        let mut dropped: Option<DroppedSegments> = None;
        let mut paths = Vec::new();
        for file in segment::segments(folder)? {
            let Some(archive) = file
                .archived
                .then(|| Archive::open(&file.path).ok())
                .flatten()
            else {
                break;
            };
            if archive.summary.to_ms >= oldest {
                break;
            }
            let first = dropped
                .as_ref()
                .map_or(file.number, |dropped| dropped.first);
            dropped = Some(DroppedSegments {
                first,
                last: file.number,
                last_record: archive.summary.last_record,
                state: archive.summary.state.0,
            });
            paths.push(file.path);
        }
        let Some(dropped) = dropped else {
            return Ok(());
        };
        let record = LogRecord::Retention(dropped).encode();
        if let Err(error) = self.append(record).wait_blocking() {
            return Err(io::Error::other(error));
        }
        for path in paths {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}
