//! How often live mappings are compared with their sources.

use std::time::Duration;

use super::raw;

/// How often live mappings are compared with their sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriftSettings {
    /// The interval; `None` if they are compared only at start, after a failed read, and while a
    /// stream is suspended.
    pub every: Option<Duration>,
}

impl Default for DriftSettings {
    fn default() -> Self {
        Self {
            every: Some(Duration::from_mins(5)),
        }
    }
}

impl DriftSettings {
    pub(super) fn resolve(raw: &raw::Drift) -> Self {
        match raw.every_seconds {
            None => Self::default(),
            Some(0) => Self { every: None },
            Some(given) => Self {
                every: Some(Duration::from_secs(given)),
            },
        }
    }
}
