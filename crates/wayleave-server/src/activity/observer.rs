//! Turns the protocol layer's observations into activities.

use std::{
    any::Any,
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use wayleave_activity::{
    Activity, ActivityId, ActivityLog, Agent, ArgumentKeys, ArgumentRecord, CallCollector,
    CallOutcome, CallTransport, CollectedCall, LogError, TraceParent, argument_shape, public_text,
};
use wayleave_mcp::{
    CallEnd, CallObserver, Carrier, Era, ObservedCall, Outcome, Recording, RefusalReason,
    RequestFacts, RpcError,
};
use wayleave_model::sensitive::looks_like_dsn;
use wayleave_surface::access::SCOPE_DENIED;

use super::{lookup::RecentActivities, refusal_limit::RefusalLimit};
use crate::telemetry::CallMetrics;

/// The member of a result's `_meta` that names its activity.
const META_KEY: &str = "io.wayleave/activity";
/// Maximum time a reply waits for its record.
const RECORD_TIMEOUT: Duration = Duration::from_secs(1);
/// The same, if records are synced.
const SYNC_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest sealed arguments. Longer ones are recorded only by digest and shape.
const MAX_SEALED_BYTES: usize = 16 * 1024;

/// Codes of the errors that deny a call to its caller.
const DENIALS: [i32; 2] = [RpcError::UNAUTHENTICATED, SCOPE_DENIED];

/// Records every call.
pub struct ActivityObserver(Arc<Recorder>);

struct Recorder {
    log: ActivityLog,
    keys: ArgumentKeys,
    is_required: bool,
    timeout: Duration,
    recent: Arc<RecentActivities>,
    refusals: RefusalLimit,
    metrics: Arc<CallMetrics>,
    /// Number of running calls.
    running: AtomicUsize,
}

impl ActivityObserver {
    /// An observer that records into `log`.
    pub fn new(
        log: ActivityLog,
        keys: ArgumentKeys,
        settings: wayleave_project::settings::AuditSettings,
        recent: Arc<RecentActivities>,
        metrics: Arc<CallMetrics>,
    ) -> Self {
        Self(Arc::new(Recorder {
            log,
            keys,
            is_required: settings.required,
            timeout: if settings.sync {
                SYNC_TIMEOUT
            } else {
                RECORD_TIMEOUT
            },
            recent,
            refusals: RefusalLimit::default(),
            metrics,
            running: AtomicUsize::new(0),
        }))
    }
}

impl CallObserver for ActivityObserver {
    fn begin(&self, request: RequestFacts) -> Result<Box<dyn ObservedCall>, RpcError> {
        if !is_recorded(&request) {
            return Ok(Box::new(UnrecordedCall));
        }
        let recorder = &self.0;
        if recorder.is_required && recorder.log.check().is_err() {
            return Err(RpcError::unrecorded());
        }
        let id = ActivityId::now();
        recorder.metrics.begin(id, &request);
        recorder.running.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(RunningActivity {
            collector: Arc::new(CallCollector::new(id, recorder.metrics.is_timed())),
            recorder: Arc::clone(recorder),
            began: Instant::now(),
            facts: Some(request),
        }))
    }

    fn refused(
        &self,
        request: RequestFacts,
        reason: RefusalReason,
        meta: &mut Map<String, Value>,
    ) -> Recording {
        if request.is_notification {
            return Recording::Done;
        }
        let Some(suppressed) = self.0.refusals.admit() else {
            return Recording::Done;
        };
        let outcome = CallOutcome::Refused {
            reason: reason_word(reason).to_owned(),
        };
        let (id, arrived) = (ActivityId::now(), request.arrived);
        name(id, meta);
        let mut activity = self
            .0
            .activity(id, &request, CollectedCall::default(), arrived);
        activity.outcome = outcome;
        activity.suppressed = suppressed;
        self.0.metrics.refuse(&activity);
        self.0.record(activity)
    }
}

/// Whether a call is recorded. Pings and notifications read nothing, and have no result that could
/// name an activity.
fn is_recorded(request: &RequestFacts) -> bool {
    !request.is_notification && request.method.as_deref() != Some("ping")
}

