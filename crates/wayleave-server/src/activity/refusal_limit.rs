//! Limits the number of refusals recorded one by one, so that nobody can fill a disk with them.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Maximum number of refusals recorded one by one per window. Further ones are counted.
const MAX_REFUSALS: u64 = 1_000;
const WINDOW: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Window {
    began: Instant,
    recorded: u64,
    suppressed: u64,
}

/// Counts refusals.
#[derive(Debug)]
pub(super) struct RefusalLimit(Mutex<Window>);

impl Default for RefusalLimit {
    fn default() -> Self {
        Self(Mutex::new(Window {
            began: Instant::now(),
            recorded: 0,
            suppressed: 0,
        }))
    }
}

impl RefusalLimit {
    /// The number of refusals suppressed before this one; `None` if this one is suppressed too.
    pub(super) fn admit(&self) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.began.elapsed() >= WINDOW {
            window.began = Instant::now();
            window.recorded = 0;
        }
        if window.recorded >= MAX_REFUSALS {
            window.suppressed += 1;
            return None;
        }
        window.recorded += 1;
        Some(std::mem::take(&mut window.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_the_count_is_recorded_once() {
        let limit = RefusalLimit::default();
        let admitted = (0..MAX_REFUSALS + 5).filter(|_| limit.admit().is_some());
        assert_eq!(admitted.count() as u64, MAX_REFUSALS);
        limit.0.lock().unwrap().began -= WINDOW;
        assert_eq!(limit.admit(), Some(5));
        assert_eq!(limit.admit(), Some(0));
    }
}
