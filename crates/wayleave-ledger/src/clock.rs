//! The time of an entry, given from outside so that tests and replays choose it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01 UTC, before it when negative.
pub type Millis = i64;

/// Tells the time that entries carry. Order never rests on it: entries are ordered by `seq`,
/// so a clock that jumps back does no harm beyond a strange date.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Millis;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let now = SystemTime::now();
        match now.duration_since(UNIX_EPOCH) {
            Ok(since) => Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX),
            Err(before) => {
                Millis::try_from(before.duration().as_millis()).map_or(Millis::MIN, |ms| -ms)
            }
        }
    }
}

/// A clock that always tells the same time, for tests and for replays.
#[derive(Debug, Clone, Copy)]
pub struct FixedClock(pub Millis);

impl Clock for FixedClock {
    fn now(&self) -> Millis {
        self.0
    }
}
