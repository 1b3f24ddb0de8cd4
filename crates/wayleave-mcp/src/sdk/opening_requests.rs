//! Requests of a pipe that reach the SDK only after some preparation: the subscriptions of a
//! listener begin before it is acknowledged, and no other line waits for that.

use std::collections::HashMap;

use futures::FutureExt as _;
use rmcp::{RoleServer, model::RequestId, service::RxJsonRpcMessage};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{AbortHandle, JoinSet},
};

type Message = RxJsonRpcMessage<RoleServer>;

/// The requests in preparation. Only the request rate of the caller's budget limits their number.
pub(super) struct OpeningRequests {
    tasks: JoinSet<()>,
    running: HashMap<RequestId, AbortHandle>,
    ready: UnboundedSender<(RequestId, Message)>,
    opened: UnboundedReceiver<(RequestId, Message)>,
}

impl Default for OpeningRequests {
    fn default() -> Self {
        let (ready, opened) = unbounded_channel();
        Self {
            tasks: JoinSet::new(),
            running: HashMap::new(),
            ready,
            opened,
        }
    }
}

impl OpeningRequests {
    /// Returns the message if `work` completes at once; otherwise [`next`](Self::next) returns it
    /// on completion.
    pub(super) fn begin(
        &mut self,
        id: RequestId,
        message: Message,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Option<Message> {
        let mut work = Box::pin(work);
        if work.as_mut().now_or_never().is_some() {
            return Some(message);
        }
        while self.tasks.try_join_next().is_some() {}
        let ready = self.ready.clone();
        let key = id.clone();
        let task = self.tasks.spawn(async move {
            work.await;
            let _ = ready.send((id, message));
        });
        self.running.insert(key, task);
        None
    }

    /// Drops a request that its client no longer waits for.
    pub(super) fn cancel(&mut self, id: &RequestId) {
        if let Some(task) = self.running.remove(id) {
            task.abort();
        }
    }

    /// Waits for the next message whose work is done.
    pub(super) async fn next(&mut self) -> Message {
        loop {
            match self.opened.recv().await {
                Some((id, message)) if self.running.remove(&id).is_some() => return message,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }
}
