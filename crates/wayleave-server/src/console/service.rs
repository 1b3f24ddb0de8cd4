//! The console over HTTP: bounded bodies, and an event stream.

use std::{convert::Infallible, fmt::Write as _, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wayleave_activity::LogStamp;
use wayleave_console::{Console, MAX_FORM_BYTES};
use wayleave_mcp::http::{Connection, HttpService};

/// Deadline for a browser to send a form.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which inbox and calls are polled for changes.
const EVENT_INTERVAL: Duration = Duration::from_secs(2);

type Body = UnsyncBoxBody<Bytes, Infallible>;

pub(super) struct ConsoleService {
    console: Arc<Console>,
    closing: CancellationToken,
}

impl ConsoleService {
    pub(super) fn new(console: Arc<Console>) -> Self {
        Self {
            console,
            closing: CancellationToken::new(),
        }
    }

    /// The event stream of a page. Text only: the page decides how to show it.
    fn events(&self, calls_since: Option<u64>) -> Response<Body> {
        let (console, closing) = (Arc::clone(&self.console), self.closing.clone());
        let events = stream::unfold(EventState::new(calls_since), move |mut state| {
            let (console, closing) = (Arc::clone(&console), closing.clone());
            async move {
                loop {
                    let text = state.poll(&console).await;
                    if !text.is_empty() {
                        let frame = Ok::<_, Infallible>(Frame::data(Bytes::from(text)));
                        return Some((frame, state));
                    }
                    tokio::select! {
                        () = closing.cancelled() => return None,
                        () = tokio::time::sleep(EVENT_INTERVAL) => {}
                    }
                }
            }
        });
        let mut response = Response::new(UnsyncBoxBody::new(StreamBody::new(events)));
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("text/event-stream");
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// The changes that a page has received.
struct EventState {
    /// The last count of waiting proposals, if one was sent.
    waiting: Option<WaitingCount>,
    /// When the page was rendered, if it shows calls.
    calls_since: Option<u64>,
    calls: usize,
    stamp: LogStamp,
    /// Whether the page was told that the record of calls cannot be read.
    is_unreadable: bool,
}

/// The number of waiting proposals, if the inbox can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitingCount {
    Proposals(usize),
    Unknown,
}

impl EventState {
    fn new(calls_since: Option<u64>) -> Self {
        Self {
            waiting: None,
            calls_since,
            calls: 0,
            stamp: LogStamp::default(),
            is_unreadable: false,
        }
    }

    /// The events since the last poll; empty if there are none.
    async fn poll(&mut self, console: &Arc<Console>) -> String {
        let mut text = String::new();
        let now = waiting(console).await;
        if self.waiting != Some(now) {
            self.push_waiting(&mut text, now);
            self.waiting = Some(now);
        }
        let Some(since) = self.calls_since else {
            return text;
        };
        let found = console.calls_since(since, &self.stamp).await;
        let is_unreadable = found.is_err();
        if is_unreadable && !self.is_unreadable {
            text.push_str("event: news\ndata: The record of calls cannot be read.\n\n");
        }
        self.is_unreadable = is_unreadable;
        if let Ok(Some((stamp, many))) = found {
            self.stamp = stamp;
            if many > self.calls {
                self.calls = many;
                push_event(&mut text, many, "call");
            }
        }
        text
    }

    fn push_waiting(&self, text: &mut String, now: WaitingCount) {
        let WaitingCount::Proposals(now) = now else {
            text.push_str("event: inbox\ndata: ?\n\n");
            return;
        };
        let _ = write!(text, "event: inbox\ndata: {now}\n\n");
        if let Some(WaitingCount::Proposals(known)) = self.waiting
            && now > known
        {
            push_event(text, now - known, "proposal");
        }
    }
}

fn push_event(text: &mut String, many: usize, noun: &str) {
    let plural = if many == 1 { "" } else { "s" };
    let _ = write!(text, "event: news\ndata: {many} new {noun}{plural}.\n\n");
}

async fn waiting(console: &Arc<Console>) -> WaitingCount {
    let console = Arc::clone(console);
    let counted = tokio::task::spawn_blocking(move || console.waiting());
    match counted.await {
        Ok(Ok(many)) => WaitingCount::Proposals(many),
        Ok(Err(_)) | Err(_) => WaitingCount::Unknown,
    }
}

/// The query parameter `calls`: the time from which calls are counted.
fn calls_since(query: Option<&str>) -> Option<u64> {
    query?.strip_prefix("calls=")?.parse().ok()
}

impl HttpService for ConsoleService {
    type Body = Body;

    async fn handle(&self, request: Request<Incoming>, _: &Connection) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let is_events = parts.method == Method::GET && parts.uri.path() == "/events";
        if is_events && self.console.is_signed_in(&parts) {
            return self.events(calls_since(parts.uri.query()));
        }
        let collected = Limited::new(body, MAX_FORM_BYTES).collect();
        let bytes = match tokio::time::timeout(BODY_TIMEOUT, collected).await {
            Ok(Ok(collected)) => collected.to_bytes(),
            Ok(Err(_)) => return refused(StatusCode::PAYLOAD_TOO_LARGE),
            Err(_) => return refused(StatusCode::REQUEST_TIMEOUT),
        };
        let response = self
            .console
            .respond(Request::from_parts(parts, bytes))
            .await;
        response.map(|body| UnsyncBoxBody::new(Full::new(body)))
    }

    /// Ends the event streams, which would never end by themselves.
    async fn drain(&self, _: Instant) {
        self.closing.cancel();
    }
}

fn refused(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(UnsyncBoxBody::new(Full::new(Bytes::new())));
    *response.status_mut() = status;
    response
}
