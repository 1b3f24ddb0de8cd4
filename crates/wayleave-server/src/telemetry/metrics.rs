//! Counts and durations of calls, and the calls that are running.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use wayleave_activity::{Activity, ActivityId, CallOutcome, CallSpan};
use wayleave_mcp::RequestFacts;

use crate::activity::{open_text, target};

/// Upper bounds of the histogram's buckets, in seconds: those of the MCP conventions, and some
/// below them, because most reads are faster.
pub(super) const BUCKETS: [f64; 15] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
];
/// Maximum number of series; further ones are counted as one, because names come from callers.
const MAX_SERIES: usize = 500;

/// The labels of a series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeriesKey {
    pub(super) method: String,
    pub(super) tool: String,
    pub(super) outcome: String,
}

/// Totals and durations of the calls of one series.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    pub(super) count: u64,
    pub(super) sum: f64,
    pub(super) buckets: [u64; BUCKETS.len() + 1],
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// A call that has ended, for the exporter.
pub(crate) struct EndedCall {
    pub(super) activity: Activity,
    pub(super) arrived: Instant,
    pub(super) began: Instant,
    pub(super) ended: Instant,
    pub(super) spans: Vec<CallSpan>,
}

struct RunningCall {
    token: String,
    method: String,
    target: String,
    began: Instant,
}

/// The label of what has no series of its own.
const OTHER: &str = "other";
/// The methods that have series of their own.
const METHODS: [&str; 15] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

/// Measures calls, if configured.
pub struct CallMetrics(Option<Measurements>);

