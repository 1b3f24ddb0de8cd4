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
use wayleave_console::Console;
use wayleave_mcp::http::{Connection, HttpService};

/// Largest accepted body.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// Deadline for a browser to send a form.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which inbox and calls are checked for news.
const NEWS_INTERVAL: Duration = Duration::from_secs(2);

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

    /// The event stream of news. Text only: the page decides how to show it.
    fn news(&self, calls_since: Option<u64>) -> Response<Body> {
        let (console, closing) = (Arc::clone(&self.console), self.closing.clone());
        let news = stream::unfold(NewsState::new(calls_since), move |mut state| {
            let (console, closing) = (Arc::clone(&console), closing.clone());
            async move {
                loop {
                    let text = state.look(&console).await;
                    if !text.is_empty() {
                        let frame = Ok::<_, Infallible>(Frame::data(Bytes::from(text)));
                        return Some((frame, state));
                    }
                    tokio::select! {
                        () = closing.cancelled() => return None,
                        () = tokio::time::sleep(NEWS_INTERVAL) => {}
                    }
                }
            }
        });
        let mut response = Response::new(UnsyncBoxBody::new(StreamBody::new(news)));
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("text/event-stream");
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// The news that a page has received.
struct NewsState {
    waiting: Option<usize>,
    /// When the page was rendered, if it shows calls.
    calls_since: Option<u64>,
    calls: usize,
    stamp: LogStamp,
}

impl NewsState {
    fn new(calls_since: Option<u64>) -> Self {
        Self {
            waiting: None,
            calls_since,
            calls: 0,
            stamp: LogStamp::default(),
        }
    }

    /// The events since the last look; empty if there are none.
    async fn look(&mut self, console: &Arc<Console>) -> String {
        let mut text = String::new();
        let now = waiting(console).await;
        if self.waiting != Some(now) {
            let _ = write!(text, "event: inbox\ndata: {now}\n\n");
            let more = self.waiting.and_then(|known| now.checked_sub(known));
            if let Some(more) = more.filter(|it| *it > 0) {
                tell(&mut text, more, "proposal");
            }
            self.waiting = Some(now);
        }
        if let Some(since) = self.calls_since
            && let Some((stamp, many)) = console.calls_since(since, &self.stamp).await
        {
            self.stamp = stamp;
            if many > self.calls {
                self.calls = many;
                tell(&mut text, many, "call");
            }
        }
        text
    }
}

fn tell(text: &mut String, many: usize, noun: &str) {
    let plural = if many == 1 { "" } else { "s" };
    let _ = write!(text, "event: news\ndata: {many} new {noun}{plural}.\n\n");
}

async fn waiting(console: &Arc<Console>) -> usize {
    let console = Arc::clone(console);
    let looked = tokio::task::spawn_blocking(move || console.waiting());
    looked.await.unwrap_or(0)
}

/// The query parameter `calls`: the time from which calls are counted.
fn calls_since(query: Option<&str>) -> Option<u64> {
    query?.strip_prefix("calls=")?.parse().ok()
}

impl HttpService for ConsoleService {
    type Body = Body;

    async fn handle(&self, request: Request<Incoming>, _: &Connection) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let is_news = parts.method == Method::GET && parts.uri.path() == "/events";
        if is_news && self.console.is_signed_in(&parts) {
            return self.news(calls_since(parts.uri.query()));
        }
        let collected = Limited::new(body, MAX_BODY_BYTES).collect();
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
