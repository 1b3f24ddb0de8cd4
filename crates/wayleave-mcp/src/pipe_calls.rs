//! The requests of a pipe: each is carried out by a task of its own, which also writes its answer.
//!
//! Through the SDK's loop a request would pass twice, there and back, and another task would write
//! its answer. Notices and requests that a call sends before its answer do go through that loop.
//! This module knows nothing of lines, of budgets, or of callers.

use std::{
    io, mem,
    sync::{Arc, OnceLock, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{Mutex, Semaphore},
    task::JoinSet,
    time::timeout,
};

use crate::{
    batch,
    request::PlainRequest,
    running_calls::RunningCalls,
    sdk::{
        answer,
        handler::SdkHandler,
        model::{Extensions, Peer, RequestContext, RequestId, RoleServer},
    },
};

/// Maximum number of answers waiting to be written. Beyond that, reading stops.
const MAX_UNWRITTEN_ANSWERS: usize = 64;

/// A conversation that has begun.
pub(crate) struct PipeSession {
    pub(crate) handler: Arc<SdkHandler>,
    pub(crate) peer: Peer<RoleServer>,
}

/// The requests of one pipe.
pub(crate) struct PipeCalls<W> {
    session: Arc<OnceLock<PipeSession>>,
    running: Arc<RunningCalls>,
    tasks: JoinSet<()>,
    write: Arc<Mutex<W>>,
    unwritten: Arc<Semaphore>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> PipeCalls<W> {
    /// The calls of a pipe. Begins none until `session` is set.
    pub(crate) fn new(session: Arc<OnceLock<PipeSession>>, write: Arc<Mutex<W>>) -> Self {
        Self {
            session,
            running: Arc::default(),
            tasks: JoinSet::new(),
            write,
            unwritten: Arc::new(Semaphore::new(MAX_UNWRITTEN_ANSWERS)),
        }
    }

    /// Begins a request with its extensions, unless it needs the SDK; returns whether it did.
    pub(crate) fn begin(
        &mut self,
        plain: PlainRequest,
        extensions: Extensions,
        batch: Option<Arc<BatchAnswers>>,
    ) -> bool {
        while self.tasks.try_join_next().is_some() {}
        let Some(session) = self.session.get() else {
            return false;
        };
        // A request whose id is already in use goes to the SDK.
        let Some(call) = self.running.begin(&plain.id) else {
            return false;
        };
        let mut context = RequestContext::new(plain.id, session.peer.clone());
        context.ct = call.cancelled.clone();
        context.meta = plain.meta;
        context.extensions = extensions;
        let handler = session.handler.clone();
        let (write, unwritten) = (self.write.clone(), self.unwritten.clone());
        // Boxed: the future is large, and a task is moved several times before it runs.
        self.tasks.spawn(Box::pin(async move {
            let reply = handler.dispatch(plain.request, context).await;
            let is_cancelled = call.cancelled.is_cancelled();
            let id = call.id.clone();
            drop(call);
            let line = (!is_cancelled).then(|| answer::write(reply, id));
            let line = match &batch {
                Some(batch) => batch.settle(line),
                None => line,
            };
            let Some(line) = line else { return };
            let _permit = unwritten.acquire().await;
            if let Err(error) = write_line(&write, line).await {
                tracing::debug!(%error, "answer not written");
            }
        }));
        true
    }

    /// Cancels a request; its client no longer waits and is not answered.
    pub(crate) fn cancel(&self, id: &RequestId) {
        self.running.cancel(id);
    }

    /// Waits until there is room for one more answer.
    pub(crate) async fn wait_for_room(&self) {
        if self.unwritten.available_permits() == 0 {
            let _ = self.unwritten.acquire().await;
        }
    }

    /// Lets the running calls finish within that time, and drops those that do not.
    pub(crate) async fn finish(&mut self, within: Duration) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(within, all).await.is_err() {
            self.tasks.shutdown().await;
        }
    }
}

/// The answers to a batch, until the last of its requests has been carried out.
pub(crate) struct BatchAnswers(std::sync::Mutex<UnansweredBatch>);

struct UnansweredBatch {
    answers: Vec<Vec<u8>>,
    remaining: usize,
}

impl BatchAnswers {
    /// Awaits the answers to this number of requests.
    pub(crate) fn new(requests: usize) -> Self {
        Self(std::sync::Mutex::new(UnansweredBatch {
            answers: Vec::new(),
            remaining: requests,
        }))
    }

    /// Adds the answer to a request, or none. Returns the array of all answers after the last
    /// request, if there is any.
    pub(crate) fn settle(&self, answer: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let mut batch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        batch.answers.extend(answer);
        batch.remaining = batch.remaining.saturating_sub(1);
        let is_whole = batch.remaining == 0 && !batch.answers.is_empty();
        is_whole.then(|| batch::joined(&mem::take(&mut batch.answers)))
    }
}

/// Writes a message as a line.
pub(crate) async fn write_line<W: AsyncWrite + Unpin>(
    write: &Mutex<W>,
    mut message: Vec<u8>,
) -> io::Result<()> {
    message.push(b'\n');
    let mut write = write.lock().await;
    write.write_all(&message).await?;
    write.flush().await
}