fn reason_word(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::Authorization => "authorization",
        RefusalReason::Budget => "budget",
        RefusalReason::Malformed => "malformed",
        RefusalReason::Unavailable => "unavailable",
        _ => "protocol",
    }
}

/// Names an activity in the reply to its call.
fn name(id: ActivityId, meta: &mut Map<String, Value>) {
    meta.insert(META_KEY.to_owned(), Value::String(id.urn()));
}

struct UnrecordedCall;

impl ObservedCall for UnrecordedCall {
    fn end(self: Box<Self>, _: CallEnd<'_>, _: &mut Map<String, Value>) -> Recording {
        Recording::Done
    }
}

/// A running call, recorded however it ends.
struct RunningActivity {
    recorder: Arc<Recorder>,
    collector: Arc<CallCollector>,
    began: Instant,
    /// `None` once it is recorded.
    facts: Option<RequestFacts>,
}

impl RunningActivity {
    /// Builds the activity; `None` if it was built before.
    fn finish(&mut self, outcome: CallOutcome, bytes: usize) -> Option<Activity> {
        let facts = self.facts.take()?;
        self.recorder.running.fetch_sub(1, Ordering::Relaxed);
        let collected = self.collector.take();
        let spans = collected.spans.clone();
        let outcome = match (outcome, &collected.error_code) {
            (CallOutcome::ToolError { .. }, code) => CallOutcome::ToolError { code: code.clone() },
            (outcome, _) => outcome,
        };
        let recorder = &self.recorder;
        let mut activity = recorder.activity(self.collector.id(), &facts, collected, self.began);
        activity.outcome = outcome;
        activity.bytes = bytes as u64;
        recorder
            .metrics
            .end(&activity, facts.arrived, self.began, &spans);
        Some(activity)
    }
}

impl ObservedCall for RunningActivity {
    fn attachment(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::clone(&self.collector) as Arc<dyn Any + Send + Sync>)
    }

    fn span(&self) -> tracing::Span {
        tracing::warn_span!("call", activity = %self.collector.id())
    }

    fn end(mut self: Box<Self>, end: CallEnd<'_>, meta: &mut Map<String, Value>) -> Recording {
        name(self.collector.id(), meta);
        let outcome = match end.outcome {
            Outcome::Completed => CallOutcome::Completed,
            Outcome::ToolError => CallOutcome::ToolError { code: None },
            Outcome::Cancelled => CallOutcome::Cancelled,
            // The layer that denies a call depends on the transport; the outcome must not.
            Outcome::Failed { code, .. } if DENIALS.contains(&code) => CallOutcome::Refused {
                reason: reason_word(RefusalReason::Authorization).to_owned(),
            },
            Outcome::Failed { code, .. } => CallOutcome::Failed { code },
        };
        match self.finish(outcome, end.bytes) {
            Some(activity) => self.recorder.record(activity),
            None => Recording::Done,
        }
    }
}

impl Drop for RunningActivity {
    fn drop(&mut self) {
        if let Some(activity) = self.finish(CallOutcome::Abandoned, 0) {
            // Nobody waits for the answer any more, so nobody needs to wait for the record.
            drop(self.recorder.log.append(&activity));
            self.recorder.recent.note(activity);
        }
    }
}

impl Recorder {
    fn activity(
        &self,
        id: ActivityId,
        facts: &RequestFacts,
        collected: CollectedCall,
        began: Instant,
    ) -> Activity {
        let client = facts.client.as_ref();
        let named = |text: &String| Some(open_text(text)).filter(|text| !text.is_empty());
        let trace = facts.traceparent.as_deref().and_then(TraceParent::parse);
        Activity {
            id,
            micros: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
            transport: CallTransport {
                http: facts.carrier == Carrier::Http,
                session: facts.era == Some(Era::Session),
            },
            method: open_text(facts.method.as_deref().unwrap_or_default()),
            target: target(facts),
            agent: Agent {
                token: facts
                    .caller
                    .as_ref()
                    .map_or("", |it| it.subject())
                    .to_owned(),
                client: client.and_then(|(name, _)| named(name)),
                version: client.and_then(|(_, version)| named(version)),
            },
            grants: collected.grants,
            streams: collected.streams,
            arguments: self.arguments(id, facts),
            used: collected.used,
            generated: collected.generated,
            rows: collected.rows,
            bytes: 0,
            answer: collected.answer.map(|sum| self.keys.digest(&sum)),
            outcome: CallOutcome::Completed,
            trace,
            suppressed: 0,
        }
    }

