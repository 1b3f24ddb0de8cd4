//! A request's turn among those its caller's budget lets run at once.

use rmcp::{ErrorData, RoleServer, service::RequestContext};
use tokio::sync::OwnedSemaphorePermit;

use crate::{Caller, RefusalReason, RpcError, budget::BudgetExceeded, observation};

/// Who sees to it that no more of a caller's requests run at once than its budget allows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnPolicy {
    /// Whoever handed the request over.
    Given,
    /// The handler. On a pipe messages come in order, and one that waits must not keep the next from
    /// being heard, which may be its own cancellation.
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
    /// Waits for the request's turn, which it keeps until it is answered.
    pub(crate) async fn turn(
        self,
        caller: &Caller,
        request: &RequestContext<RoleServer>,
    ) -> Result<Option<OwnedSemaphorePermit>, NoTurn> {
        let Some(budget) = caller.budget().filter(|_| self == Self::Acquire) else {
            return Ok(None);
        };
        let turn = tokio::select! {
            biased;
            room = budget.room() => room.map(Some).map_err(NoTurn::BudgetExceeded),
            () = request.ct.cancelled() => Err(NoTurn::Cancelled),
        };
        observed(request, turn)
    }

    /// Room for a listening stream.
    pub(crate) fn stream(
        self,
        caller: &Caller,
        request: &RequestContext<RoleServer>,
    ) -> Result<Option<OwnedSemaphorePermit>, NoTurn> {
        let budget = caller.budget().filter(|_| self == Self::Acquire);
        let room = budget.map(|budget| budget.stream()).transpose();
        observed(request, room.map_err(NoTurn::BudgetExceeded))
    }
}

/// Tells the observer of a request that its caller's budget has no room for.
fn observed<T>(request: &RequestContext<RoleServer>, turn: Result<T, NoTurn>) -> Result<T, NoTurn> {
    if let Err(NoTurn::BudgetExceeded(_)) = &turn {
        let observation = observation::from_context(request);
        observation::refuse(observation.as_deref(), RefusalReason::Budget);
    }
    turn
}
