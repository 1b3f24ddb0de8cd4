//! Subscribers of a watched stream, and how they join its watcher.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::oneshot;
use wayleave_mcp::RpcError;
use wayleave_plan::package::Package;

use super::digests::RecordChangeKind;
use super::{StreamKey, WatchedKey};

/// A change of a record, as one subscriber sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordChange {
    /// The record's id.
    pub id: String,
    /// What happened to it.
    pub kind: RecordChangeKind,
}

/// Subscriber to record changes.
pub(super) trait Subscriber: Send + Sync {
    /// Its current package; `None` while it is not authorized.
    fn package(&self) -> Option<Arc<Package>>;
    /// Receives changes detected together. Empty if its view changed as a whole.
    fn changed(&self, changes: &[RecordChange]);
    /// One of its watched streams is no longer served.
    fn stream_ended(&self, key: &StreamKey);
    /// A stream that it would have watched as well cannot be watched.
    fn stream_refused(&self, key: &StreamKey);
}

/// The watched part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interest {
    /// All records.
    Records,
    /// One record.
    Record(WatchedKey),
}

/// A request to join the watcher of a stream.
pub(super) struct JoinRequest {
    pub(super) subscriber: Arc<dyn Subscriber>,
    pub(super) interest: Interest,
    /// Whether the interest has ended.
    pub(super) is_over: Arc<AtomicBool>,
    pub(super) admission: Admission,
}

/// How a joining subscriber learns that later changes will be reported.
pub(super) enum Admission {
    /// It is answered, and refused if the stream cannot be read now.
    Answered(oneshot::Sender<Result<(), RpcError>>),
    /// It is notified of the whole stream once that can be read, however long that takes.
    Notified,
}

/// A subscriber that has joined.
pub(super) struct Member {
    pub(super) subscriber: Arc<dyn Subscriber>,
    pub(super) interest: Interest,
    pub(super) is_over: Arc<AtomicBool>,
    /// The package and the revision of the datasets for which its group was chosen.
    pub(super) seen: Option<(Arc<Package>, u64)>,
    pub(super) group: Option<u64>,
    /// `None` once it is admitted.
    pub(super) admission: Option<Admission>,
}

impl Member {
    pub(super) fn is_joining(&self) -> bool {
        self.admission.is_some()
    }

    /// Whether it is refused if the stream cannot be read now.
    pub(super) fn awaits_answer(&self) -> bool {
        matches!(self.admission, Some(Admission::Answered(_)))
    }
}
