//! The settings in force: one immutable snapshot, replaced as a whole while serving.
//!
//! The file is read again when it changes, or on the operator's request. A file with an error
//! changes nothing, and the log says where and how to fix it. Settings that need a restart keep
//! their value from the start, and are reported. A call takes the snapshot once, when it is
//! admitted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use wayleave_project::serving_status::PendingSetting;
use wayleave_project::settings::{FILE, SettingChange, Settings, TakesEffect};

/// Interval between two reads of the file.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a changed file must stay the same before it is applied.
const SETTLE_INTERVAL: Duration = Duration::from_millis(25);

/// The settings in force, shared by all parts of a deployment.
pub struct ActiveSettings {
    now: ArcSwap<Settings>,
    /// Incremented when a new snapshot is in force, or the file was refused.
    changes: watch::Sender<u64>,
    file: Mutex<FileState>,
    path: Option<PathBuf>,
    asked: Notify,
}

/// The last known state of the file.
#[derive(Debug, Default)]
struct FileState {
    /// Its text when it was last read; `None` if it could not be read.
    text: Option<String>,
    not_in_force: Vec<SettingChange>,
    refused: Option<String>,
}

impl std::fmt::Debug for ActiveSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActiveSettings").finish_non_exhaustive()
    }
}

impl ActiveSettings {
    /// The settings at start, which follow the file at `path`.
    pub fn new(settings: Settings, path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).ok();
        // A file that was edited since the settings were read counts as changed.
        let text = text.filter(|it| Settings::parse(it).is_ok_and(|it| it == settings));
        Self {
            path: Some(path),
            file: Mutex::new(FileState {
                text,
                ..FileState::default()
            }),
            ..Self::fixed(settings)
        }
    }

    /// Settings that no file changes.
    pub fn fixed(settings: Settings) -> Self {
        Self {
            now: ArcSwap::from_pointee(settings),
            changes: watch::Sender::new(0),
            file: Mutex::default(),
            path: None,
            asked: Notify::new(),
        }
    }

    /// The settings in force.
    pub fn now(&self) -> Arc<Settings> {
        self.now.load_full()
    }

    /// Notifies when new settings are in force, or the file was refused.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Requests another read of the file, even if it looks unchanged.
    pub fn reload(&self) {
        self.asked.notify_one();
    }

    /// The changed settings that take effect on restart.
    pub fn not_in_force(&self) -> Vec<PendingSetting> {
        let state = self.state();
        let pending = state.not_in_force.iter().map(|it| PendingSetting {
            name: it.name.to_owned(),
            in_force: it.old.clone(),
            written: it.new.clone(),
        });
        pending.collect()
    }

    /// Why the file is refused, if it is.
    pub fn refused(&self) -> Option<String> {
        self.state().refused.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, FileState> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the file until `stop`.
    pub(crate) async fn follow(self: Arc<Self>, stop: CancellationToken) {
        let Some(path) = self.path.clone() else {
            return;
        };
        loop {
            let asked = tokio::select! {
                () = stop.cancelled() => return,
                () = self.asked.notified() => true,
                () = tokio::time::sleep(POLL_INTERVAL) => false,
            };
            match self.settled_text(&path).await {
                Ok(text) => self.read(&text, asked),
                Err(error) => self.unreadable(&error),
            }
        }
    }

    /// Reads the file's text, and a changed text until two reads agree: a program may be writing
    /// it. Reads instead of comparing stamps: the file is small, and two edits within a clock tick
    /// may have the same stamp.
    async fn settled_text(&self, path: &Path) -> io::Result<String> {
        let mut text = tokio::fs::read_to_string(path).await?;
        while self.state().text.as_deref() != Some(&*text) {
            tokio::time::sleep(SETTLE_INTERVAL).await;
            let again = tokio::fs::read_to_string(path).await?;
            if again == text {
                break;
            }
            text = again;
        }
        Ok(text)
    }

    /// Applies a text of the file, all of it or nothing.
    fn read(&self, text: &str, asked: bool) {
        {
            let mut state = self.state();
            if !asked && state.text.as_deref() == Some(text) {
                return;
            }
            state.text = Some(text.to_owned());
        }
        let running = self.now();
        let written = match Settings::parse(text) {
            Ok(written) => written,
            Err(error) => {
                let hint = error.hint();
                self.refuse(error.to_string(), hint.as_deref());
                return;
            }
        };
        let next = running.with_immediate_changes_of(&written);
        let taken = running.changes(&next);
        let left = next.changes(&written);
        for it in &taken {
            tracing::warn!(
                setting = it.name,
                old = it.old,
                new = it.new,
                "a setting is changed"
            );
        }
        let (was_refused, known) = {
            let mut state = self.state();
            let known = std::mem::replace(&mut state.not_in_force, left.clone());
            (state.refused.take().is_some(), known)
        };
        for it in left.iter().filter(|it| !known.contains(it)) {
            debug_assert_eq!(it.effect, TakesEffect::OnRestart);
            tracing::warn!(
                setting = it.name,
                in_force = it.old,
                written = it.new,
                "a setting is changed but not in force: restart the server to apply it"
            );
        }
        if was_refused {
            tracing::warn!("`{FILE}` was reloaded and is valid again");
        }
        if !taken.is_empty() {
            self.now.store(Arc::new(next));
        }
        if !taken.is_empty() || was_refused || left != known {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    fn unreadable(&self, error: &io::Error) {
        // Reported once. The text is unknown from then on, so that the next text counts as changed.
        let was_known = self.state().text.take().is_some();
        if was_known {
            let message = format!("`{FILE}` cannot be read: {error}");
            self.refuse(message, Some("check that it is there, and who owns it"));
        }
    }

    fn refuse(&self, message: String, hint: Option<&str>) {
        tracing::error!(
            error = message,
            hint,
            "the changed settings are refused; all earlier settings stay in force"
        );
        self.state().refused = Some(message);
        self.changes.send_modify(|count| *count += 1);
    }
}
