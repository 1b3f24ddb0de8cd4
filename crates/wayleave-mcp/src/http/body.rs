//! A response body that knows when it is over.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::{connections::InFlight, reply::Body};

pin_project_lite::pin_project! {
    /// A body, and what is to be let go of when it has been sent or dropped.
    pub(crate) struct ResponseBody {
        #[pin]
        inner: Body,
        guard: Option<Box<dyn Send + Sync>>,
        end: Option<BoxFuture<'static, ()>>,
        in_flight: Option<InFlight>,
    }
}

impl From<Body> for ResponseBody {
    fn from(inner: Body) -> Self {
        Self {
            inner,
            guard: None,
            end: None,
            in_flight: None,
        }
    }
}

impl ResponseBody {
    pub(crate) fn with_guard(inner: Body, guard: impl Send + Sync + 'static) -> Self {
        Self {
            inner,
            guard: Some(Box::new(guard)),
            end: None,
            in_flight: None,
        }
    }

    /// The same, keeping its connection in use.
    pub(super) fn in_flight(mut self, request: InFlight) -> Self {
        self.in_flight = Some(request);
        self
    }

    /// The same, ending no later than `end` does.
    pub(crate) fn until(mut self, end: impl Future<Output = ()> + Send + 'static) -> Self {
        self.end = Some(Box::pin(end));
        self
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.project();
        let ended = this
            .end
            .as_mut()
            .is_some_and(|end| end.as_mut().poll(cx).is_ready());
        let polled = if ended {
            Poll::Ready(None)
        } else {
            this.inner.poll_frame(cx)
        };
        if matches!(polled, Poll::Ready(None)) {
            *this.guard = None;
            *this.end = None;
            *this.in_flight = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
