//! Log messages to the client.
//!
//! The newest revision deprecates them; clients of the older ones have nothing else.
#![expect(
    deprecated,
    reason = "the SDK marks the whole feature deprecated, and older clients need it"
)]

use serde_json::Value;

use crate::sdk::model::{
    LoggingLevel, LoggingMessageNotificationParam, Peer, RoleServer, SetLevelRequestParams,
};

pub(crate) type LevelParams = SetLevelRequestParams;

/// Severity of a log message, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For developers.
    Debug,
    /// Ordinary.
    Info,
    /// Ordinary but worth a look.
    Notice,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
    /// A part has failed.
    Critical,
    /// Act now.
    Alert,
    /// Unusable.
    Emergency,
}

impl LogLevel {
    pub(crate) fn wire(self) -> LoggingLevel {
        match self {
            Self::Debug => LoggingLevel::Debug,
            Self::Info => LoggingLevel::Info,
            Self::Notice => LoggingLevel::Notice,
            Self::Warning => LoggingLevel::Warning,
            Self::Error => LoggingLevel::Error,
            Self::Critical => LoggingLevel::Critical,
            Self::Alert => LoggingLevel::Alert,
            Self::Emergency => LoggingLevel::Emergency,
        }
    }

    pub(crate) fn from_wire(wire: LoggingLevel) -> Self {
        match wire {
            LoggingLevel::Debug => Self::Debug,
            LoggingLevel::Info => Self::Info,
            LoggingLevel::Notice => Self::Notice,
            LoggingLevel::Warning => Self::Warning,
            LoggingLevel::Error => Self::Error,
            LoggingLevel::Critical => Self::Critical,
            LoggingLevel::Alert => Self::Alert,
            LoggingLevel::Emergency => Self::Emergency,
        }
    }
}

pub(crate) fn requested(params: &LevelParams) -> LogLevel {
    LogLevel::from_wire(params.level)
}

pub(crate) async fn send(peer: &Peer<RoleServer>, level: LogLevel, logger: &str, data: Value) {
    let params =
        LoggingMessageNotificationParam::new(level.wire(), data).with_logger(logger.to_owned());
    if let Err(error) = peer.notify_logging_message(params).await {
        tracing::debug!(%error, "log message not delivered");
    }
}
