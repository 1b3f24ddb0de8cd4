//! Limits how often one token may change the served datasets. Every change is a permanent entry of
//! the ledger and a notice to every client; reading has its own budget.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use wayleave_mcp::{Allowance, Budget};

/// Changes allowed in a burst.
const BURST_CHANGES: u32 = 60;
/// Changes per minute after a burst.
const CHANGES_PER_MINUTE: u32 = 6;
/// Time without changes after which the whole burst is available again.
const FULL_REFILL: Duration = Duration::from_mins(10);

/// The change budget of each token.
#[derive(Debug, Default)]
pub(super) struct ChangeLimit(Mutex<HashMap<String, (Instant, Budget)>>);

impl ChangeLimit {
    /// Counts a change by a token. The error is the time to wait.
    pub(super) fn take(&self, who: &str) -> Result<(), Duration> {
        self.at(who, Instant::now())
    }

    fn at(&self, who: &str, now: Instant) -> Result<(), Duration> {
        let mut of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        of.retain(|_, (last, _)| now.saturating_duration_since(*last) < FULL_REFILL);
        let (last, budget) = of.entry(who.to_owned()).or_insert_with(|| {
            let allowance = Allowance {
                per_minute: CHANGES_PER_MINUTE,
                burst: BURST_CHANGES,
                concurrent: 1,
                streams: 1,
            };
            (now, Budget::new(allowance))
        });
        *last = now;
        budget.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_a_number_of_changes_of_its_own_and_then_is_told_when_to_come_again() {
        let change_limit = ChangeLimit::default();
        for _ in 0..BURST_CHANGES {
            assert_eq!(change_limit.take("one"), Ok(()));
        }
        let wait = change_limit.take("one").unwrap_err();
        assert!(wait <= Duration::from_secs(10), "{wait:?}");
        assert_eq!(change_limit.take("another"), Ok(()));
    }

    #[test]
    fn a_rest_is_as_long_as_it_takes_to_have_all_again() {
        let minutes = u64::from(BURST_CHANGES / CHANGES_PER_MINUTE);
        assert_eq!(FULL_REFILL, Duration::from_mins(minutes));
    }

    #[test]
    fn whoever_rested_is_forgotten() {
        let change_limit = ChangeLimit::default();
        let began = Instant::now();
        for who in 0..1_000 {
            assert_eq!(change_limit.at(&who.to_string(), began), Ok(()));
        }
        assert_eq!(change_limit.at("late", began + FULL_REFILL), Ok(()));
        assert_eq!(change_limit.0.lock().unwrap().len(), 1);
    }
}
