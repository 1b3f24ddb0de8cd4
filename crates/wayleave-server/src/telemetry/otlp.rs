//! Traces and metrics over OTLP: HTTP with JSON, as the OpenTelemetry protocol defines it.

use std::{
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::interval};
use tokio_util::sync::CancellationToken;
use url::Url;
use wayleave_activity::{Activity, CallOutcome};
use wayleave_project::source::EnvironmentVariables;

use super::metrics::{BUCKETS, CallMetrics, EndedCall};
use crate::auth::jwt::fetch::Fetcher;

/// The variable that names the collector.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Maximum number of ended calls that wait for the collector.
const MAX_WAITING_CALLS: usize = 4_096;
/// Maximum number of calls in one request.
const MAX_BATCH: usize = 256;
const TRACE_INTERVAL: Duration = Duration::from_millis(500);
/// Metrics are sent once per this number of trace intervals.
const METRIC_TICKS: u32 = 20;

/// The endpoint of the configured collector, if any.
pub(crate) fn endpoint(environment: &EnvironmentVariables) -> Option<Url> {
    let named = environment
        .get(ENDPOINT)
        .filter(|named| !named.is_empty())?;
    match Url::parse(&named) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => Some(url),
        _ => {
            tracing::warn!("`{ENDPOINT}` is not an http or https URL; nothing is exported");
            None
        }
    }
}

/// Sends ended calls to a collector.
pub(crate) struct OtlpExporter {
    endpoint: Url,
    calls: mpsc::Receiver<EndedCall>,
    fetcher: Fetcher,
    has_failed: bool,
}

impl OtlpExporter {
    /// An exporter, and the sender for ended calls.
    pub(crate) fn new(endpoint: Url) -> (Self, mpsc::Sender<EndedCall>) {
        let (sender, calls) = mpsc::channel(MAX_WAITING_CALLS);
        let exporter = Self {
            endpoint,
            calls,
            fetcher: Fetcher::new(),
            has_failed: false,
        };
        (exporter, sender)
    }

    /// Exports until `stop`, then exports the rest.
    pub(crate) async fn run(mut self, metrics: Arc<CallMetrics>, stop: CancellationToken) {
        let mut due = interval(TRACE_INTERVAL);
        let began = SystemTime::now();
        for tick in 0_u32.. {
            let is_last = tokio::select! {
                () = stop.cancelled() => true,
                _ = due.tick() => false,
            };
            self.send_traces().await;
            if is_last || tick % METRIC_TICKS == METRIC_TICKS - 1 {
                self.send("v1/metrics", &metric_document(&metrics, began))
                    .await;
            }
            if is_last {
                return;
            }
        }
    }

    async fn send_traces(&mut self) {
        loop {
            let mut spans = Vec::new();
            for _ in 0..MAX_BATCH {
                match self.calls.try_recv() {
                    Ok(call) => spans.extend(call_spans(&call)),
                    Err(_) => break,
                }
            }
            if spans.is_empty() {
                return;
            }
            let document = json!({ "resourceSpans": [{
                "resource": resource(),
                "scopeSpans": [{ "scope": scope(), "spans": spans }],
            }] });
            self.send("v1/traces", &document).await;
        }
    }

    async fn send(&mut self, path: &str, document: &Value) {
        let base = self.endpoint.as_str().trim_end_matches('/');
        let Ok(url) = Url::parse(&format!("{base}/{path}")) else {
            return;
        };
        let sent = self.fetcher.post_json(&url, document.to_string()).await;
        if let Err(error) = &sent
            && !self.has_failed
        {
            tracing::warn!(%error, "the OpenTelemetry collector does not take what is sent");
        }
        self.has_failed = sent.is_err();
    }
}

fn resource() -> Value {
    json!({ "attributes": [
        text("service.name", "wayleave"),
        text("service.version", env!("CARGO_PKG_VERSION")),
    ] })
}

