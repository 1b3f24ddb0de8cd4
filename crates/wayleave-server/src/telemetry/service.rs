//! The operator's own listener: `/metrics`, `/healthz`, `/readyz`, and `/calls` for running calls.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use wayleave_activity::ActivityLog;
use wayleave_mcp::http::{AllowedHosts, Connection, HttpService};

use super::metrics::CallMetrics;

/// Answers operators and their programs. Serves no data and requires no credential: anyone who can
/// reach the address may ask, so it should be an address of this machine.
pub(crate) struct StatusService {
    pub(crate) metrics: Arc<CallMetrics>,
    pub(crate) log: ActivityLog,
    pub(crate) is_required: bool,
    /// The accepted hosts; `None` for any, if it listens on every address.
    pub(crate) allowed_hosts: Option<AllowedHosts>,
}

impl HttpService for StatusService {
    type Body = Full<Bytes>;

    async fn handle(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> Response<Self::Body> {
        connection.authenticated();
        let allowed_hosts = self.allowed_hosts.as_ref();
        if let Some(why) = allowed_hosts.and_then(|it| it.refuse(request.uri(), request.headers()))
        {
            return answer(StatusCode::FORBIDDEN, "text/plain", why);
        }
        if request.method() != Method::GET {
            return answer(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "use GET\n");
        }
        match request.uri().path() {
            "/metrics" => {
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                answer(StatusCode::OK, kind, self.metrics.page())
            }
            "/calls" => {
                let calls = self.metrics.running().to_string();
                answer(StatusCode::OK, "application/json", calls)
            }
            "/healthz" => answer(StatusCode::OK, "text/plain", "ok\n"),
            "/readyz" => match self.log.check() {
                Err(_) if self.is_required => answer(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "text/plain",
                    "calls cannot be recorded and are refused\n",
                ),
                _ => answer(StatusCode::OK, "text/plain", "ready\n"),
            },
            _ => answer(StatusCode::NOT_FOUND, "text/plain", "nothing is here\n"),
        }
    }
}

fn answer(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response: Response<Full<Bytes>> = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
