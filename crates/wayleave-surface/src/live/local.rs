//! Watches from within the process, as a subscriber with a local package.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::{Receiver, Sender, channel, error::TrySendError};
use tokio::sync::{Notify, oneshot};
use wayleave_mcp::RpcError;
use wayleave_plan::fetch::FetchPlan;
use wayleave_plan::package::Package;
use wayleave_plan::refusal::Refusal;
use wayleave_plan::request::FetchRequest;
use wayleave_plan::view::Tool;

use super::watcher::{Admission, Interest, JoinRequest, RecordChange, Subscriber};
use super::{ChangeFeed, StreamKey, watched_key};

/// Changes detected together. Empty where too much changed to list single records.
pub type SeenChanges = Vec<RecordChange>;

/// Maximum number of lists of changes that wait for a slow receiver.
const MAX_WAITING: usize = 64;

/// Receives changes as they are detected. Dropping it ends the interest.
pub struct LocalWatch {
    changes: Receiver<SeenChanges>,
    is_cut: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    left: Arc<Notify>,
}

impl LocalWatch {
    /// The next changes; `None` once the stream is no longer served.
    pub async fn next(&mut self) -> Option<SeenChanges> {
        // Set while the queue was full, so the flag is seen here after the list that made room.
        if self.is_cut.swap(false, Ordering::AcqRel) {
            return Some(SeenChanges::new());
        }
        self.changes.recv().await
    }
}

impl Drop for LocalWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.left.notify_one();
    }
}

/// Why a stream or record cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is no such stream or record.
    #[error("{}", .0.message)]
    Refused(Box<Refusal>),
    /// It cannot be watched.
    #[error("{}", .0.message)]
    Unwatched(RpcError),
}

struct LocalSubscriber {
    package: Arc<Package>,
    changes: std::sync::Mutex<Option<Sender<SeenChanges>>>,
    /// Whether changes were left out because the receiver is slow.
    is_cut: Arc<AtomicBool>,
}

impl Subscriber for LocalSubscriber {
    fn package(&self) -> Option<Arc<Package>> {
        Some(Arc::clone(&self.package))
    }

    fn changed(&self, changes: &[RecordChange]) {
        let sender = self.changes.lock();
        let sender = sender.unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(sender) = &*sender
            && let Err(TrySendError::Full(_)) = sender.try_send(changes.to_vec())
        {
            self.is_cut.store(true, Ordering::Release);
        }
    }

    fn stream_ended(&self, _: &StreamKey) {
        let sender = self.changes.lock();
        sender
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
    }

    fn stream_refused(&self, key: &StreamKey) {
        self.stream_ended(key);
    }
}

impl ChangeFeed {
    /// Watches a stream, or the record with this id, with a package.
    pub async fn watch_local(
        &self,
        package: Package,
        what: &str,
        connection_id: Option<&str>,
    ) -> Result<LocalWatch, WatchError> {
        let refused = |refusal| WatchError::Refused(Box::new(refusal));
        let view = self.0.service.view(&package);
        let (key, interest) = if what.contains('/') {
            let request = FetchRequest {
                id: what.to_owned(),
                connection_id: connection_id.map(str::to_owned),
                fields: None,
                expand: Vec::new(),
                offset: 0,
            };
            let plan = FetchPlan::new(&view, &request).map_err(refused)?;
            let interest = Interest::Record(watched_key(&plan));
            (stream_key(plan.connection_id(), plan.stream()), interest)
        } else {
            let located = view.locate(Tool::QueryRecords, what, connection_id);
            let (connection, stream) = located.map_err(refused)?;
            let key = stream_key(&connection.connection_id, stream.name());
            (key, Interest::Records)
        };
        let (sender, changes) = channel(MAX_WAITING);
        let is_cut = Arc::new(AtomicBool::new(false));
        let subscriber = Arc::new(LocalSubscriber {
            package: Arc::new(package),
            changes: std::sync::Mutex::new(Some(sender)),
            is_cut: Arc::clone(&is_cut),
        });
        let is_over = Arc::new(AtomicBool::new(false));
        let (answer, answered) = oneshot::channel();
        let left = self.join(
            key,
            JoinRequest {
                subscriber,
                interest,
                is_over: is_over.clone(),
                admission: Admission::Answered(answer),
            },
        );
        let watch = LocalWatch {
            changes,
            is_cut,
            is_over,
            left,
        };
        let answered = answered.await;
        answered
            .unwrap_or_else(|_| Err(super::refusal::not_served()))
            .map_err(WatchError::Unwatched)?;
        Ok(watch)
    }
}

fn stream_key(connection_id: &str, stream: &str) -> StreamKey {
    StreamKey {
        connection_id: connection_id.to_owned(),
        stream: stream.to_owned(),
    }
}