fn scope() -> Value {
    json!({ "name": "wayleave", "version": env!("CARGO_PKG_VERSION") })
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The time of an instant in nanoseconds, in the form of OTLP.
fn nanos(at: Instant) -> String {
    let ago = Instant::now().saturating_duration_since(at);
    unix_nanos(SystemTime::now() - ago)
}

fn unix_nanos(at: SystemTime) -> String {
    at.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos()
        .to_string()
}

/// A call as a span of the server, and its phases as spans below it.
fn call_spans(call: &EndedCall) -> Vec<Value> {
    let activity = &call.activity;
    let bytes = activity.id.as_bytes();
    let (_, own) = bytes.split_at(8);
    let (trace, span) = match &activity.trace {
        Some(parent) => (hex(&parent.trace), hex(own)),
        None => (hex(bytes), hex(own)),
    };
    let parent = activity.trace.map(|parent| hex(&parent.span));
    let name = match &activity.target {
        Some(target) if activity.method == "tools/call" => format!("tools/call {target}"),
        _ => activity.method.clone(),
    };
    let mut root = json!({
        "traceId": trace, "spanId": span, "name": name, "kind": 2,
        "startTimeUnixNano": nanos(call.arrived), "endTimeUnixNano": nanos(call.ended),
        "attributes": attributes(activity),
        "status": { "code": if is_failure(activity) { 2 } else { 0 } },
    });
    if let (Some(parent), Some(root)) = (parent, root.as_object_mut()) {
        root.insert("parentSpanId".to_owned(), parent.into());
    }
    let mut spans = vec![root];
    for (at, (name, source, from, to)) in (1_u8..).zip(phases(call)) {
        let mut id = own.to_vec();
        if let Some(last) = id.last_mut() {
            *last = last.wrapping_add(at);
        }
        let mut attributes = Vec::new();
        attributes.extend(source.map(|source| text("db.collection.name", source)));
        spans.push(json!({
            "traceId": trace, "spanId": hex(&id), "parentSpanId": span, "name": name,
            "kind": if source.is_some() { 3 } else { 1 },
            "startTimeUnixNano": nanos(from), "endTimeUnixNano": nanos(to),
            "attributes": attributes,
        }));
    }
    spans
}

type Phase<'c> = (&'static str, Option<&'c str>, Instant, Instant);

/// The phases gate, plan, store and write-out. Planning ends when the first store is asked, and
/// write-out begins when the last has answered.
fn phases(call: &EndedCall) -> Vec<Phase<'_>> {
    let mut phases = vec![("gate", None, call.arrived, call.began)];
    let first = call.spans.iter().map(|span| span.began).min();
    let last = call.spans.iter().map(|span| span.ended).max();
    phases.push(("plan", None, call.began, first.unwrap_or(call.ended)));
    let spans = call.spans.iter();
    phases.extend(spans.map(|span| (span.name, span.source.as_deref(), span.began, span.ended)));
    phases.extend(last.map(|last| ("write-out", None, last, call.ended)));
    phases
}

fn is_failure(activity: &Activity) -> bool {
    !matches!(
        activity.outcome,
        CallOutcome::Completed | CallOutcome::Cancelled
    )
}

fn attributes(activity: &Activity) -> Vec<Value> {
    let mut attributes = vec![
        text("mcp.method.name", &activity.method),
        text(
            "network.transport",
            if activity.transport.http {
                "tcp"
            } else {
                "pipe"
            },
        ),
        text("wayleave.activity", &activity.id.to_string()),
        text("wayleave.token", &activity.agent.token),
        text("wayleave.outcome", activity.outcome.as_str()),
        number("wayleave.rows", activity.rows),
        number("wayleave.bytes", activity.bytes),
    ];
    if let Some(target) = &activity.target {
        if activity.method == "tools/call" {
            attributes.push(text("gen_ai.operation.name", "execute_tool"));
            attributes.push(text("gen_ai.tool.name", target));
        } else {
            attributes.push(text("mcp.resource.uri", target));
        }
    }
    match &activity.outcome {
        CallOutcome::Failed { code } => {
            attributes.push(text("error.type", &code.to_string()));
            attributes.push(text("rpc.response.status_code", &code.to_string()));
        }
        CallOutcome::ToolError { code } => {
            attributes.push(text("error.type", code.as_deref().unwrap_or("tool_error")));
        }
        _ => {}
    }
    attributes
}

fn metric_document(metrics: &CallMetrics, began: SystemTime) -> Value {
    let now = unix_nanos(SystemTime::now());
    let points: Vec<Value> = metrics
        .series()
        .iter()
        .map(|(key, series)| {
            let buckets: Vec<String> = series.buckets.iter().map(u64::to_string).collect();
            json!({
                "startTimeUnixNano": unix_nanos(began), "timeUnixNano": now,
                "count": series.count.to_string(), "sum": series.sum,
                "bucketCounts": buckets, "explicitBounds": BUCKETS,
                "attributes": [
                    text("mcp.method.name", &key.method),
                    text("gen_ai.tool.name", &key.tool),
                    text("wayleave.outcome", &key.outcome),
                ],
            })
        })
        .collect();
    json!({ "resourceMetrics": [{
        "resource": resource(),
        "scopeMetrics": [{ "scope": scope(), "metrics": [{
            "name": "mcp.server.operation.duration", "unit": "s",
            "histogram": { "aggregationTemporality": 2, "dataPoints": points },
        }] }],
    }] })
}
