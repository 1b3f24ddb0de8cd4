//! The record of calls: every request except pings becomes an activity in the log before it is
//! answered.

mod lookup;
mod observer;
mod refusal_limit;
mod replay;

use std::{collections::BTreeSet, sync::Arc};

use tokio::runtime::Handle;
use wayleave_activity::{ActivityLog, LogOptions, SegmentSeal};
use wayleave_project::{Project, activity_log};

pub(crate) use lookup::ActivitySubscriptions;
pub use lookup::RecentActivities;
pub use observer::ActivityObserver;
pub(crate) use observer::{open_text, target};
pub use replay::{ReplayError, ReplayReport};

/// The log of a project's calls, configured by the settings. The first call opens it.
pub(crate) fn log(project: &Project) -> ActivityLog {
    let settings = project.settings().audit;
    let (runtime, of) = (Handle::current(), project.clone());
    let on_seal = move |seal: SegmentSeal| {
        let project = of.clone();
        runtime.spawn(async move { record_seal(&project, &seal).await });
    };
    ActivityLog::new(LogOptions {
        sync: settings.sync,
        keep: settings.keep,
        on_seal: Some(Arc::new(on_seal)),
        ..LogOptions::new(activity_log::log_folder(project))
    })
}

async fn record_seal(project: &Project, seal: &SegmentSeal) {
    if let Err(error) = activity_log::record_seal(project, seal).await {
        tracing::warn!(%error, "the end of an activity segment is not in the ledger yet");
    }
}

/// Opens the log before the first call, logs what the operator should know about it, and records in
/// the ledger the seals that an earlier server could not record.
pub(crate) async fn prepare(project: &Project, log: &ActivityLog) {
    if !project.settings().audit.required {
        tracing::warn!("`audit.required` is false: calls are served even if they are not recorded");
    }
    let opening = log.clone();
    let opened = tokio::task::spawn_blocking(move || opening.open()).await;
    if let Ok(Err(error)) = opened {
        tracing::error!(%error, hint = error.hint(), "calls cannot be recorded yet");
        return;
    }
    let reader = activity_log::reader(project);
    let closed = tokio::task::spawn_blocking(move || reader.seals()).await;
    let recorded = activity_log::recorded_seals(project).await;
    if let (Ok(Ok(closed)), Ok(recorded)) = (closed, recorded) {
        let known: BTreeSet<([u8; 16], u64)> = recorded
            .iter()
            .map(|seal| (seal.writer, seal.segment))
            .collect();
        for seal in closed {
            if !known.contains(&(seal.writer, seal.segment)) {
                record_seal(project, &seal).await;
            }
        }
    }
}
