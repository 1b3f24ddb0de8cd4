//! A request's turn among those its caller's budget lets run at once.

use tokio::sync::OwnedSemaphorePermit;

use crate::{
    Caller, Context, RefusalReason, RpcError,
    budget::BudgetExceeded,
    observation::{self, Observation},
    sdk::model::ErrorData,
};

/// Where a caller's limit on concurrent requests is enforced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnPolicy {
    /// By the layer that handed the request over.
    Given,
    /// By the handler. On a pipe messages come in order, and one that waits must not delay the
    /// next, which may be its own cancellation.
    Acquire,
}

/// A request that did not get its turn.
pub(crate) enum NoTurn {
    BudgetExceeded(BudgetExceeded),
    Cancelled,
}

impl From<NoTurn> for ErrorData {
    fn from(no_turn: NoTurn) -> Self {
        match no_turn {
            NoTurn::BudgetExceeded(exceeded) => exceeded.error().into(),
            NoTurn::Cancelled => RpcError::cancelled().into(),
        }
    }
}

impl TurnPolicy {
    /// Waits for the request's turn. The request holds it until it is answered.
    pub(crate) async fn turn(
        self,
        context: &Context,
    ) -> Result<Option<OwnedSemaphorePermit>, NoTurn> {
        let caller = context.caller();
        let Some(budget) = caller.budget().filter(|_| self == Self::Acquire) else {
            return Ok(None);
        };
        let turn = tokio::select! {
            biased;
            room = budget.room() => room.map(Some).map_err(NoTurn::BudgetExceeded),
            () = async { context.cancelled().cancelled_owned().await } => Err(NoTurn::Cancelled),
        };
        observed(context.observation().as_deref(), turn)
    }

    /// Takes a permit for a listening stream.
    pub(crate) fn stream(
        self,
        caller: &Caller,
        observation: Option<&Observation>,
    ) -> Result<Option<OwnedSemaphorePermit>, NoTurn> {
        let budget = caller.budget().filter(|_| self == Self::Acquire);
        let room = budget.map(|budget| budget.stream()).transpose();
        observed(observation, room.map_err(NoTurn::BudgetExceeded))
    }
}

/// Tells the observer of a request refused by its caller's budget.
fn observed<T>(observation: Option<&Observation>, turn: Result<T, NoTurn>) -> Result<T, NoTurn> {
    if let Err(NoTurn::BudgetExceeded(_)) = &turn {
        observation::refuse(observation, RefusalReason::Budget);
    }
    turn
}
