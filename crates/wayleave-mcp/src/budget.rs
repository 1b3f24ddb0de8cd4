//! One caller's limits: requests per minute, concurrent requests, and open streams.
//!
//! Each caller has its own budget. One that sends ten times its share is refused nine times out of
//! ten, at the price of one comparison, and the others do not notice.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{RpcError, ToolResult};

/// Maximum time that a request waits for its caller's other requests to finish.
const SLOT_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of requests that may wait, for each one that may run.
const MAX_WAITING_PER_RUNNING: usize = 4;
/// Delay suggested to a request that was refused because the queue was full.
const QUEUE_RETRY_DELAY: Duration = Duration::from_millis(250);

/// The limits of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Average number of requests per minute.
    pub per_minute: u32,
    /// Maximum number of requests at once after a pause.
    pub burst: u32,
    /// Maximum number of concurrent requests. A few more wait briefly for a slot.
    pub concurrent: usize,
    /// Maximum number of open streams.
    pub streams: usize,
}

/// The remaining allowance of one caller.
///
/// ```
/// use wayleave_mcp::{Allowance, Budget, Caller};
///
/// let allowance = Allowance { per_minute: 600, burst: 60, concurrent: 16, streams: 8 };
/// let caller = Caller::new("token:7f3a").with_budget(Budget::new(allowance).into());
/// ```
#[derive(Debug)]
pub struct Budget {
    began: Instant,
    /// When the bucket will be full again, in nanoseconds since the budget was made.
    full_at: AtomicU64,
    each: u64,
    burst: u64,
    running: Arc<Semaphore>,
    waiting: Semaphore,
    streams: Arc<Semaphore>,
}

/// The error of a spent budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BudgetExceeded {
    what: &'static str,
    pub(crate) retry_after: Duration,
}

impl Budget {
    /// A budget with its whole allowance.
    pub fn new(allowance: Allowance) -> Self {
        let each = 60_000_000_000 / u64::from(allowance.per_minute.max(1));
        Self {
            began: Instant::now(),
            full_at: AtomicU64::new(0),
            each,
            burst: each * u64::from(allowance.burst.max(1)),
            running: Arc::new(Semaphore::new(allowance.concurrent.max(1))),
            waiting: Semaphore::new(allowance.concurrent.max(1) * MAX_WAITING_PER_RUNNING),
            streams: Arc::new(Semaphore::new(allowance.streams.max(1))),
        }
    }

    /// Spends one request, and waits for a slot.
    pub(crate) async fn acquire(&self) -> Result<OwnedSemaphorePermit, BudgetExceeded> {
        self.spend()?;
        self.acquire_slot().await
    }

    /// Waits until one of the caller's slots is free. The permit is held while the request runs.
    pub(crate) async fn acquire_slot(&self) -> Result<OwnedSemaphorePermit, BudgetExceeded> {
        let running = Arc::clone(&self.running);
        if let Ok(slot) = running.clone().try_acquire_owned() {
            return Ok(slot);
        }
        let full = BudgetExceeded {
            what: "too many concurrent requests",
            retry_after: QUEUE_RETRY_DELAY,
        };
        let _place = self.waiting.try_acquire().map_err(|_| full)?;
        match timeout(SLOT_TIMEOUT, running.acquire_owned()).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) | Err(_) => Err(full),
        }
    }

    /// Spends one unit of anything that a program limits with a budget of its own. The error is the
    /// time until the next unit.
    pub fn take(&self) -> Result<(), Duration> {
        self.spend().map_err(|spent| spent.retry_after)
    }

    /// Spends one request.
    pub(crate) fn spend(&self) -> Result<(), BudgetExceeded> {
        self.draw(self.began.elapsed())
    }

    /// Takes a permit for one stream.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, BudgetExceeded> {
        let permit = Arc::clone(&self.streams).try_acquire_owned();
        permit.map_err(|_| BudgetExceeded {
            what: "too many open streams",
            retry_after: QUEUE_RETRY_DELAY,
        })
    }

    /// The generic cell rate algorithm: one number says how full the bucket is.
    fn draw(&self, now: Duration) -> Result<(), BudgetExceeded> {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let drawn = self
            .full_at
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |full_at| {
                let next = full_at.max(now).saturating_add(self.each);
                (next <= now.saturating_add(self.burst)).then_some(next)
            });
        drawn.map(drop).map_err(|full_at| {
            let room_at = full_at.saturating_add(self.each).saturating_sub(self.burst);
            BudgetExceeded {
                what: "too many requests in a minute",
                retry_after: Duration::from_nanos(room_at.saturating_sub(now)),
            }
        })
    }
}

