//! What a request takes up until its response has been sent.

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::sessions::Busy;
use crate::{Caller, budget::Spent};

/// What a response keeps alive until it has been sent.
#[expect(dead_code, reason = "held for their drop alone")]
pub(super) struct Held {
    pub(super) ending: Option<TaskTrackerToken>,
    pub(super) session: Option<Busy>,
    pub(super) room: Option<OwnedSemaphorePermit>,
    /// The caller's own share.
    pub(super) share: Option<OwnedSemaphorePermit>,
}

/// How long a response goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lasts {
    /// Until the answer is given.
    ShortWhile,
    /// Until told that the server is stopping; then it says its last word.
    UntilDraining,
    /// Until somebody cuts it.
    UntilCut,
}

/// Takes a request from its caller's budget, and waits for its turn.
pub(super) async fn charge(caller: &Caller, lasts: Lasts, held: &mut Held) -> Result<(), Spent> {
    match (caller.budget(), lasts) {
        (None, _) => Ok(()),
        (Some(budget), Lasts::ShortWhile) => {
            held.share = Some(budget.turn().await?);
            Ok(())
        }
        // A stream has its room already.
        (Some(budget), Lasts::UntilDraining | Lasts::UntilCut) => budget.spend(),
    }
}
