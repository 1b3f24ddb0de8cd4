//! The console over HTTP: bounded bodies, and a stream of news.

use std::{convert::Infallible, fmt::Write as _, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wayleave_console::Console;
use wayleave_mcp::http::{Connection, HttpService};

/// Largest body that is read.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// How long a browser may take to send a form.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the inbox is looked at for news.
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

    /// How many proposals wait, whenever that changes. Text only: the page decides how to show it.
    fn news(&self) -> Response<Body> {
        let (console, closing) = (Arc::clone(&self.console), self.closing.clone());
        let news = stream::unfold(None::<usize>, move |known| {
            let (console, closing) = (Arc::clone(&console), closing.clone());
            async move {
                loop {
                    let now = waiting(&console).await;
                    if known != Some(now) {
                        let text = told(known, now);
                        let frame = Ok::<_, Infallible>(Frame::data(Bytes::from(text)));
                        return Some((frame, Some(now)));
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

async fn waiting(console: &Arc<Console>) -> usize {
    let console = Arc::clone(console);
    let looked = tokio::task::spawn_blocking(move || console.waiting());
    looked.await.unwrap_or(0)
}

fn told(known: Option<usize>, now: usize) -> String {
    let mut text = format!("event: inbox\ndata: {now}\n\n");
    if let Some(more) = known
        .and_then(|known| now.checked_sub(known))
        .filter(|it| *it > 0)
    {
        let noun = if more == 1 { "proposal" } else { "proposals" };
        let _ = write!(text, "event: news\ndata: {more} new {noun}.\n\n");
    }
    text
}

impl HttpService for ConsoleService {
    type Body = Body;

    async fn handle(&self, request: Request<Incoming>, _: &Connection) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let is_news = parts.method == Method::GET && parts.uri.path() == "/events";
        if is_news && self.console.is_signed_in(&parts) {
            return self.news();
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

    /// Ends the streams of news, which would never end by themselves.
    async fn drain(&self, _: Instant) {
        self.closing.cancel();
    }
}

fn refused(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(UnsyncBoxBody::new(Full::new(Bytes::new())));
    *response.status_mut() = status;
    response
}
