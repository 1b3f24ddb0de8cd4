//! What the console requires of the program it runs in.

use std::path::PathBuf;

use async_trait::async_trait;
use serde_json::{Map, Value};
use wayleave_activity::{Activity, LogStamp};
use wayleave_ledger::{KeyFileError, SecretString, UnlockedKey};
use wayleave_model::ratify::Proposed;
use wayleave_project::{
    Explanation, Rendering,
    call_summary::{CallQuery, CallSummary, RecentUse},
    index_status::IndexStatus,
    source_probe::SourceProbe,
};

/// Rows that a person asked to see before they decide.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampleRows {
    /// The fields, in the order of the rows.
    pub fields: Vec<String>,
    /// The rows, one value for each field.
    pub rows: Vec<Vec<Value>>,
}

/// A call that was tried as a token would make it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadTrial {
    /// The text the model gets.
    pub text: String,
    /// The same as structure.
    pub structured: Value,
    /// Whether it was refused.
    pub is_error: bool,
}

/// The effects of the console: comparing, connecting, and reading where a person asked.
#[async_trait]
pub trait ConsoleBackend: Send + Sync + 'static {
    /// Reaches the declared sources.
    fn probe(&self) -> &SourceProbe;

    /// Makes the ratified mapping of a dataset live, for every client of this deployment.
    async fn connect(&self, dataset: &str, who: &str) -> Result<Rendering, Explanation>;

    /// Takes a dataset out of service.
    async fn disconnect(&self, dataset: &str, who: &str) -> Result<Rendering, Explanation>;

    /// The first rows that a proposed mapping would serve of a stream.
    async fn sample(&self, proposed: &Proposed, stream: &str) -> Result<SampleRows, Explanation>;

    /// Calls a read tool as a token would; without one, as a client on this machine.
    async fn try_read(
        &self,
        token: Option<&str>,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<ReadTrial, Explanation>;

    /// The full-text indexes, as far as they are known.
    async fn indexes(&self) -> Vec<IndexStatus>;

    /// The calls on record that are asked for.
    async fn calls(&self, query: CallQuery) -> Result<CallSummary, Explanation>;

    /// One call by its id, if it is on record.
    async fn call(&self, id: &str) -> Result<Option<Activity>, Explanation>;

    /// What was used lately; empty where that is not known.
    async fn recent_use(&self) -> RecentUse;

    /// Verifies the record of calls.
    async fn verify_calls(&self) -> Result<Rendering, Explanation>;

    /// How many calls were recorded since then, if the record has changed since `known`.
    async fn calls_since(&self, since_ms: u64, known: &LogStamp) -> Option<(LogStamp, usize)>;

    /// The address agents connect to, where this program serves one.
    fn agents_url(&self) -> Option<String>;

    /// Opens an owner's key file, away from the threads that answer.
    async fn unlock(
        &self,
        path: PathBuf,
        passphrase: SecretString,
    ) -> Result<UnlockedKey, KeyFileError>;

    /// How many clients listen for changes now.
    fn listening(&self) -> usize;
}
