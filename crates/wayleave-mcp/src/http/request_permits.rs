//! What a request takes up until its response has been sent.

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::sessions::SessionUse;
use crate::{Caller, budget::BudgetExceeded};

/// What a response keeps alive until it has been sent.
#[expect(dead_code, reason = "held for their drop alone")]
pub(super) struct RequestPermits {
    pub(super) ending: Option<TaskTrackerToken>,
    pub(super) session: Option<SessionUse>,
    pub(super) room: Option<OwnedSemaphorePermit>,
    /// The caller's own share.
    pub(super) share: Option<OwnedSemaphorePermit>,
}

/// How long a response goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseLifetime {
    /// Until the answer is given.
    ShortWhile,
    /// Until told that the server is stopping; then it says its last word.
    UntilDraining,
    /// Until somebody cuts it.
    UntilCut,
}

/// Takes a request from its caller's budget, and waits for its turn.
pub(super) async fn charge(
    caller: &Caller,
    lifetime: ResponseLifetime,
    permits: &mut RequestPermits,
) -> Result<(), BudgetExceeded> {
    match (caller.budget(), lifetime) {
        (None, _) => Ok(()),
        (Some(budget), ResponseLifetime::ShortWhile) => {
            permits.share = Some(budget.turn().await?);
            Ok(())
        }
        // A stream has its room already.
        (Some(budget), ResponseLifetime::UntilDraining | ResponseLifetime::UntilCut) => {
            budget.spend()
        }
    }
}