    fn arguments(&self, id: ActivityId, facts: &RequestFacts) -> ArgumentRecord {
        let arguments = match (&facts.arguments, &facts.uri) {
            (Some(arguments), _) => Cow::Borrowed(&**arguments),
            (None, Some(uri)) => Cow::Owned(json!({ "uri": uri }).to_string()),
            (None, None) => return ArgumentRecord::default(),
        };
        let sealed = (arguments.len() <= MAX_SEALED_BYTES)
            .then(|| self.keys.seal(id, arguments.as_bytes()))
            .flatten();
        ArgumentRecord {
            digest: self.keys.digest(arguments.as_bytes()),
            shape: argument_shape(&arguments),
            sealed,
        }
    }

    /// Records an activity. A call that cannot be recorded is not served, unless the settings allow
    /// it.
    fn record(&self, activity: Activity) -> Recording {
        let pending = self.log.append(&activity);
        let (timeout, is_required) = (self.timeout, self.is_required);
        let recent = Arc::clone(&self.recent);
        let is_alone = self.running.load(Ordering::Relaxed) == 0;
        Recording::Pending(Box::pin(async move {
            if !is_alone {
                // Let other ready calls queue their records first, so that one write takes them all.
                tokio::task::yield_now().await;
            }
            match pending.wait(timeout).await {
                Ok(()) => recent.note(activity),
                Err(error) if is_required => {
                    if let LogError::Slow { .. } = &*error {
                        tracing::error!(%error, hint = error.hint(), "a call was not served");
                    }
                    return Err(RpcError::unrecorded());
                }
                Err(error) => tracing::warn!(%error, "a call was served without a record"),
            }
            Ok(())
        }))
    }
}

/// The tool, prompt or resource; a resource without its query, which contains values.
pub(crate) fn target(facts: &RequestFacts) -> Option<String> {
    let uri = facts
        .uri
        .as_deref()
        .map(|uri| uri.split_once('?').map_or(uri, |(whole, _)| whole));
    facts.name.as_deref().or(uri).map(open_text)
}

/// A caller's own text as recorded in the open: redacted if it is a credential, encoded or not.
pub(crate) fn open_text(text: &str) -> String {
    let plain = text.strip_prefix("wayleave://").unwrap_or(text);
    let may_be_secret = plain.contains([':', '@', '=', '%']);
    if may_be_secret && is_credential(plain) {
        return "[redacted]".to_owned();
    }
    public_text(text)
}

fn is_credential(text: &str) -> bool {
    let mut text = Cow::Borrowed(text);
    // A text that is encoded twice is still readable.
    for _ in 0..3 {
        if looks_like_dsn(&text) {
            return true;
        }
        text = Cow::Owned(percent_decode_str(&text).decode_utf8_lossy().into_owned());
    }
    false
}

#[cfg(test)]
mod tests {
    use super::open_text;

    #[test]
    fn no_text_of_a_caller_is_recorded_with_a_credential_in_it() {
        for text in [
            "postgres://ana:hunter2@db/crm",
            "wayleave://x/postgres://ana:hunter2@db/crm",
            "wayleave://x/postgres%3A%2F%2Fana%3Ahunter2%40db%2Fcrm",
            "wayleave://x/ana%253Ahunter2%2540db.internal",
            "wayleave://crm/people/ana:hunter2@db.internal",
            "wayleave://crm/people/password%3Dhunter2",
            "ana:hunter2@db.internal",
        ] {
            assert_eq!(open_text(text), "[redacted]", "{text}");
        }
        for text in [
            "query_records",
            "resources/read",
            "wayleave://crm/people/17",
            "wayleave://crm/people/joe@example.org",
            "wayleave://crm/people/mailto%3Ajoe@example.org",
            "wayleave://crm/people/urn%3Aisbn%3A0451450523",
        ] {
            assert_eq!(open_text(text), text);
        }
    }
}
