//! A stream that fails when the server requests the password in clear text.
//!
//! The driver has no hook for this: it answers every authentication request itself.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsStream};

use super::cleartext::CleartextGuard;

/// Passes everything through, and lets the guard inspect what arrives.
pub(super) struct GuardedStream<T> {
    stream: T,
    /// `None` where the server may request anything.
    guard: Option<CleartextGuard>,
}

impl<T> GuardedStream<T> {
    pub(super) fn new(stream: T, guard: Option<CleartextGuard>) -> Self {
        Self { stream, guard }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for GuardedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        if let Some(guard) = &mut self.guard {
            let read = into.filled().get(before..);
            guard.watch(read.ok_or(io::ErrorKind::InvalidData)?)?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for GuardedStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<T: TlsStream + Unpin> TlsStream for GuardedStream<T> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}
