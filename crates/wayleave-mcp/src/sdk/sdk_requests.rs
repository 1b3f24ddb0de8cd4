//! The requests of a pipe that the SDK carries.
//!
//! The SDK answers some of them itself, without a handler that would settle their observation. So
//! the transport settles it, and sends no answer before its request is recorded.

use std::{collections::HashMap, sync::Arc};

use rmcp::{
    ErrorData, RoleServer,
    model::{JsonRpcMessage, RequestId},
    service::TxJsonRpcMessage,
};

use crate::{
    RefusalReason, error,
    observation::{self, Observation},
};

/// The observed requests that the SDK has not answered yet.
#[derive(Default)]
pub(super) struct SdkRequests(HashMap<RequestId, Arc<Observation>>);

impl SdkRequests {
    /// Adds a request. One without a valid id has no answer to wait for.
    pub(super) fn begin(&mut self, id: Option<RequestId>, observation: &Arc<Observation>) {
        if let Some(id) = id {
            self.0.insert(id, Arc::clone(observation));
        }
    }

    /// Removes a request that will not be answered.
    pub(super) fn cancel(&mut self, id: &RequestId) {
        self.0.remove(id);
    }

    /// Takes the observation of the request that a message answers.
    pub(super) fn answered(
        &mut self,
        message: &TxJsonRpcMessage<RoleServer>,
    ) -> Option<Arc<Observation>> {
        match message {
            JsonRpcMessage::Response(response) => self.0.remove(&response.id),
            JsonRpcMessage::Error(error) => self.0.remove(error.id.as_ref()?),
            _ => None,
        }
    }
}

/// Waits until the answered request is recorded; returns the message to send.
pub(super) async fn recorded(
    mut message: TxJsonRpcMessage<RoleServer>,
    observation: &Observation,
) -> TxJsonRpcMessage<RoleServer> {
    let reason = RefusalReason::Protocol;
    match observation::refuse_recorded(Some(observation), reason).await {
        Ok(added) => {
            if let JsonRpcMessage::Error(answer) = &mut message {
                error::add_meta(&mut answer.error.data, added);
            }
            message
        }
        Err(unrecorded) => {
            let id = match message {
                JsonRpcMessage::Response(response) => Some(response.id),
                JsonRpcMessage::Error(answer) => answer.id,
                _ => None,
            };
            TxJsonRpcMessage::<RoleServer>::error(ErrorData::from(unrecorded), id)
        }
    }
}
