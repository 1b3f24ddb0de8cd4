//! Why a dataset cannot be connected, disconnected or listed, as data.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use wayleave_model::nearest::nearest;
use wayleave_plan::refusal::quoted;

use crate::escape;
use crate::reply::{MAX_ERROR_BYTES, Reply};

/// Maximum number of names in a refusal.
const MAX_NAMES: usize = 12;
/// Maximum length of a message, in characters.
const MAX_MESSAGE_CHARS: usize = 400;

/// The kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// No dataset or draft has that name.
    UnknownDataset,
    /// Nobody ratified the dataset, or it was retired.
    NotRatified,
    /// The frozen mapping differs from what was ratified.
    MappingRefused,
    /// A source does not answer.
    SourceUnavailable,
    /// A source differs from what the mapping says.
    Drifted,
    /// Another live dataset has a connection with the same id.
    ConflictingDataset,
    /// The token changed the served datasets too often.
    RateLimited,
    /// The ledger of human decisions cannot be read or written.
    LedgerUnavailable,
}

impl Code {
    /// Every code, in the order documents list them.
    pub const ALL: &'static [Self] = &[
        Self::UnknownDataset,
        Self::NotRatified,
        Self::MappingRefused,
        Self::SourceUnavailable,
        Self::Drifted,
        Self::ConflictingDataset,
        Self::RateLimited,
        Self::LedgerUnavailable,
    ];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownDataset => "unknown_dataset",
            Self::NotRatified => "not_ratified",
            Self::MappingRefused => "mapping_refused",
            Self::SourceUnavailable => "source_unavailable",
            Self::Drifted => "drifted",
            Self::ConflictingDataset => "conflicting_dataset",
            Self::RateLimited => "rate_limited",
            Self::LedgerUnavailable => "ledger_unavailable",
        }
    }

    /// Whether the same call may succeed later without anybody's intervention.
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Self::SourceUnavailable | Self::RateLimited | Self::LedgerUnavailable
        )
    }
}

/// A refusal. Its message quotes no connection string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetRefusal {
    /// The kind of refusal.
    pub code: Code,
    /// The problem, for the reader.
    pub message: String,
    /// The specific case, where one code covers several.
    pub reason: Option<&'static str>,
    /// Datasets that could be named instead.
    pub available: Vec<String>,
    /// The available dataset whose name is closest to the given one.
    pub did_you_mean: Option<String>,
    /// How long to wait before retrying, where known.
    pub retry_after: Option<Duration>,
}

impl DatasetRefusal {
    /// A refusal with only a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            reason: None,
            available: Vec::new(),
            did_you_mean: None,
            retry_after: None,
        }
    }

    /// The refusal for a name that no dataset has, listing those that exist.
    pub fn unknown(name: &str, available: Vec<String>) -> Self {
        let mut refused = Self::new(
            Code::UnknownDataset,
            format!("there is no dataset {}", quoted(name)),
        );
        refused.did_you_mean =
            nearest(name, available.iter().map(String::as_str)).map(str::to_owned);
        refused.available = available;
        refused
    }

    /// Sets the specific case.
    #[must_use]
    pub fn with_reason(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Sets how long to wait.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Sets the datasets that could be named instead.
    #[must_use]
    pub fn with_available(mut self, available: Vec<String>) -> Self {
        self.available = available;
        self
    }

    /// The refusal as the reply to a call.
    pub(super) fn reply(&self) -> Reply {
        let mut names = MAX_NAMES;
        loop {
            let error = Json::Object(self.members(names));
            let reply = Reply {
                text: escape::json(&error),
                structured: json!({ "error": error }).into(),
                is_error: true,
            };
            if reply.bytes() <= MAX_ERROR_BYTES || names == 0 {
                return reply;
            }
            names -= 1;
        }
    }

    fn members(&self, names: usize) -> Map<String, Json> {
        let mut error = Map::new();
        let mut put = |name: &str, value: Json| error.insert(name.to_owned(), value);
        put("code", self.code.as_str().into());
        put(
            "message",
            escape::inline(&self.message, MAX_MESSAGE_CHARS).into(),
        );
        if let Some(reason) = self.reason {
            put("reason", reason.into());
        }
        if let Some(wait) = self.retry_after {
            // Round up, so that a caller who waits that long is not refused again.
            let wait = wait.as_nanos().div_ceil(1_000_000);
            let wait = u64::try_from(wait).unwrap_or(u64::MAX);
            put("retry_after_ms", wait.into());
        } else {
            put("param", "name".into());
        }
        if !self.available.is_empty() {
            let shown: Vec<&String> = self.available.iter().take(names).collect();
            put("truncated", (shown.len() < self.available.len()).into());
            put("allowed", json!(shown));
            put("total", self.available.len().into());
        }
        if let Some(near) = &self.did_you_mean {
            put("did_you_mean", near.as_str().into());
        }
        put("retryable", self.code.retryable().into());
        put("next", json!({ "tool": "list_datasets", "arguments": {} }));
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_taken_for_a_name_is_not_repeated() {
        let available = vec!["crm".to_owned()];
        let reply = DatasetRefusal::unknown("postgres://u:hunter2@h/db", available).reply();
        assert!(!reply.text.contains("hunter2"), "{}", reply.text);
        assert!(!reply.structured.value().to_string().contains("hunter2"));
        assert!(
            reply.text.contains("\"allowed\":[\"crm\"]"),
            "{}",
            reply.text
        );
    }

    #[test]
    fn the_reference_tells_every_code_and_tool() {
        let page = include_str!("../../../../docs/reference/datasets.md");
        for code in Code::ALL {
            assert!(
                page.contains(&format!("| `{}` |", code.as_str())),
                "{code:?}"
            );
        }
        for tool in super::super::NAMES {
            assert!(page.contains(&format!("### `{tool}`")), "{tool}");
        }
    }

    #[test]
    fn a_refusal_keeps_its_budget_however_many_datasets_there_are() {
        let names = (0..1_000).map(|n| format!("a-dataset-with-a-long-name-{n:04}"));
        let refused = DatasetRefusal::unknown("a-dataset-with-a-long-name-9999", names.collect());
        let reply = refused.reply();
        assert!(reply.bytes() <= MAX_ERROR_BYTES, "{}", reply.bytes());
        let error = &reply.structured.value()["error"];
        assert_eq!(error["total"], 1_000);
        assert_eq!(error["truncated"], true);
        assert!(!error["allowed"].as_array().unwrap().is_empty());
    }
}
