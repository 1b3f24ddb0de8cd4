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
    answer::{self, Tray},
    door::Door,
    plain::PlainCall,
};

/// Answers that may be waiting to be written. Beyond it no more is read.
const MOST_UNWRITTEN: usize = 64;

/// A conversation that has begun.
pub(crate) struct Host {
    pub(crate) door: Arc<Door>,
    pub(crate) peer: Peer<RoleServer>,
}

/// The calls of one pipe.
pub(crate) struct Calls<W> {
    host: Arc<OnceLock<Host>>,
    under_way: Arc<UnderWay>,
    tasks: JoinSet<()>,
    write: Arc<Mutex<W>>,
    unwritten: Arc<Semaphore>,
}

/// How calls that have not been answered are given up.
#[derive(Default)]
struct UnderWay(Lock<HashMap<RequestId, CancellationToken>>);

impl UnderWay {
    fn locked(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call's place among those under way.
struct Place {
    among: Arc<UnderWay>,
    id: RequestId,
    given_up: CancellationToken,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.among.locked().remove(&self.id);
        // Whatever the call left behind ends with it.
        self.given_up.cancel();
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Calls<W> {
    /// No calls are taken until `host` is there.
    pub(crate) fn new(host: Arc<OnceLock<Host>>, write: Arc<Mutex<W>>) -> Self {
        Self {
            host,
            under_way: Arc::default(),
            tasks: JoinSet::new(),
            write,
            unwritten: Arc::new(Semaphore::new(MOST_UNWRITTEN)),
        }
    }

    /// Carries a call out, with what it was sent with, unless the SDK is to do it; says whether so.
    pub(crate) fn begin(&mut self, call: PlainCall, extensions: Extensions) -> bool {
        while self.tasks.try_join_next().is_some() {}
        let Some(host) = self.host.get() else {
            return false;
        };
        let Some(place) = self.place(&call.id) else {
            return false;
        };
        let mut context = RequestContext::new(call.id, host.peer.clone());
        context.ct = place.given_up.clone();
        context.meta = call.meta.unwrap_or_default();
        context.extensions = extensions;
        let tray = Tray::default();
        context.extensions.insert(tray.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call.params));
        let door = host.door.clone();
        let (write, unwritten) = (self.write.clone(), self.unwritten.clone());
        // Boxed: it is large, and a task is moved several times before it runs.
        self.tasks.spawn(Box::pin(async move {
            let replied = door.handle_request(request, context).await;
            if place.given_up.is_cancelled() {
                return;
            }
            let id = place.id.clone();
            drop(place);
            let message = match replied {
                Ok(result) => ServerJsonRpcMessage::response(result, id),
                Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
            };
            let _room = unwritten.acquire().await;
            if let Err(error) = send(&write, &message, tray.get()).await {
                tracing::debug!(%error, "answer not written");
            }
        }));
        true
    }

    /// A place for the call; none if one of that id is under way.
    fn place(&self, id: &RequestId) -> Option<Place> {
        let mut under_way = self.under_way.locked();
        if under_way.contains_key(id) {
            return None;
        }
        let given_up = CancellationToken::new();
        under_way.insert(id.clone(), given_up.clone());
        Some(Place {
            among: self.under_way.clone(),
            id: id.clone(),
            given_up,
        })
    }

    /// The client waits for the call no longer, and is not answered.
    pub(crate) fn give_up(&self, id: &RequestId) {
        if let Some(call) = self.under_way.locked().get(id) {
            call.cancel();
        }
    }

    /// Waits until there is room for one answer more.
    pub(crate) async fn room(&self) {
        if self.unwritten.available_permits() == 0 {
            let _ = self.unwritten.acquire().await;
        }
    }

    /// Lets the calls under way finish, for so long, and drops those that do not.
    pub(crate) async fn finish(&mut self, patience: Duration) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(patience, all).await.is_err() {
            self.tasks.shutdown().await;
        }
    }
}

/// Writes a message as a line, with what is written of it already.
pub(crate) async fn send<W: AsyncWrite + Unpin>(
    write: &Mutex<W>,
    message: &ServerJsonRpcMessage,
    written: Option<&str>,
) -> io::Result<()> {
    let mut line = answer::message(message, written)?;
    line.push(b'\n');
    put(write, &line).await
}

/// Writes a line.
pub(crate) async fn put<W: AsyncWrite + Unpin>(write: &Mutex<W>, line: &[u8]) -> io::Result<()> {
    let mut write = write.lock().await;
    write.write_all(line).await?;
    write.flush().await
}
