//! Requests of a pipe that the SDK is given only when something else is done: the subscriptions of
//! a listener begin before it is acknowledged, and no other line waits for that.

use std::collections::HashMap;

use futures::FutureExt as _;
use rmcp::{RoleServer, model::RequestId, service::RxJsonRpcMessage};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{AbortHandle, JoinSet},
};

type Message = RxJsonRpcMessage<RoleServer>;

/// The requests under way, at most as many as the caller's budget lets run.
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
    /// Gives the message back when `work` is done at once; otherwise [`next`](Self::next) does,
    /// when it is.
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

    /// The next message whose work is done. Never ends by itself.
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