impl BudgetExceeded {
    /// In whole milliseconds, rounded up, so that a caller who waits exactly that long is not
    /// refused again.
    fn millis(self) -> u64 {
        u64::try_from(self.retry_after.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// In whole seconds, as in the `Retry-After` header.
    pub(crate) fn seconds(self) -> u64 {
        self.millis().div_ceil(1000).max(1)
    }

    /// The tool result that tells the model its call was refused.
    pub(crate) fn result(self) -> ToolResult {
        let error = json!({
            "code": "rate_limited",
            "message": self.what,
            "retryable": true,
            "retry_after_ms": self.millis(),
        });
        ToolResult::error(error.to_string()).with_structured(json!({ "error": error }))
    }

    /// The error for any request other than a tool call.
    pub(crate) fn error(self) -> RpcError {
        RpcError::new(RpcError::BUDGET, self.what).with_data(self.data())
    }

    fn data(self) -> Value {
        json!({ "code": "rate_limited", "retryable": true, "retry_after_ms": self.millis() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(per_minute: u32, burst: u32, concurrent: usize) -> Budget {
        Budget::new(Allowance {
            per_minute,
            burst,
            concurrent,
            streams: 1,
        })
    }

    #[test]
    fn a_burst_is_let_through_and_then_one_at_each_interval() {
        let budget = budget(60, 3, 100);
        let at = Duration::from_secs;
        for _ in 0..3 {
            budget.draw(at(10)).unwrap();
        }
        assert_eq!(budget.draw(at(10)).unwrap_err().retry_after, at(1));
        budget.draw(at(11)).unwrap();
        assert!(budget.draw(at(11)).is_err());
        // A long pause fills the bucket but does not overfill it.
        for _ in 0..3 {
            budget.draw(at(1000)).unwrap();
        }
        assert!(budget.draw(at(1000)).is_err());
    }

    #[test]
    fn ten_times_the_allowance_gets_a_tenth_through() {
        let budget = budget(600, 10, 100);
        // Send 100 a second to a budget of 10 a second, for a minute.
        let through = (0..6000u64)
            .filter(|n| budget.draw(Duration::from_millis(n * 10)).is_ok())
            .count();
        assert!((600..=610).contains(&through), "{through}");
    }

    #[test]
    fn who_waits_as_long_as_told_is_let_through() {
        let budget = budget(7, 1, 1);
        budget.draw(Duration::ZERO).unwrap();
        let spent = budget.draw(Duration::from_millis(3)).unwrap_err();
        let later = Duration::from_millis(3 + spent.millis());
        assert!(budget.draw(later).is_ok());
        assert_eq!(
            spent.result().structured.unwrap().value()["error"]["code"],
            "rate_limited"
        );
    }

    #[tokio::test]
    async fn no_more_run_at_once_than_allowed_the_next_ones_wait_and_the_rest_are_refused() {
        let budget = budget(60_000, 1000, 2);
        let first = budget.acquire().await.unwrap();
        let second = budget.acquire().await.unwrap();
        let mut waiting: Vec<_> = (0..8).map(|_| Box::pin(budget.acquire())).collect();
        for one in &mut waiting {
            assert!(futures::poll!(one.as_mut()).is_pending());
        }
        let refused = budget.acquire().await.unwrap_err();
        assert_eq!(refused.what, "too many concurrent requests");
        drop(first);
        let next = waiting.remove(0).await.unwrap();
        drop((second, next));
        for one in waiting {
            drop(one.await.unwrap());
        }
    }

    #[test]
    fn no_more_streams_are_open_than_allowed_and_room_comes_back() {
        let budget = budget(60, 1, 1);
        let stream = budget.stream().unwrap();
        assert!(budget.stream().is_err());
        drop(stream);
        assert!(budget.stream().is_ok());
    }
}