struct Measurements {
    series: Mutex<BTreeMap<SeriesKey, Series>>,
    running: Mutex<HashMap<ActivityId, RunningCall>>,
    refused: AtomicU64,
    exporter: Option<mpsc::Sender<EndedCall>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CallMetrics {
    /// Measures nothing.
    pub fn disabled() -> Self {
        Self(None)
    }

    pub(crate) fn new(exporter: Option<mpsc::Sender<EndedCall>>) -> Self {
        Self(Some(Measurements {
            series: Mutex::default(),
            running: Mutex::default(),
            refused: AtomicU64::new(0),
            exporter,
        }))
    }

    /// Whether the phases of calls are measured.
    pub(crate) fn is_timed(&self) -> bool {
        self.0.as_ref().is_some_and(|it| it.exporter.is_some())
    }

    pub(crate) fn begin(&self, id: ActivityId, facts: &RequestFacts) {
        if let Some(measurements) = &self.0 {
            let call = RunningCall {
                token: facts
                    .caller
                    .as_ref()
                    .map_or("", |it| it.subject())
                    .to_owned(),
                method: facts.method.as_deref().map(open_text).unwrap_or_default(),
                target: target(facts).unwrap_or_default(),
                began: Instant::now(),
            };
            lock(&measurements.running).insert(id, call);
        }
    }

    pub(crate) fn refuse(&self, activity: &Activity) {
        if let Some(measurements) = &self.0 {
            measurements.refused.fetch_add(1, Ordering::Relaxed);
            measurements.count(activity);
        }
    }

    pub(crate) fn end(
        &self,
        activity: &Activity,
        arrived: Instant,
        began: Instant,
        spans: &[CallSpan],
    ) {
        let Some(measurements) = &self.0 else {
            return;
        };
        lock(&measurements.running).remove(&activity.id);
        measurements.count(activity);
        if let Some(exporter) = &measurements.exporter {
            // A collector that is too slow loses calls; calls do not wait for it.
            let _ = exporter.try_send(EndedCall {
                activity: activity.clone(),
                arrived,
                began,
                ended: Instant::now(),
                spans: spans.to_vec(),
            });
        }
    }

    pub(super) fn series(&self) -> Vec<(SeriesKey, Series)> {
        let series = self.0.as_ref().map(|it| lock(&it.series));
        let series = series.iter().flat_map(|series| series.iter());
        series
            .map(|(key, series)| (key.clone(), series.clone()))
            .collect()
    }

    /// The running calls, as JSON.
    pub(crate) fn running(&self) -> Value {
        let running = self.0.as_ref().map(|it| lock(&it.running));
        let calls = running.iter().flat_map(|running| running.iter());
        let calls: Vec<Value> = calls
            .map(|(id, call)| {
                json!({
                    "activity": id, "token": call.token, "method": call.method,
                    "target": call.target,
                    "running_ms": u64::try_from(call.began.elapsed().as_millis()).ok(),
                })
            })
            .collect();
        json!({ "calls": calls })
    }

    /// The metrics in the text format of Prometheus.
    pub(crate) fn page(&self) -> String {
        const NAME: &str = "mcp_server_operation_duration_seconds";
        let mut page = format!("# TYPE {NAME} histogram\n# UNIT {NAME} seconds\n");
        let series = self.series();
        for (key, series) in &series {
            let labels = key.labels();
            let mut below = 0;
            for (bucket, bound) in series.buckets.iter().zip(BUCKETS) {
                below += bucket;
                let _ = writeln!(page, "{NAME}_bucket{{{labels},le=\"{bound}\"}} {below}");
            }
            let (count, sum) = (series.count, series.sum);
            let _ = writeln!(page, "{NAME}_bucket{{{labels},le=\"+Inf\"}} {count}");
            let _ = writeln!(page, "{NAME}_sum{{{labels}}} {sum}");
            let _ = writeln!(page, "{NAME}_count{{{labels}}} {count}");
        }
        page.push_str("# TYPE wayleave_rows_total counter\n");
        for (key, series) in &series {
            let _ = writeln!(
                page,
                "wayleave_rows_total{{{}}} {}",
                key.labels(),
                series.rows
            );
        }
        page.push_str("# TYPE wayleave_result_bytes_total counter\n");
        for (key, series) in &series {
            let (labels, bytes) = (key.labels(), series.bytes);
            let _ = writeln!(page, "wayleave_result_bytes_total{{{labels}}} {bytes}");
        }
        if let Some(measurements) = &self.0 {
            let running = lock(&measurements.running).len();
            let refused = measurements.refused.load(Ordering::Relaxed);
            let _ = writeln!(
                page,
                "# TYPE wayleave_running_calls gauge\nwayleave_running_calls {running}\n\
                 # TYPE wayleave_refused_total counter\nwayleave_refused_total {refused}"
            );
        }
        page
    }
}

impl SeriesKey {
    fn new(activity: &Activity) -> Self {
        // Only names this server gave: a resource's URI, or a tool that does not exist, would be
        // a series of its own.
        let is_tool = activity.method == "tools/call"
            && !matches!(
                activity.outcome,
                CallOutcome::Failed { .. } | CallOutcome::Refused { .. }
            );
        let tool = activity.target.clone().filter(|_| is_tool);
        // A caller may send any method, and each would be a series.
        let method = METHODS.iter().find(|it| **it == activity.method);
        Self {
            method: method.unwrap_or(&OTHER).to_string(),
            tool: tool.unwrap_or_default(),
            outcome: activity.outcome.as_str().to_owned(),
        }
    }

    fn other() -> Self {
        let other = || OTHER.to_owned();
        Self {
            method: other(),
            tool: other(),
            outcome: other(),
        }
    }

