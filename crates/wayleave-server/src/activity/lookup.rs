//! Finds activities for the callers that made them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use wayleave_activity::{Activity, ActivityFilter, ActivityId, ActivityReader};
use wayleave_surface::resources::prov::ActivityLookup;

/// Callers whose latest activity is remembered.
const MAX_CALLERS: usize = 4096;

/// The latest activity of each caller, and the log for everything else.
pub struct RecentActivities {
    reader: ActivityReader,
    latest: Mutex<HashMap<String, Activity>>,
}

impl RecentActivities {
    /// Nothing yet; earlier activities are in the log that `reader` reads.
    pub fn new(reader: ActivityReader) -> Self {
        Self {
            reader,
            latest: Mutex::default(),
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Activity>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers an activity as its caller's latest. Looking at activities is none.
    pub(super) fn note(&self, activity: &Activity) {
        if activity.agent.token.is_empty() || is_lookup(activity) {
            return;
        }
        let mut latest = self.locked();
        if latest.len() >= MAX_CALLERS && !latest.contains_key(&activity.agent.token) {
            latest.clear();
        }
        latest.insert(activity.agent.token.clone(), activity.clone());
    }
}

fn is_lookup(activity: &Activity) -> bool {
    let target = activity.target.as_deref().unwrap_or_default();
    target.starts_with("wayleave://prov/")
}

impl ActivityLookup for RecentActivities {
    fn latest<'a>(&'a self, subject: &'a str) -> BoxFuture<'a, Option<Activity>> {
        Box::pin(async move {
            if let Some(found) = self.locked().get(subject).cloned() {
                return Some(found);
            }
            let filter = ActivityFilter {
                token: Some(subject.to_owned()),
                ..ActivityFilter::default()
            };
            let found = self.read(move |reader| reader.latest(&filter, 16)).await?;
            found.into_iter().find(|activity| !is_lookup(activity))
        })
    }

    fn find<'a>(&'a self, subject: &'a str, id: ActivityId) -> BoxFuture<'a, Option<Activity>> {
        Box::pin(async move {
            let known = self.locked().get(subject).cloned();
            if let Some(known) = known.filter(|known| known.id == id) {
                return Some(known);
            }
            let found = self.read(move |reader| reader.find(id)).await??;
            (found.agent.token == subject).then_some(found)
        })
    }
}

impl RecentActivities {
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ActivityReader) -> Result<T, wayleave_activity::ReadError> + Send + 'static,
    ) -> Option<T> {
        let reader = self.reader.clone();
        let read = tokio::task::spawn_blocking(move || read(&reader))
            .await
            .ok()?;
        match read {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::error!(%error, "the activity log cannot be read");
                None
            }
        }
    }
}
