//! How often one token may change what is served. Every change is an entry of the ledger, for good,
//! and a notice to every client; reading has its own budget.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use wayleave_mcp::{Allowance, Budget};

/// So many changes at a stroke,
const AT_A_STROKE: u32 = 60;
/// and then so many in a minute.
const A_MINUTE: u32 = 6;
/// Whoever changes nothing for so long has all of them again.
const REST: Duration = Duration::from_mins(10);

/// What each token has left.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<HashMap<String, (Instant, Budget)>>);

impl Pace {
    /// Counts a change by a token, or tells how long it must wait.
    pub(super) fn take(&self, who: &str) -> Result<(), Duration> {
        self.at(who, Instant::now())
    }

    fn at(&self, who: &str, now: Instant) -> Result<(), Duration> {
        let mut of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        of.retain(|_, (last, _)| now.saturating_duration_since(*last) < REST);
        let (last, budget) = of.entry(who.to_owned()).or_insert_with(|| {
            let allowance = Allowance {
                per_minute: A_MINUTE,
                burst: AT_A_STROKE,
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
        let pace = Pace::default();
        for _ in 0..AT_A_STROKE {
            assert_eq!(pace.take("one"), Ok(()));
        }
        let wait = pace.take("one").unwrap_err();
        assert!(wait <= Duration::from_secs(10), "{wait:?}");
        assert_eq!(pace.take("another"), Ok(()));
    }

    #[test]
    fn a_rest_is_as_long_as_it_takes_to_have_all_again() {
        let minutes = u64::from(AT_A_STROKE / A_MINUTE);
        assert_eq!(REST, Duration::from_mins(minutes));
    }

    #[test]
    fn whoever_rested_is_forgotten() {
        let pace = Pace::default();
        let began = Instant::now();
        for who in 0..1_000 {
            assert_eq!(pace.at(&who.to_string(), began), Ok(()));
        }
        assert_eq!(pace.at("late", began + REST), Ok(()));
        assert_eq!(pace.0.lock().unwrap().len(), 1);
    }
}
