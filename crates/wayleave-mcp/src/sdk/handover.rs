//! Requests in a session that began without the SDK and are handed to it later.
//!
//! Most calls only send an answer, and are carried out where they were received. A call that sends
//! to its client before that, or takes so long that the client should get a stream to wait on, is
//! handed to the SDK while it runs: the SDK parses the same message, and its handler finds the
//! running request and finishes it instead of beginning it anew.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use rmcp::{ErrorData, RoleServer, model::ServerResult, service::RequestContext};
use tokio::sync::{Notify, SetOnce};

use super::{answer::WireAnswer, session_streams::SseStream};
use crate::{RpcError, running_calls::RunningCall};

/// Gives a call that runs without the SDK a channel to its client.
#[derive(Default)]
pub(crate) struct ClientLink {
    wanted: Notify,
    sdk: SetOnce<RequestContext<RoleServer>>,
}

impl ClientLink {
    /// Asks the SDK to take the call over, and waits until it has.
    pub(crate) async fn connect(&self) -> &RequestContext<RoleServer> {
        self.wanted.notify_one();
        self.sdk.wait().await
    }

    /// Waits until the call asks for the channel.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }
}

/// The work of a request, and its result.
pub(crate) type Work = BoxFuture<'static, Result<WireAnswer, ErrorData>>;

/// A request that has begun. It travels in the extensions of its message.
#[derive(Clone)]
pub(crate) struct RequestHandover(Arc<Inner>);

struct Inner {
    link: Arc<ClientLink>,
    /// Present until the SDK's handler takes it.
    running: Mutex<Option<(Work, RunningCall)>>,
}

impl RequestHandover {
    pub(crate) fn new(work: Work, call: RunningCall, link: Arc<ClientLink>) -> Self {
        Self(Arc::new(Inner {
            link,
            running: Mutex::new(Some((work, call))),
        }))
    }

    /// The begun request that belongs to `context`, if there is one.
    pub(super) fn from_context(context: &RequestContext<RoleServer>) -> Option<Self> {
        let parts = context.extensions.get::<http::request::Parts>()?;
        parts.extensions.get().cloned()
    }

    /// Finishes the request, with the SDK's side of it.
    pub(super) async fn finish(
        self,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let running = self.0.running.lock();
        let running = running.unwrap_or_else(PoisonError::into_inner).take();
        let Some((mut work, mut call)) = running else {
            // The SDK calls one handler for one message.
            return Err(RpcError::internal("a request was handed over twice").into());
        };
        // The SDK tracks the id from here on, and passes cancellation on.
        call.leave_table();
        let given_up = context.ct.clone();
        if let Some(stream) = context.extensions.get::<SseStream>() {
            stream.cancel_on_end(&call.cancelled);
        }
        // The link holds the context, and must not hold itself through it.
        if let Some(parts) = context.extensions.get_mut::<http::request::Parts>() {
            parts.extensions.remove::<Self>();
        }
        let _ = self.0.link.sdk.set(context);
        let answer = tokio::select! {
            biased;
            answer = &mut work => answer,
            () = given_up.cancelled() => {
                call.cancelled.cancel();
                work.await
            }
        };
        answer.and_then(WireAnswer::into_result)
    }
}
