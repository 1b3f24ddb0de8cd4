//! Publishes the status of this server to commands in other processes: suspended streams, and
//! settings that are not in force.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wayleave_project::serving_status::{ServingStatus, StatusFile};

use super::serving::ServingContext;

/// Keeps the status file of this process up to date until `stop`. If it cannot be created, nothing
/// is published, and serving continues.
pub(super) async fn publish_status(serving: Arc<ServingContext>, stop: CancellationToken) {
    let folder = serving.project.folder().to_owned();
    let file = match tokio::task::spawn_blocking(move || StatusFile::create(&folder)).await {
        Ok(Ok(file)) => Arc::new(file),
        Ok(Err(error)) => {
            tracing::debug!(%error, "other commands cannot see the state of this server");
            return;
        }
        Err(_) => return,
    };
    let mut suspensions = serving.suspensions.subscribe();
    let mut settings = serving.settings.changes();
    let mut published = None;
    loop {
        suspensions.mark_unchanged();
        settings.mark_unchanged();
        let status = ServingStatus {
            pid: std::process::id(),
            suspended: serving.suspended(),
            not_in_force: serving.settings.not_in_force(),
            settings_refused: serving.settings.refused(),
        };
        if published.as_ref() != Some(&status) {
            let (file, next) = (Arc::clone(&file), status.clone());
            match tokio::task::spawn_blocking(move || file.write(&next)).await {
                Ok(Ok(())) => published = Some(status),
                Ok(Err(error)) => tracing::debug!(%error, "the status file cannot be written"),
                Err(_) => return,
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            moved = suspensions.changed() => if moved.is_err() { return },
            moved = settings.changed() => if moved.is_err() { return },
        }
    }
}
