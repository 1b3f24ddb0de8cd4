//! Reading records: what an adapter does with a plan that policy has allowed.
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
/// The same plan over the same data gives the same values on every store, in the order the plan
/// asks for, but for what [`Capabilities`] declare. Sessions are read-only by the engine's own
/// means. Memory is bounded whatever the size of the answer.
#[async_trait]
pub trait Store: Send + Sync {
    /// What this store cannot hide.
    fn capabilities(&self) -> &Capabilities;

    /// Answers a plan.
    ///
    /// Dropping the future or the answer, or cancelling the context's token, stops the store's
    /// work within a second; so does the deadline.
    async fn read(
        &self,
        plan: &AuthorizedPlan,
        context: &ReadContext,
    ) -> Result<Answer, StoreError>;

    /// Ends every session and waits for them. Later reads are refused as unreachable.
    async fn close(&self);
}

/// How long a read may take, and who may end it.
#[derive(Debug, Clone)]
pub struct ReadContext {
    /// When the answer must be whole.
    pub deadline: Instant,
    /// Cancelled when nobody wants the answer any more.
    pub cancel: CancellationToken,
    /// What to do about a value that is none of its column's datatype.
    pub on_malformed: OnMalformed,
    /// Who the read is for.
    pub caller: CallerKey,
}

/// Who a read is for, so that one caller's reads do not keep another's waiting. It opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallerKey(u64);

impl CallerKey {
    /// The key of whoever reads under this name.
    pub fn from_subject(subject: &str) -> Self {
        // Of this process alone, so that nobody can choose a name that has another's key.
        static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(HASHER.hash_one(subject))
    }
}

/// What a read does about a value that is none of its column's datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMalformed {
    /// Fails as [`StoreError::Unfit`].
    #[default]
    Fail,
    /// Gives [`Value::Malformed`](wayleave_plan::value::Value::Malformed) in its place and goes on.
    /// Where the store computes with such a value it satisfies no predicate and counts for nothing.
    Mark,
}

impl ReadContext {
    /// A read that may take so long from now.
    pub fn within(time: Duration) -> Self {
        let now = Instant::now();
        // A limit beyond the clock's reach is none that could pass.
        let far = Duration::from_hours(24 * 365);
        Self {
            deadline: now.checked_add(time.min(far)).unwrap_or(now),
            cancel: CancellationToken::new(),
            on_malformed: OnMalformed::Fail,
            caller: CallerKey::default(),
        }
    }
}

/// What a plan asked for.
#[derive(Debug)]
pub enum Answer {
    /// Rows: the values of the plan's columns.
    Rows(Rows),
    /// Groups: the values of the plan's keys, then of its measures.
    Groups(Rows),
    /// How many rows.
    Count {
        /// The number.
        rows: u64,
        /// Counted, or estimated from the store's statistics.
        exact: bool,
    },
}

impl Answer {
    /// The rows or groups of a plan, each of which has one value for each column of the plan.
    pub fn rows(self, plan: &AuthorizedPlan) -> Result<Rows, StoreError> {
        match self {
            Self::Rows(rows) | Self::Groups(rows) => rows.of_width(plan.read().width()),
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

/// The answer is to another kind of plan.
const MISMATCH: StoreError = StoreError::Unsupported {
    what: "this kind of plan",
};
