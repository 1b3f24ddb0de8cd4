//! An observer that records everything.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Map, Value, json};
use tokio::{sync::Notify, time::timeout};
use wayleave_mcp::{
    CallEnd, CallObserver, ObservedCall, Outcome, Recording as Recorded, RefusalReason,
    RequestFacts, RpcError,
};

use crate::support::LOST;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RecordedOutcome {
    Begun,
    Completed,
    ToolError,
    Failed(i32),
    Cancelled,
    Abandoned,
    Refused(RefusalReason),
}

pub(crate) struct Entry {
    pub(crate) facts: RequestFacts,
    pub(crate) fate: RecordedOutcome,
}

/// Records every call, and adds the record's index to the `_meta` of every result.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) entries: Arc<Mutex<Vec<Entry>>>,
    changed: Arc<Notify>,
    /// Whether recording fails from now on.
    pub(crate) is_failing: Arc<AtomicBool>,
}

pub(crate) struct Recording {
    entries: Arc<Mutex<Vec<Entry>>>,
    at: usize,
    ended: bool,
    is_failing: Arc<AtomicBool>,
}

/// The outcome of recording: ready only at the second poll, as with a disk.
fn recorded(is_failing: &AtomicBool) -> Recorded {
    let is_failing = is_failing.load(Ordering::SeqCst);
    Recorded::Pending(Box::pin(async move {
        tokio::task::yield_now().await;
        if is_failing {
            return Err(RpcError::unrecorded());
        }
        Ok(())
    }))
}

impl CallObserver for Recorder {
    fn begin(&self, request: RequestFacts) -> Result<Box<dyn ObservedCall>, RpcError> {
        let at = self.add(request, RecordedOutcome::Begun);
        let entries = Arc::clone(&self.entries);
        Ok(Box::new(Recording {
            entries,
            at,
            ended: false,
            is_failing: Arc::clone(&self.is_failing),
        }))
    }

    fn refused(
        &self,
        request: RequestFacts,
        reason: RefusalReason,
        meta: &mut Map<String, Value>,
    ) -> Recorded {
        let at = self.add(request, RecordedOutcome::Refused(reason));
        meta.insert("test/activity".to_owned(), json!(at));
        recorded(&self.is_failing)
    }
}

impl ObservedCall for Recording {
    fn end(mut self: Box<Self>, end: CallEnd<'_>, meta: &mut Map<String, Value>) -> Recorded {
        self.ended = true;
        self.entries.lock().unwrap()[self.at].fate = match end.outcome {
            Outcome::Completed => RecordedOutcome::Completed,
            Outcome::ToolError => RecordedOutcome::ToolError,
            Outcome::Cancelled => RecordedOutcome::Cancelled,
            Outcome::Failed { code, .. } => RecordedOutcome::Failed(code),
        };
        meta.insert("test/activity".to_owned(), json!(self.at));
        recorded(&self.is_failing)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.ended {
            self.entries.lock().unwrap()[self.at].fate = RecordedOutcome::Abandoned;
        }
    }
}

impl Recorder {
    fn add(&self, facts: RequestFacts, fate: RecordedOutcome) -> usize {
        let mut entries = self.entries.lock().unwrap();
        entries.push(Entry { facts, fate });
        self.changed.notify_one();
        entries.len() - 1
    }

    pub(crate) fn count(&self) -> usize {
        self.entries.lock().unwrap().len()
    }

    /// Waits until `count` messages have been recorded.
    pub(crate) async fn saw(&self, count: usize, case: &str) {
        let all = async {
            while self.count() < count {
                self.changed.notified().await;
            }
        };
        let seen = timeout(LOST, all).await;
        assert!(seen.is_ok(), "{case}: {} of {count} seen", self.count());
    }
}

/// The outcome of each recorded message.
pub(crate) fn fates(recorder: &Recorder) -> Vec<RecordedOutcome> {
    let entries = recorder.entries.lock().unwrap();
    entries.iter().map(|entry| entry.fate.clone()).collect()
}
