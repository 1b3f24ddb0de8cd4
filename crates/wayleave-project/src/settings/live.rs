//! How changes of records are detected and reported to subscribers.

use std::time::Duration;

use super::{SettingsError, raw};

/// Shortest accepted interval: each costs a read of every watched stream.
const MIN_INTERVAL_MS: u64 = 100;
/// Largest accepted number of records of a stream to compare at every interval.
const MAX_RECORDS: u32 = 100_000;

/// How changes of records are detected and reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeFeedSettings {
    /// Whether clients can subscribe at all.
    pub enabled: bool,
    /// How often a watched stream is read.
    pub interval: Duration,
    /// Maximum number of records of a stream that are compared.
    pub max_records: u32,
    /// Maximum number of subscriptions of one caller.
    pub subscriptions: u32,
}

impl Default for ChangeFeedSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            interval: Duration::from_secs(2),
            max_records: 10_000,
            subscriptions: 1_000,
        }
    }
}

impl ChangeFeedSettings {
    pub(super) fn resolve(raw: &raw::Live) -> Result<Self, SettingsError> {
        let usual = Self::default();
        let value = |setting, expected| SettingsError::Value { setting, expected };
        let interval = match raw.interval_ms {
            Some(given) if given < MIN_INTERVAL_MS => {
                return Err(value("live.interval_ms", "at least 100"));
            }
            given => given.map_or(usual.interval, Duration::from_millis),
        };
        let max_records = raw.max_records.unwrap_or(usual.max_records);
        if !(1..=MAX_RECORDS).contains(&max_records) {
            return Err(value("live.max_records", "from 1 to 100000"));
        }
        let subscriptions = raw.subscriptions.unwrap_or(usual.subscriptions);
        if subscriptions == 0 {
            return Err(value("live.subscriptions", "at least 1"));
        }
        Ok(Self {
            enabled: raw.enabled.unwrap_or(usual.enabled),
            interval,
            max_records,
            subscriptions,
        })
    }
}
