//! The authoring operations of a deployment: registered and withdrawn while it serves.

use std::sync::{Arc, PoisonError};

use wayleave_ledger::State;
use wayleave_mcp::{Batch, Caller};
use wayleave_project::inbox::Proposer;
use wayleave_project::meta::{MetaContext, MetaOperation, MetaRegistry, OperationId};
use wayleave_surface::meta::{self, Authoring};

use super::{DeployError, serving::ServingContext};

impl Authoring for ServingContext {
    fn context(&self, caller: &Caller) -> MetaContext {
        let proposer = proposer(&self.watch.now(), caller.subject());
        MetaContext::new(self.project.clone(), self.probe.clone(), proposer)
    }
}

/// A token by its label, if it is one of ours.
fn proposer(state: &State, subject: &str) -> Proposer {
    let label = state.tokens().get(subject).map(|it| it.label.clone());
    let label = label.filter(|it| !it.is_empty());
    Proposer {
        token: Some(subject.to_owned()),
        name: label.unwrap_or_else(|| subject.to_owned()),
    }
}

impl ServingContext {
    /// Registers operations, all or none, in one commit.
    pub(super) fn register_operations(
        self: &Arc<Self>,
        operations: Vec<MetaOperation>,
    ) -> Result<(), DeployError> {
        let mut registry = self.meta.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = MetaRegistry::clone(&registry);
        let authoring: Arc<dyn Authoring> = self.clone();
        let mut batch = Batch::new();
        for operation in operations {
            batch = batch.add_tool(meta::tool(&operation, &authoring)?);
            next.register(operation, |tool| self.registry.has_tool(tool))?;
        }
        *registry = next;
        self.registry.commit(batch);
        Ok(())
    }

    /// Withdraws an operation. Returns whether it was there.
    pub(super) fn withdraw_operation(&self, id: &OperationId) -> bool {
        let mut registry = self.meta.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = registry.withdraw(id).is_some();
        if is_there {
            self.registry.remove_tool(&id.tool());
        }
        is_there
    }
}