    fn labels(&self) -> String {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        format!(
            "mcp_method_name=\"{}\",gen_ai_tool_name=\"{}\",outcome=\"{}\"",
            escaped(&self.method),
            escaped(&self.tool),
            escaped(&self.outcome)
        )
    }
}

impl Measurements {
    fn count(&self, activity: &Activity) {
        let mut all = lock(&self.series);
        let mut key = SeriesKey::new(activity);
        if all.len() >= MAX_SERIES && !all.contains_key(&key) {
            key = SeriesKey::other();
        }
        let series = all.entry(key).or_default();
        let seconds = activity.duration().as_secs_f64();
        let bucket = BUCKETS.iter().position(|bound| seconds <= *bound);
        if let Some(bucket) = series.buckets.get_mut(bucket.unwrap_or(BUCKETS.len())) {
            *bucket += 1;
        }
        series.count += 1;
        series.sum += seconds;
        series.rows += activity.rows;
        series.bytes += activity.bytes;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Map;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex, split};
    use tokio_util::sync::CancellationToken;
    use wayleave_activity::CallTransport;
    use wayleave_mcp::{
        CallObserver, Caller, Identity, ObservedCall, Recording, RefusalReason, Registry, RpcError,
        Server,
    };

    use super::*;

    fn activity(method: &str) -> Activity {
        Activity {
            id: ActivityId::now(),
            micros: 5,
            transport: CallTransport {
                http: true,
                session: false,
            },
            method: method.to_owned(),
            target: None,
            agent: wayleave_activity::Agent::default(),
            grants: Vec::new(),
            streams: Vec::new(),
            arguments: wayleave_activity::ArgumentRecord::default(),
            used: wayleave_activity::RecordList::default(),
            generated: wayleave_activity::RecordList::default(),
            rows: 0,
            bytes: 0,
            answer: None,
            outcome: CallOutcome::Completed,
            trace: None,
            suppressed: 0,
        }
    }

    /// Measures the beginning of every call, and then refuses it.
    struct BeginObserver(CallMetrics);

    impl CallObserver for BeginObserver {
        fn begin(&self, request: RequestFacts) -> Result<Box<dyn ObservedCall>, RpcError> {
            self.0.begin(ActivityId::now(), &request);
            Err(RpcError::unrecorded())
        }

        fn refused(
            &self,
            _: RequestFacts,
            _: RefusalReason,
            _: &mut Map<String, Value>,
        ) -> Recording {
            Recording::Done
        }
    }

    #[tokio::test]
    async fn a_running_read_is_shown_without_the_query_of_its_uri() {
        let observer = Arc::new(BeginObserver(CallMetrics::new(None)));
        let server = Server::new(Registry::new(), Identity::new("test", "1.0.0"));
        let server = server.with_observer(observer.clone());
        let (ours, theirs) = duplex(64 * 1024);
        let (read, write) = split(theirs);
        let stop = CancellationToken::new();
        let serving = server.serve_pipe(Caller::anonymous(), read, write, stop);
        let asked = async {
            let (read, mut write) = split(ours);
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
            });
            let uri = "wayleave://kg/Person?where=name%3DAnn&limit=1";
            let request = json!({
                "jsonrpc": "2.0", "id": 1, "method": "resources/read",
                "params": { "uri": uri, "_meta": meta },
            });
            let line = format!("{request}\n");
            write.write_all(line.as_bytes()).await.unwrap();
            BufReader::new(read).lines().next_line().await.unwrap()
        };
        let answer = tokio::select! {
            ended = serving => panic!("ended without an answer: {ended:?}"),
            answer = asked => answer,
        };
        let running = observer.0.running();
        let call = &running["calls"][0];
        assert_eq!(call["method"], "resources/read", "{answer:?}");
        assert_eq!(call["target"], "wayleave://kg/Person");
        assert!(!running.to_string().contains("Ann"), "{running}");
    }

    #[test]
    fn methods_that_callers_make_up_share_one_series() {
        let metrics = CallMetrics::new(None);
        for number in 0..2 * MAX_SERIES {
            metrics.refuse(&activity(&format!("no/such{number}")));
        }
        metrics.refuse(&activity("resources/read"));
        let page = metrics.page();
        assert!(page.contains("mcp_method_name=\"other\""), "{page}");
        assert!(
            page.contains("mcp_method_name=\"resources/read\""),
            "{page}"
        );
        assert!(!page.contains("no/such"), "{page}");
    }
}
