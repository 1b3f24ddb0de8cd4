//! A response body that reports its own end, and the permits it holds until then.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::{Body as HttpBody, Frame, SizeHint};

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{connections::InFlight, reply::Body, sessions::SessionUse};
use crate::{Caller, budget::BudgetExceeded};

pin_project_lite::pin_project! {
    /// A body, and the permits to release when it has been sent or dropped.
    pub(crate) struct ResponseBody {
        #[pin]
        inner: Body,
        guard: Option<Box<dyn Send + Sync>>,
        end: Option<BoxFuture<'static, ()>>,
    }
}

impl From<Body> for ResponseBody {
    fn from(inner: Body) -> Self {
        Self {
            inner,
            guard: None,
            end: None,
        }
    }
}

impl ResponseBody {
    pub(crate) fn with_guard(inner: Body, guard: impl Send + Sync + 'static) -> Self {
        Self {
            inner,
            guard: Some(Box::new(guard)),
            end: None,
        }
    }

    /// Ends the body when `end` completes, if not before.
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

pin_project_lite::pin_project! {
    /// A body that keeps its connection in use until it has been sent or dropped.
    pub(super) struct InFlightBody<B> {
        #[pin]
        inner: B,
        in_flight: Option<InFlight>,
    }
}

impl<B> InFlightBody<B> {
    pub(super) fn new(inner: B, in_flight: InFlight) -> Self {
        let in_flight = Some(in_flight);
        Self { inner, in_flight }
    }
}

impl<B: HttpBody> HttpBody for InFlightBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let polled = this.inner.poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) {
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

/// Permits and guards a response keeps until it has been sent.
#[expect(dead_code, reason = "held for their drop alone")]
pub(super) struct RequestPermits {
    pub(super) ending: Option<TaskTrackerToken>,
    pub(super) session: Option<SessionUse>,
    /// The permit of an open stream.
    pub(super) stream_permit: Option<OwnedSemaphorePermit>,
    /// The permit of the caller's own budget.
    pub(super) budget_permit: Option<OwnedSemaphorePermit>,
}

/// What ends a response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseEnd {
    /// Its answer is sent.
    Answered,
    /// The server starts draining; then it sends its last message.
    Draining,
    /// It is cut.
    Cut,
}

/// Charges a request to its caller's budget, and waits for a slot.
pub(super) async fn charge(
    caller: &Caller,
    end: ResponseEnd,
    permits: &mut RequestPermits,
) -> Result<(), BudgetExceeded> {
    match (caller.budget(), end) {
        (None, _) => Ok(()),
        (Some(budget), ResponseEnd::Answered) => {
            permits.budget_permit = Some(budget.acquire().await?);
            Ok(())
        }
        // A stream already has its permit.
        (Some(budget), ResponseEnd::Draining | ResponseEnd::Cut) => budget.spend(),
    }
}
