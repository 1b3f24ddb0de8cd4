//! The tool calls of a pipe: each is carried out by a task of its own, which also writes its
//! answer.
//!
//! Through the SDK's loop a call would pass twice, there and back, and another task would write
//! what it answers. What a call says or asks before its answer goes through that loop all the same.
//! It knows nothing of lines, of budgets, or of who calls.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex as Lock, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleServer, Service as _,
    model::{CallToolRequest, ClientRequest, Extensions, RequestId, ServerJsonRpcMessage},
    service::{Peer, RequestContext},
};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{Mutex, Semaphore},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    call_parser::ParsedCall,
    sdk_handler::SdkHandler,
    tool_answer::{self, RawContentSlot},
};

/// Answers that may be waiting to be written. Beyond it no more is read.
const MAX_UNWRITTEN_ANSWERS: usize = 64;

/// A conversation that has begun.
pub(crate) struct PipeSession {
    pub(crate) handler: Arc<SdkHandler>,
    pub(crate) peer: Peer<RoleServer>,
}

/// The calls of one pipe.
pub(crate) struct PipeCalls<W> {
    session: Arc<OnceLock<PipeSession>>,
    running: Arc<CallTable>,
    tasks: JoinSet<()>,
    write: Arc<Mutex<W>>,
    unwritten: Arc<Semaphore>,
}

/// How calls that have not been answered are given up.
#[derive(Default)]
struct CallTable(Lock<HashMap<RequestId, CancellationToken>>);

impl CallTable {
    fn locked(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call's place among those under way.
struct CallEntry {
    table: Arc<CallTable>,
    id: RequestId,
    cancelled: CancellationToken,
}

impl Drop for CallEntry {
    fn drop(&mut self) {
        self.table.locked().remove(&self.id);
        // Whatever the call left behind ends with it.
        self.cancelled.cancel();
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> PipeCalls<W> {
    /// No calls are taken until `session` is there.
    pub(crate) fn new(session: Arc<OnceLock<PipeSession>>, write: Arc<Mutex<W>>) -> Self {
        Self {
            session,
            running: Arc::default(),
            tasks: JoinSet::new(),
            write,
            unwritten: Arc::new(Semaphore::new(MAX_UNWRITTEN_ANSWERS)),
        }
    }

    /// Carries a call out, with what it was sent with, unless the SDK is to do it; says whether so.
    pub(crate) fn begin(&mut self, call: ParsedCall, extensions: Extensions) -> bool {
        while self.tasks.try_join_next().is_some() {}
        let Some(session) = self.session.get() else {
            return false;
        };
        let Some(entry) = self.entry(&call.id) else {
            return false;
        };
        let mut context = RequestContext::new(call.id, session.peer.clone());
        context.ct = entry.cancelled.clone();
        context.meta = call.meta.unwrap_or_default();
        context.extensions = extensions;
        let slot = RawContentSlot::default();
        context.extensions.insert(slot.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call.params));
        let handler = session.handler.clone();
        let (write, unwritten) = (self.write.clone(), self.unwritten.clone());
        // Boxed: it is large, and a task is moved several times before it runs.
        self.tasks.spawn(Box::pin(async move {
            let replied = handler.handle_request(request, context).await;
            if entry.cancelled.is_cancelled() {
                return;
            }
            let id = entry.id.clone();
            drop(entry);
            let message = match replied {
                Ok(result) => ServerJsonRpcMessage::response(result, id),
                Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
            };
            let _room = unwritten.acquire().await;
            if let Err(error) = write_message(&write, &message, slot.get()).await {
                tracing::debug!(%error, "answer not written");
            }
        }));
        true
    }

    /// A place for the call; none if one of that id is under way.
    fn entry(&self, id: &RequestId) -> Option<CallEntry> {
        let mut running = self.running.locked();
        if running.contains_key(id) {
            return None;
        }
        let cancelled = CancellationToken::new();
        running.insert(id.clone(), cancelled.clone());
        Some(CallEntry {
            table: self.running.clone(),
            id: id.clone(),
            cancelled,
        })
    }

    /// The client waits for the call no longer, and is not answered.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(call) = self.running.locked().get(id) {
            call.cancel();
        }
    }

    /// Waits until there is room for one answer more.
    pub(crate) async fn wait_for_room(&self) {
        if self.unwritten.available_permits() == 0 {
            let _ = self.unwritten.acquire().await;
        }
    }

    /// Lets the calls under way finish, for so long, and drops those that do not.
    pub(crate) async fn finish(&mut self, within: Duration) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(within, all).await.is_err() {
            self.tasks.shutdown().await;
        }
    }
}

/// Writes a message as a line, with what is written of it already.
pub(crate) async fn write_message<W: AsyncWrite + Unpin>(
    write: &Mutex<W>,
    message: &ServerJsonRpcMessage,
    written: Option<&str>,
) -> io::Result<()> {
    let mut line = tool_answer::write(message, written)?;
    line.push(b'\n');
    write_line(write, &line).await
}

/// Writes a line.
pub(crate) async fn write_line<W: AsyncWrite + Unpin>(
    write: &Mutex<W>,
    line: &[u8],
) -> io::Result<()> {
    let mut write = write.lock().await;
    write.write_all(line).await?;
    write.flush().await
}
