//! Serves one client over standard input and output.
//!
//! Nothing but JSON-RPC goes to standard output, no port is bound, and when the client goes away
//! the server ends at once.

use std::{sync::Arc, time::Duration};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::{
    Caller, Server, StdioAuthenticate, caller_cell::CallerCell, conversation::Conversation,
    sdk::pipe_transport, server::Shutdown, stdio_auth::StdioPeer,
};

/// How long running calls may go on after the client closed our input.
pub(crate) const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// Serving over stdio failed.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The first message did not begin a conversation.
    #[error("the client did not begin with a request: {reason}")]
    Handshake {
        /// The error of the handshake.
        reason: String,
    },
    /// The serving task died.
    #[error("the serving task failed: {reason}")]
    Task {
        /// The reason.
        reason: String,
    },
}

impl Server {
    /// Serves the client on the other end of standard input and output until it goes away or
    /// `stop` is cancelled.
    pub async fn serve_stdio(
        &self,
        authenticate: impl StdioAuthenticate,
        stop: CancellationToken,
    ) -> Result<(), StdioError> {
        let (read, write) = pipe_transport::stdio_pipes();
        self.serve_pipe(authenticate, read, write, stop).await
    }

    /// Serves one client over any pair of byte streams, one JSON-RPC message per line.
    pub async fn serve_pipe(
        &self,
        authenticate: impl StdioAuthenticate,
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        stop: CancellationToken,
    ) -> Result<(), StdioError> {
        let shutdown = Shutdown::default();
        // The end of the pipe ends everything that listens through it.
        let ended = shutdown.draining.clone();
        let always = authenticate.always();
        let is_asked = always.is_none();
        // A caller that `authenticate` has to establish is replaced before the first message is
        // handed over.
        let caller_cell = CallerCell::new(always.unwrap_or_else(|| Arc::new(Caller::anonymous())));
        let peer = StdioPeer {
            authenticate: is_asked.then(|| Arc::new(authenticate) as Arc<dyn StdioAuthenticate>),
            caller_cell: caller_cell.clone(),
        };
        let conversation = Conversation::new(self.0.clone(), &shutdown, caller_cell);
        let serving = pipe_transport::serve(conversation, peer, read, write);
        tokio::select! {
            served = serving => served,
            () = async { ended.cancelled().await; tokio::time::sleep(FINISH_TIMEOUT).await } => Ok(()),
            () = async { stop.cancelled().await; ended.cancel(); std::future::pending().await } => Ok(()),
        }
    }
}
