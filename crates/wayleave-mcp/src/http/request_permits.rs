//! The permits a request holds until its response has been sent.

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::sessions::SessionUse;
use crate::{Caller, budget::BudgetExceeded};

/// Permits and guards a response keeps until it has been sent.
#[expect(dead_code, reason = "held for their drop alone")]
pub(super) struct RequestPermits {
    pub(super) ending: Option<TaskTrackerToken>,
    pub(super) session: Option<SessionUse>,
    pub(super) room: Option<OwnedSemaphorePermit>,
    /// The permit of the caller's own budget.
    pub(super) share: Option<OwnedSemaphorePermit>,
}

/// How long a response lasts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseLifetime {
    /// Until the answer is given.
    ShortWhile,
    /// Until the server starts draining; then it sends its last message.
    UntilDraining,
    /// Until it is cut.
    UntilCut,
}

/// Charges a request to its caller's budget, and waits for its turn.
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
        // A stream has its permit already.
        (Some(budget), ResponseLifetime::UntilDraining | ResponseLifetime::UntilCut) => {
            budget.spend()
        }
    }
}
