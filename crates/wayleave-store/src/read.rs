//! Reads records: what an adapter does with a plan that policy has allowed.
//!
//! Nothing here knows a driver or a dialect, and nothing here can make a plan.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use wayleave_plan::AuthorizedPlan;

use crate::capabilities::Capabilities;
use crate::{Rows, StoreError};

/// A store that answers plans.
///
/// The same plan over the same data gives the same values on every store, in the order that the
/// plan specifies, except for the differences that [`Capabilities`] declare. The engine itself
/// keeps sessions read-only. Memory is bounded whatever the size of the answer.
#[async_trait]
pub trait Store: Send + Sync {
    /// The differences that this store cannot hide.
    fn capabilities(&self) -> &Capabilities;

    /// Answers a plan.
    ///
    /// Dropping the future or the answer, or cancelling the context's token, stops the store's work
    /// within a second; so does passing the deadline.
    async fn read(
        &self,
        plan: &AuthorizedPlan,
        context: &ReadContext,
    ) -> Result<Answer, StoreError>;

    /// A number that changes when the tables of a plan may have changed; the same number twice
    /// means that no other program has written to them in between. `None` if the store cannot tell
    /// without reading.
    async fn change_token(&self, _plan: &AuthorizedPlan) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// Ends every session and waits for them. Later reads are refused as unreachable.
    async fn close(&self);
}

/// The time limit, cancellation and caller of a read.
#[derive(Debug, Clone)]
pub struct ReadContext {
    /// Deadline of the complete answer.
    pub deadline: Instant,
    /// Cancelled when the answer is no longer wanted.
    pub cancel: CancellationToken,
    /// How to treat a value that is not of its column's datatype.
    pub on_malformed: OnMalformed,
    /// The caller that the read is for.
    pub caller: CallerKey,
}

/// Identifies the caller of a read, so that one caller's reads do not hold up another's. Grants
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallerKey(u64);

impl CallerKey {
    /// The key of the caller with this name.
    pub fn from_subject(subject: &str) -> Self {
        // Seeded per process, so that nobody can choose a name that collides with another's key.
        static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(HASHER.hash_one(subject))
    }
}

/// How a read treats a value that is not of its column's datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMalformed {
    /// Fails with [`StoreError::MalformedValue`].
    #[default]
    Fail,
    /// Returns [`Value::Malformed`](wayleave_plan::value::Value::Malformed) in its place and goes
    /// on. Where the store computes with such a value, it satisfies no predicate and counts for
    /// nothing.
    Mark,
}

impl ReadContext {
    /// The context of a read that may take `time` from now.
    pub fn with_timeout(time: Duration) -> Self {
        Self {
            deadline: deadline_after(time),
            cancel: CancellationToken::new(),
            on_malformed: OnMalformed::Fail,
            caller: CallerKey::default(),
        }
    }
}

/// The instant at which `time` from now is over.
pub(crate) fn deadline_after(time: Duration) -> Instant {
    let now = Instant::now();
    // A limit beyond the clock's range never passes.
    let far = Duration::from_hours(24 * 365);
    now.checked_add(time.min(far)).unwrap_or(now)
}

/// The answer to a plan.
#[derive(Debug)]
pub enum Answer {
    /// Rows: the values of the plan's columns.
    Rows(Rows),
    /// Groups: the values of the plan's keys, then of its measures.
    Groups(Rows),
    /// The number of rows.
    Count {
        /// The number.
        rows: u64,
        /// Whether it was counted, or estimated from the store's statistics.
        exact: bool,
    },
}

impl Answer {
    /// The rows or groups of a plan, each with one value for each column of the plan, and masked as
    /// the plan requires. Everything that is shown from a store passes through here.
    pub fn rows(self, plan: &AuthorizedPlan) -> Result<Rows, StoreError> {
        match self {
            Self::Rows(rows) | Self::Groups(rows) => rows.with_plan(plan),
            Self::Count { .. } => Err(MISMATCH),
        }
    }

    /// The number of rows, and whether it is exact.
    pub fn count(self) -> Result<(u64, bool), StoreError> {
        match self {
            Self::Count { rows, exact } => Ok((rows, exact)),
            Self::Rows(_) | Self::Groups(_) => Err(MISMATCH),
        }
    }
}

/// Refuses a plan that reads a suspended stream. Every store calls this first.
pub fn check_suspension(plan: &AuthorizedPlan) -> Result<(), StoreError> {
    match plan.suspended_stream() {
        None => Ok(()),
        Some(stream) => Err(StoreError::Suspended {
            stream: stream.to_string(),
        }),
    }
}

/// The error for an answer to another kind of plan.
const MISMATCH: StoreError = StoreError::Unsupported {
    what: "this kind of plan",
};
