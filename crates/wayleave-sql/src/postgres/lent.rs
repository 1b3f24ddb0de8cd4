//! A connection that is lent to the driver and taken back, and what the server may ask for over it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wayleave_store::{Detail, StoreError};

use super::cleartext::CleartextGuard;

/// What the driver has until it is done.
pub(super) struct Lent<T> {
    thing: Arc<Mutex<T>>,
    /// Watches the login; the driver alone would send a password to whoever asks.
    guard: Option<Arc<Mutex<CleartextGuard>>>,
}

impl<T> Lent<T> {
    pub(super) fn new(thing: T, guard: Option<CleartextGuard>) -> Self {
        Self {
            thing: Arc::new(Mutex::new(thing)),
            guard: guard.map(|guard| Arc::new(Mutex::new(guard))),
        }
    }

    pub(super) fn locked(&self) -> MutexGuard<'_, T> {
        locked(&self.thing)
    }

    /// Takes it back, once the driver has let it go.
    pub(super) fn back(self) -> Result<T, StoreError> {
        match Arc::try_unwrap(self.thing) {
            Ok(thing) => Ok(thing.into_inner().unwrap_or_else(PoisonError::into_inner)),
            Err(_) => Err(StoreError::Failed {
                doing: "connecting",
                code: None,
                detail: Detail::fixed("the driver did not let the connection go"),
            }),
        }
    }
}

impl<T> Clone for Lent<T> {
    fn clone(&self) -> Self {
        Self {
            thing: Arc::clone(&self.thing),
            guard: self.guard.clone(),
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Lent<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut *self.locked()).poll_read(context, into))?;
        if let Some(guard) = &self.guard {
            let arrived = into.filled().get(before..).unwrap_or_default();
            locked(guard).watch(arrived)?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Lent<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.locked()).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.locked()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.locked()).poll_shutdown(context)
    }
}

pub(super) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
