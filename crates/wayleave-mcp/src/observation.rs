//! One message on its way to the observer: settled once, by the first to reach it.
//!
//! An observation travels with its message, in the extensions of the request. A message dropped
//! unsettled was answered or dropped by the protocol layer, so a new way of refusing a message
//! cannot escape the observer. Without an observer there are no observations.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use serde_json::{Map, Value};

use crate::{
    CallObserver, Caller, Carrier, Era, ObservedCall, Outcome, RefusalReason, RequestFacts,
    RpcError, ToolReply,
    envelope::Envelope,
    sdk::model::{
        CompleteResult, DiscoverResult, ErrorData, GetPromptResponse, InitializeResult,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        MetaObject, ReadResourceResponse, RequestContext, RoleServer,
    },
    server::ServerState,
};

pub(crate) struct Observation {
    observer: Arc<dyn CallObserver>,
    state: Mutex<State>,
}

struct State {
    facts: RequestFacts,
    is_notification: bool,
    settled: bool,
}

impl ServerState {
    /// The observation of a message that has just arrived, if an observer is set.
    pub(crate) fn observe(&self, carrier: Carrier, era: Option<Era>) -> Option<Arc<Observation>> {
        let observer = self.observer.clone()?;
        let facts = RequestFacts {
            carrier,
            era,
            caller: None,
            method: None,
            id: Value::Null,
            name: None,
            uri: None,
        };
        Some(Arc::new(Observation {
            observer,
            state: Mutex::new(State {
                facts,
                is_notification: false,
                settled: false,
            }),
        }))
    }
}

impl Observation {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The facts, for the first caller; none for any later one.
    fn settle(&self) -> Option<RequestFacts> {
        let mut state = self.locked();
        (!std::mem::replace(&mut state.settled, true)).then(|| state.facts.clone())
    }

    pub(crate) fn set_caller(&self, caller: &Arc<Caller>) {
        self.locked().facts.caller = Some(Arc::clone(caller));
    }

    pub(crate) fn set_era(&self, era: Option<Era>) {
        self.locked().facts.era = era;
    }

    pub(crate) fn set_id(&self, id: Value) {
        self.locked().facts.id = id;
    }

    /// Takes the facts out of the message. A client's answer is no request, and is not observed.
    pub(crate) fn set_message(&self, envelope: &Envelope<'_>) {
        let mut state = self.locked();
        state.is_notification = envelope.is_notification();
        state.settled |= envelope.is_answer();
        envelope.fill(&mut state.facts);
    }

    pub(crate) fn begin(&self) -> Option<Box<dyn ObservedCall>> {
        self.settle().map(|facts| self.observer.begin(&facts))
    }

    pub(crate) fn refuse(&self, reason: RefusalReason) {
        if let Some(facts) = self.settle() {
            self.observer.refused(&facts, reason);
        }
    }

    /// Settles a message that was carried out at once, with no result to add `_meta` to.
    pub(crate) fn complete(&self) {
        if let Some(call) = self.begin() {
            call.end(Outcome::Completed, &mut Map::new());
        }
    }

    /// Settles a notification, which is carried out once it is handed over. Requests are settled by
    /// their handler.
    pub(crate) fn handed_over(&self) {
        let is_notification = self.locked().is_notification;
        if is_notification {
            self.complete();
        }
    }

    /// Records the HTTP response to the message. A refusal after the handler has begun is the
    /// handler's own.
    pub(crate) fn responded(&self, status: StatusCode) {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                self.refuse(RefusalReason::Authorization);
            }
            StatusCode::TOO_MANY_REQUESTS => self.refuse(RefusalReason::Budget),
            StatusCode::SERVICE_UNAVAILABLE => self.refuse(RefusalReason::Unavailable),
            status if status.is_client_error() => self.refuse(RefusalReason::Malformed),
            status if status.is_server_error() => self.refuse(RefusalReason::Protocol),
            _ => self.handed_over(),
        }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.refuse(RefusalReason::Protocol);
    }
}

/// The observation of the message that carried a request of the SDK.
pub(crate) fn from_context(request: &RequestContext<RoleServer>) -> Option<Arc<Observation>> {
    let parts = request.extensions.get::<http::request::Parts>();
    let observation = match parts {
        Some(parts) => parts.extensions.get::<Arc<Observation>>(),
        None => request.extensions.get(),
    };
    observation.cloned()
}

/// Refuses a message under observation.
pub(crate) fn refuse(observation: Option<&Observation>, reason: RefusalReason) {
    if let Some(observation) = observation {
        observation.refuse(reason);
    }
}

/// Carries `work` out under observation, and adds the observer's entries to its result.
pub(crate) async fn run<T: ObservedResult, E: ObservedError>(
    observation: Option<Arc<Observation>>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let Some(call) = observation.and_then(|observation| observation.begin()) else {
        return work.await;
    };
    let mut reply = work.await;
    let mut added = Map::new();
    match &mut reply {
        Ok(result) => {
            call.end(result.outcome(), &mut added);
            if !added.is_empty() {
                result.add_meta(added);
            }
        }
        Err(error) => {
            let (code, message) = error.facts();
            call.end(Outcome::Failed { code, message }, &mut added);
        }
    }
    reply
}

/// An error a request is answered with.
pub(crate) trait ObservedError {
    fn facts(&self) -> (i32, &str);
}

impl ObservedError for RpcError {
    fn facts(&self) -> (i32, &str) {
        (self.code, &self.message)
    }
}

impl ObservedError for ErrorData {
    fn facts(&self) -> (i32, &str) {
        (self.code.0, &self.message)
    }
}

/// A result a request is answered with.
pub(crate) trait ObservedResult {
    fn outcome(&self) -> Outcome<'static> {
        Outcome::Completed
    }

    /// Adds to its `_meta`, if the result has one.
    fn add_meta(&mut self, added: Map<String, Value>);
}

fn extend(meta: &mut Option<MetaObject>, added: Map<String, Value>) {
    meta.get_or_insert_default().0.extend(added);
}

impl ObservedResult for () {
    fn add_meta(&mut self, _: Map<String, Value>) {}
}

macro_rules! with_meta {
    ($($result:ident),*) => {$(
        impl ObservedResult for $result {
            fn add_meta(&mut self, added: Map<String, Value>) {
                extend(&mut self.meta, added);
            }
        }
    )*};
}

with_meta!(
    InitializeResult,
    DiscoverResult,
    CompleteResult,
    ListToolsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListPromptsResult
);

impl ObservedResult for ReadResourceResponse {
    fn add_meta(&mut self, added: Map<String, Value>) {
        if let Self::Complete(result) = self {
            extend(&mut result.meta, added);
        }
    }
}

impl ObservedResult for GetPromptResponse {
    fn add_meta(&mut self, added: Map<String, Value>) {
        if let Self::Complete(result) = self {
            extend(&mut result.meta, added);
        }
    }
}

impl ObservedResult for ToolReply {
    fn outcome(&self) -> Outcome<'static> {
        match self {
            Self::Done(result) if result.is_error => Outcome::ToolError,
            _ => Outcome::Completed,
        }
    }

    fn add_meta(&mut self, added: Map<String, Value>) {
        if let Self::Done(result) = self {
            result.meta.get_or_insert_default().extend(added);
        }
    }
}
