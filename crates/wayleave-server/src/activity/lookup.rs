//! Finds activities for the callers that made them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use wayleave_activity::{Activity, ActivityFilter, ActivityId, ActivityReader, ReadError};
use wayleave_mcp::{RpcError, Subscription, SubscriptionGuard, SubscriptionHost};
use wayleave_surface::{
    live::ChangeFeed,
    resources::prov::{self, ActivityLookup, Lookup, LookupError},
};

/// Maximum number of callers whose latest activity is cached.
const MAX_CALLERS: usize = 4096;

/// The latest activity of each caller, and the log for everything else.
pub struct RecentActivities {
    reader: ActivityReader,
    latest: Mutex<HashMap<String, Activity>>,
    /// Subscriptions to the latest activity, each with its caller's subject.
    subscriptions: Arc<Mutex<SubscriptionTable>>,
}

#[derive(Default)]
struct SubscriptionTable {
    last_number: u64,
    by_number: HashMap<u64, (String, Subscription)>,
}

/// Removes a subscription from the table on drop.
struct LatestGuard {
    table: Arc<Mutex<SubscriptionTable>>,
    number: u64,
}

impl Drop for LatestGuard {
    fn drop(&mut self) {
        lock(&self.table).by_number.remove(&self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hosts subscriptions to a caller's latest activity, and passes all others on to the change feed.
pub(crate) struct ActivitySubscriptions {
    pub(crate) recent: Arc<RecentActivities>,
    pub(crate) feed: ChangeFeed,
}

impl SubscriptionHost for ActivitySubscriptions {
    fn begin(
        &self,
        subscription: Subscription,
    ) -> BoxFuture<'static, Result<SubscriptionGuard, RpcError>> {
        if subscription.uri() != prov::LATEST {
            return self.feed.begin(subscription);
        }
        let guard = self.recent.watch(subscription);
        Box::pin(std::future::ready(Ok(guard)))
    }
}

impl RecentActivities {
    /// An empty cache; earlier activities are in the log that `reader` reads.
    pub fn new(reader: ActivityReader) -> Self {
        Self {
            reader,
            latest: Mutex::default(),
            subscriptions: Arc::default(),
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Activity>> {
        lock(&self.latest)
    }

    /// Notifies a subscriber of each later activity of its own.
    fn watch(&self, subscription: Subscription) -> SubscriptionGuard {
        let subject = subscription.caller().subject().to_owned();
        let mut table = lock(&self.subscriptions);
        table.last_number += 1;
        let number = table.last_number;
        table.by_number.insert(number, (subject, subscription));
        Box::new(LatestGuard {
            table: Arc::clone(&self.subscriptions),
            number,
        })
    }

    /// Stores an activity as its caller's latest. Reads of activities do not count.
    pub(super) fn note(&self, activity: Activity) {
        if activity.agent.token.is_empty() || is_lookup(&activity) {
            return;
        }
        let token = activity.agent.token.clone();
        let mut latest = self.locked();
        if latest.len() >= MAX_CALLERS && !latest.contains_key(&token) {
            latest.clear();
        }
        let replaced = latest.insert(token.clone(), activity);
        drop(latest);
        // Freed outside the lock.
        drop(replaced);
        for (subject, subscription) in lock(&self.subscriptions).by_number.values() {
            if *subject == token {
                subscription.updated();
            }
        }
    }
}

fn is_lookup(activity: &Activity) -> bool {
    let target = activity.target.as_deref().unwrap_or_default();
    target.starts_with("wayleave://prov/")
}

impl ActivityLookup for RecentActivities {
    fn latest<'a>(&'a self, subject: &'a str) -> BoxFuture<'a, Lookup> {
        Box::pin(async move {
            if let Some(found) = self.locked().get(subject).cloned() {
                return Ok(Some(found));
            }
            let filter = ActivityFilter {
                token: Some(subject.to_owned()),
                ..ActivityFilter::default()
            };
            let found = self.read(move |reader| reader.latest(&filter, 16)).await?;
            Ok(found.into_iter().find(|activity| !is_lookup(activity)))
        })
    }

    fn find<'a>(&'a self, subject: &'a str, id: ActivityId) -> BoxFuture<'a, Lookup> {
        Box::pin(async move {
            let known = self.locked().get(subject).cloned();
            if let Some(known) = known.filter(|known| known.id == id) {
                return Ok(Some(known));
            }
            let found = self.read(move |reader| reader.find(id)).await?;
            Ok(found.filter(|found| found.agent.token == subject))
        })
    }
}

impl RecentActivities {
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ActivityReader) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, LookupError> {
        let reader = self.reader.clone();
        let read = tokio::task::spawn_blocking(move || read(&reader)).await;
        let read = read.map_err(|_| LookupError::Interrupted)?;
        read.map_err(|cause| LookupError::Log { cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_unreadable_log_is_an_error_and_a_missing_activity_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let id: ActivityId = "00000000-0000-7000-8000-000000000000".parse().unwrap();
        let recent = RecentActivities::new(ActivityReader::new(folder.path()));
        assert!(recent.find("desk", id).await.unwrap().is_none());
        assert!(recent.latest("desk").await.unwrap().is_none());

        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let recent = RecentActivities::new(ActivityReader::new(&file));
        for error in [
            recent.find("desk", id).await.unwrap_err(),
            recent.latest("desk").await.unwrap_err(),
        ] {
            assert!(matches!(error, LookupError::Log { .. }), "{error}");
            let told = RpcError::from(error);
            assert_eq!(told.code, RpcError::INTERNAL);
            assert!(!format!("{told:?}").contains("file"));
        }
    }
}
