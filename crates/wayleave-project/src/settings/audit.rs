//! How calls are recorded, and the address that serves their measurements.

use std::net::SocketAddr;
use std::time::Duration;

use super::{SettingsError, raw};

const DAY: Duration = Duration::from_hours(24);

/// How calls are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditSettings {
    /// Whether a call that cannot be recorded is refused.
    pub required: bool,
    /// Whether a record is synced to disk before its call is answered.
    pub sync: bool,
    /// Retention of records; for ever if `None`.
    pub keep: Option<Duration>,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            required: true,
            sync: false,
            keep: None,
        }
    }
}

impl AuditSettings {
    pub(super) fn resolve(raw: &raw::Audit) -> Result<Self, SettingsError> {
        let usual = Self::default();
        if raw.keep_days == Some(0) {
            return Err(SettingsError::Value {
                setting: "audit.keep_days",
                expected: "at least 1",
            });
        }
        Ok(Self {
            required: raw.required.unwrap_or(usual.required),
            sync: raw.sync.unwrap_or(usual.sync),
            keep: raw.keep_days.map(|days| DAY * days),
        })
    }
}

/// The address of the listener for `/metrics`, `/healthz` and `/readyz`, if one is configured.
pub(super) fn telemetry_address(raw: &raw::Telemetry) -> Result<Option<SocketAddr>, SettingsError> {
    let address = raw.listen.as_deref().map(str::parse).transpose();
    address.map_err(|_| SettingsError::Value {
        setting: "telemetry.listen",
        expected: "an address and port, like `127.0.0.1:9464`",
    })
}
