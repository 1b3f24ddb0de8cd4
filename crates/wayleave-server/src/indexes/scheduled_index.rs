//! The schedule of one index: when it is due, and whether to rebuild or refresh it.

use std::time::{Duration, Instant};

use wayleave_plan::search::SearchableStream;
use wayleave_search::Index;
use wayleave_surface::Extent;
use wayleave_surface::live::ChangeCounts;

use wayleave_project::settings::SearchSettings;

/// An index and when it is due.
pub(super) struct ScheduledIndex {
    pub(super) what: SearchableStream,
    every: SearchSettings,
    /// When to update it next.
    pub(super) due: Instant,
    /// When to rebuild it from the whole stream.
    rebuild: Instant,
    pub(super) bookmark: Option<String>,
    pub(super) version: Option<String>,
    pub(super) is_served: bool,
    /// When it was last read or opened.
    updated: Instant,
    /// Whether its stream was suspended when it was due.
    pub(super) is_paused: bool,
    /// The number of changes that the change feed had seen at the last check.
    seen: u64,
}

/// Delay after an update before changes seen by the change feed are read.
const FEED_DELAY: Duration = Duration::from_secs(1);

impl ScheduledIndex {
    pub(super) fn new(what: SearchableStream, every: SearchSettings) -> Self {
        let now = Instant::now();
        Self {
            what,
            every,
            due: now,
            rebuild: now,
            bookmark: None,
            version: None,
            is_served: false,
            updated: now,
            is_paused: false,
            seen: 0,
        }
    }

    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.what.connection_id, self.what.stream)
    }

    /// The next update: only changes if they can be followed, else everything.
    pub(super) fn next(&self) -> (Extent, Option<String>) {
        let follows = self.is_served && self.rebuild > Instant::now();
        match self.bookmark.clone().filter(|_| follows) {
            Some(bookmark) => (Extent::Changes, Some(bookmark)),
            None => (Extent::Whole, None),
        }
    }

    /// Applies another schedule.
    pub(super) fn reschedule(&mut self, every: SearchSettings) {
        if self.every == every {
            return;
        }
        // Brings forward what is due later than the new intervals allow; the next update does the
        // rest.
        let follows = self.what.is_tracked && self.bookmark.is_some();
        let rebuild = if follows {
            every.rebuild_tracked
        } else {
            every.rebuild
        };
        self.rebuild = self.rebuild.min(self.updated + rebuild);
        let next = if follows { every.refresh } else { rebuild };
        if self.is_served {
            self.due = self.due.min(self.updated + next);
        }
        self.every = every;
    }

    /// Brings the next update forward if the change feed has seen the stream change. Streams that
    /// would be read whole keep their schedule.
    pub(super) fn follow_feed(&mut self, seen: &ChangeCounts) {
        let stream = (self.what.connection_id.clone(), self.what.stream.clone());
        let count = seen.get(&stream).copied().unwrap_or_default();
        if count != self.seen && self.bookmark.is_some() {
            self.due = self.due.min(self.updated + FEED_DELAY);
        }
        self.seen = count;
    }

    /// Records an index that now serves, and schedules its next update.
    pub(super) fn record_served(&mut self, index: &Index) {
        let now = Instant::now();
        let stamp = index.stamp();
        self.is_served = true;
        self.updated = now;
        self.bookmark.clone_from(&stamp.bookmark);
        let since = age(stamp.built);
        // Malformed times hide changes: such a stream has no bookmark and is not followed either.
        let follows = self.what.is_tracked && stamp.bookmark.is_some();
        let every = if follows {
            self.every.rebuild_tracked
        } else {
            self.every.rebuild
        };
        self.rebuild = now + every.saturating_sub(since);
        self.due = if follows {
            now + self.every.refresh.saturating_sub(age(stamp.as_of))
        } else {
            self.rebuild
        };
    }
}

fn age(seconds: i64) -> Duration {
    let then = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let since = std::time::SystemTime::UNIX_EPOCH + then;
    since.elapsed().unwrap_or_default()
}
