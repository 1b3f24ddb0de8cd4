//! The port of the console: the effects that the embedding program supplies.

use std::path::PathBuf;

use async_trait::async_trait;
use serde_json::{Map, Value};
use wayleave_activity::{Activity, LogStamp};
use wayleave_ledger::{KeyFileError, SecretString, UnlockedKey};
use wayleave_model::ratify::Proposed;
use wayleave_plan::read_tool::ReadTool;
use wayleave_project::{
    Explanation, Rendering,
    call_summary::{CallQuery, CallSummary, RecentUse},
    index_status::IndexStatuses,
    source_probe::SourceProbe,
};

/// Rows shown to a person at their request, before they decide.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampleRows {
    /// The fields, in the order of the rows.
    pub fields: Vec<String>,
    /// The rows, one value for each field.
    pub rows: Vec<Vec<Value>>,
}

/// The result of a read made with a token's rights, to try it out.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadTrial {
    /// The text as the model gets it.
    pub text: String,
    /// The same as structure.
    pub structured: Value,
    /// Whether it was refused.
    pub is_error: bool,
}

/// The effects of the console: compare, connect, and read at a person's request.
#[async_trait]
pub trait ConsoleBackend: Send + Sync + 'static {
    /// The probe of the declared sources.
    fn probe(&self) -> &SourceProbe;

    /// Makes the ratified mapping of a dataset live, for every client of this deployment.
    async fn connect(&self, dataset: &str, who: &str) -> Result<Rendering, Explanation>;

    /// Takes a dataset out of service.
    async fn disconnect(&self, dataset: &str, who: &str) -> Result<Rendering, Explanation>;

    /// The first rows of a stream under a proposed mapping.
    async fn sample(&self, proposed: &Proposed, stream: &str) -> Result<SampleRows, Explanation>;

    /// Calls a read tool with a token's rights; without a token, as a client on this machine.
    async fn try_read(
        &self,
        token: Option<&str>,
        tool: ReadTool,
        arguments: Map<String, Value>,
    ) -> Result<ReadTrial, Explanation>;

    /// The full-text indexes of the served datasets.
    async fn indexes(&self) -> Result<IndexStatuses, Explanation>;

    /// The recorded calls that match a query.
    async fn calls(&self, query: CallQuery) -> Result<CallSummary, Explanation>;

    /// One recorded call by its id.
    async fn call(&self, id: &str) -> Result<Option<Activity>, Explanation>;

    /// Recent use of tokens, grants and datasets.
    async fn recent_use(&self) -> Result<RecentUse, Explanation>;

    /// Verifies the record of calls.
    async fn verify_calls(&self) -> Result<Rendering, Explanation>;

    /// Number of calls recorded since `since_ms`, if the record has changed since `known`.
    async fn calls_since(
        &self,
        since_ms: u64,
        known: &LogStamp,
    ) -> Result<Option<(LogStamp, usize)>, Explanation>;

    /// The address agents connect to, if this program serves one.
    fn agents_url(&self) -> Option<String>;

    /// Opens an owner's key file, off the threads that answer requests.
    async fn unlock(
        &self,
        path: PathBuf,
        passphrase: SecretString,
    ) -> Result<UnlockedKey, KeyFileError>;

    /// How many clients listen for changes now.
    fn listening(&self) -> usize;
}
