//! Watches from within the process, as a subscriber with a local package.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::{Receiver, Sender, channel, error::TrySendError};
use tokio::sync::{Notify, oneshot};
use wayleave_mcp::RpcError;
use wayleave_plan::fetch::FetchPlan;
use wayleave_plan::package::Package;
use wayleave_plan::read_tool::ReadTool;
use wayleave_plan::refusal::Refusal;
use wayleave_plan::request::FetchRequest;

use super::member::{Admission, Interest, JoinRequest, RecordChange, Subscriber};
use super::{ChangeFeed, StreamKey, watched_key};

/// Changes detected together. Empty where too much changed to list single records, or where changes
/// were left out because their receiver is slow.
pub type RecordChanges = Vec<RecordChange>;

/// Maximum number of lists of changes that wait for a slow receiver.
const MAX_WAITING_LISTS: usize = 64;

/// Receives changes as they are detected. Dropping it ends the interest.
pub struct LocalWatch {
    changes: Receiver<RecordChanges>,
    cut: Arc<Notify>,
    is_over: Arc<AtomicBool>,
    left: Arc<Notify>,
}

impl LocalWatch {
    /// The next changes; `None` once the stream is no longer served.
    pub async fn next(&mut self) -> Option<RecordChanges> {
        tokio::select! {
            biased;
            changes = self.changes.recv() => changes,
            () = self.cut.notified() => Some(RecordChanges::new()),
        }
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
    changes: std::sync::Mutex<Option<Sender<RecordChanges>>>,
    /// Notified when changes are left out because the receiver is slow.
    cut: Arc<Notify>,
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
            self.cut.notify_one();
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
            let located = view.locate(ReadTool::QueryRecords, what, connection_id);
            let (connection, stream) = located.map_err(refused)?;
            let key = stream_key(&connection.connection_id, stream.name());
            (key, Interest::Records)
        };
        let (sender, changes) = channel(MAX_WAITING_LISTS);
        let cut = Arc::new(Notify::new());
        let subscriber = Arc::new(LocalSubscriber {
            package: Arc::new(package),
            changes: std::sync::Mutex::new(Some(sender)),
            cut: Arc::clone(&cut),
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
            cut,
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use futures::FutureExt as _;

    use super::super::digests::RecordChangeKind;
    use super::*;

    #[tokio::test]
    async fn a_slow_receiver_learns_after_the_last_list_that_changes_were_left_out() {
        let (sender, changes) = channel(MAX_WAITING_LISTS);
        let cut = Arc::new(Notify::new());
        let subscriber = LocalSubscriber {
            package: Arc::new(Package::local()),
            changes: std::sync::Mutex::new(Some(sender)),
            cut: Arc::clone(&cut),
        };
        let mut watch = LocalWatch {
            changes,
            cut,
            is_over: Arc::default(),
            left: Arc::default(),
        };
        for number in 0..MAX_WAITING_LISTS + 9 {
            subscriber.changed(&[RecordChange {
                id: number.to_string(),
                kind: RecordChangeKind::Updated,
            }]);
        }
        for number in 0..MAX_WAITING_LISTS {
            let list = watch.next().now_or_never().unwrap().unwrap();
            assert_eq!(list.len(), 1);
            assert_eq!(list.first().unwrap().id, number.to_string());
        }
        let cut = watch.next().now_or_never();
        assert_eq!(cut, Some(Some(RecordChanges::new())));
        assert_eq!(watch.next().now_or_never(), None);
        // A receiver that waits is woken.
        let (cut, ()) = futures::join!(watch.next(), async { subscriber.cut.notify_one() });
        assert_eq!(cut, Some(RecordChanges::new()));
    }
}
