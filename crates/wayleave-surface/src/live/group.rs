//! Subscribers with the same view of a stream, and the state they saw last.
//!
//! A small stream is read whole and compared, which finds every change. In a larger one the
//! `updated` field shows what changed, and individually watched records are read by their keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use wayleave_plan::package::Package;
use wayleave_plan::query::QueryPlan;

use super::WatchedKey;
use super::digests::{Changes, RecordDigests};
use super::reader::{BEGINNING, ReadFailure, StreamReader};

/// Subscribers with the same view of a stream.
pub(super) struct Group {
    pub(super) id: u64,
    pub(super) plan: QueryPlan,
    /// The package of one of the subscribers.
    package: Arc<Package>,
    last: Option<WatchedState>,
}

/// The state a group saw last.
enum WatchedState {
    /// Digests of all records, to compare with.
    Compared(RecordDigests),
    /// The bookmark to follow changes from, and the individually watched records.
    Followed(FollowedStream),
}

#[derive(Default)]
struct FollowedStream {
    bookmark: Option<String>,
    /// The records of the last walk.
    recent: RecordDigests,
    keyed: RecordDigests,
    keys: BTreeSet<Box<str>>,
}

/// The records watched by a group's members.
#[derive(Default)]
pub(super) struct WatchedRecords {
    /// Whether any member watches all records.
    pub(super) records: bool,
    pub(super) keys: Vec<WatchedKey>,
}

/// The changes that a group sees.
#[derive(Default)]
pub(super) struct GroupChanges {
    /// For members that watch all records.
    pub(super) records: Changes,
    /// For members that watch one record.
    pub(super) keyed: Changes,
    /// Too much changed to list single records.
    pub(super) is_everything: bool,
}

impl Group {
    pub(super) fn new(id: u64, plan: QueryPlan, package: Arc<Package>) -> Self {
        Self {
            id,
            plan,
            package,
            last: None,
        }
    }

    /// Whether its stream is suspended because it no longer fits its source.
    pub(super) fn is_suspended(&self) -> bool {
        self.plan.rows().suspended_stream().is_some()
    }

    /// Whether it has been read.
    pub(super) fn is_known(&self) -> bool {
        self.last.is_some()
    }

    /// Whether its row filter follows relations to other streams.
    pub(super) fn reads_other_streams(&self) -> bool {
        let plan = self.plan.rows();
        let mut reads_others = !plan.joins().is_empty();
        plan.read().for_each_predicate(&mut |predicate| {
            predicate.for_each_exists(&mut |_, _| reads_others = true);
        });
        reads_others
    }

    /// Whether the stream is too large to be read whole.
    pub(super) fn is_followed(&self) -> bool {
        matches!(self.last, Some(WatchedState::Followed(_)))
    }

    /// Reads the stream and returns what changed since the last read.
    pub(super) async fn read_changes(
        &mut self,
        reader: &StreamReader,
        wanted: &WatchedRecords,
    ) -> Result<GroupChanges, ReadFailure> {
        if let Some(WatchedState::Followed(followed)) = &mut self.last {
            return followed.read_changes(reader, &self.package, wanted).await;
        }
        match reader.digests(&self.plan).await {
            Ok(now) => {
                let before = self.last.replace(WatchedState::Compared(now));
                let (Some(WatchedState::Compared(before)), Some(WatchedState::Compared(now))) =
                    (before, &self.last)
                else {
                    return Ok(GroupChanges::default());
                };
                let changes = before.changes_to(now);
                Ok(GroupChanges {
                    keyed: changes.clone(),
                    records: changes,
                    is_everything: false,
                })
            }
            Err(ReadFailure::TooLarge) => {
                let mut followed = FollowedStream::default();
                followed.read_changes(reader, &self.package, wanted).await?;
                // Subscribers that saw the whole stream are notified once of the switch to
                // following.
                let is_everything = self.last.is_some();
                self.last = Some(WatchedState::Followed(followed));
                Ok(GroupChanges {
                    is_everything,
                    ..GroupChanges::default()
                })
            }
            Err(failure) => Err(failure),
        }
    }
}

impl FollowedStream {
    async fn read_changes(
        &mut self,
        reader: &StreamReader,
        package: &Package,
        wanted: &WatchedRecords,
    ) -> Result<GroupChanges, ReadFailure> {
        let mut changes = GroupChanges::default();
        if wanted.records {
            self.walk(reader, package, &mut changes).await?;
        }
        let now = reader.keyed(package, &wanted.keys).await?;
        changes.keyed = self.keyed.changes_among(&now, &self.keys);
        self.keyed = now;
        self.keys = wanted.keys.iter().map(|key| key.text.clone()).collect();
        Ok(changes)
    }

    async fn walk(
        &mut self,
        reader: &StreamReader,
        package: &Package,
        changes: &mut GroupChanges,
    ) -> Result<(), ReadFailure> {
        let known = match &self.bookmark {
            Some(bookmark) => match reader.walk(package, bookmark).await {
                // The bookmark is no longer valid: start over, and notify once.
                Err(ReadFailure::Refused(_)) => None,
                walked => Some(walked?),
            },
            None => None,
        };
        let Some(walk) = known else {
            changes.is_everything = self.bookmark.is_some();
            let begun = reader.walk(package, BEGINNING).await?;
            // Read the overlap that the next walk will read again, so that it is not reported then.
            let walk = reader.walk(package, &begun.bookmark).await?;
            if walk.is_cut {
                return Err(ReadFailure::NotFollowed);
            }
            self.recent = walk.records;
            self.bookmark = Some(walk.bookmark);
            return Ok(());
        };
        changes.records = self.recent.changes_in(&walk.records);
        changes.is_everything = walk.is_cut;
        self.recent = walk.records;
        self.bookmark = Some(walk.bookmark);
        Ok(())
    }
}
