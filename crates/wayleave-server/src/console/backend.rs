//! The effects of the console, through a deployment: compare, connect, and read at a person's
//! request.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use wayleave_activity::{Activity, ActivityFilter, ActivityReader, LogStamp, ReadError};
use wayleave_console::{ConsoleBackend, ReadTrial, SampleRows, unlock};
use wayleave_ledger::{Clock as _, FOLDER, KeyFileError, SecretString, SystemClock, UnlockedKey};
use wayleave_model::ratify::{self, Proposed, Ratification};
use wayleave_plan::{active_datasets::ActiveDatasets, package::Package, read_tool::ReadTool};
use wayleave_project::{
    Explanation, Rendering,
    activation::{self, ActivationBackend as _},
    activity_log,
    call_summary::{self, CallQuery, CallSummary, RecentUse},
    index_status::IndexStatuses,
    keys, render,
    source_probe::SourceProbe,
};
use wayleave_search::IndexRoot;
use wayleave_surface::{ReadLimits, ReadService, Reply};

use crate::{
    deployment::{self, ServingContext},
    packages,
};

/// Maximum number of calls read to find recent use.
const MAX_RECENT_CALLS: usize = 20_000;
/// How far back use counts as recent, in milliseconds.
const RECENT_USE_MILLIS: u64 = 24 * 3_600_000;
/// Maximum number of new calls counted.
const MAX_COUNTED_CALLS: usize = 1000;

/// Number of sample rows shown before a person decides.
const SAMPLE_ROWS: u32 = 5;

pub(super) struct DeploymentBackend {
    pub(super) serving: Arc<ServingContext>,
    pub(super) indexes: IndexRoot,
    pub(super) agents_url: Option<String>,
}

impl DeploymentBackend {
    /// Reads the record of calls, off the threads that serve requests.
    async fn read_calls<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ActivityReader) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, Explanation> {
        let reader = activity_log::reader(self.serving.project());
        let read = tokio::task::spawn_blocking(move || read(&reader));
        match read.await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(Explanation::from_error(&error)),
            Err(_) => Err(Explanation::new("the record of calls could not be read")),
        }
    }

    /// A read service over this one mapping. Its ratification exists only in memory: it is never
    /// recorded, serves no agent, and ends with the preview.
    fn preview(&self, proposed: &Proposed) -> Result<ReadService, Explanation> {
        let act = Ratification {
            dataset: proposed.mapping().dataset.name.value.clone(),
            digest: proposed.digest(),
            replaces: None,
            who: "a look before deciding".to_owned(),
            note: String::new(),
        };
        let mapping = ratify::ratify(proposed.clone(), act)
            .map_err(|error| Explanation::from_error(&error))?;
        let active = ActiveDatasets::new(vec![Arc::new(mapping)])
            .map_err(|error| Explanation::from_error(&error))?;
        let private = self.serving.project().folder().join(FOLDER);
        let ring = keys::ring(&private).map_err(|error| Explanation::from_error(&error))?;
        let stores = self.serving.stores();
        Ok(ReadService::new(
            active,
            stores,
            ring,
            ReadLimits::default(),
        ))
    }
}

#[async_trait]
impl ConsoleBackend for DeploymentBackend {
    fn probe(&self) -> &SourceProbe {
        self.serving.probe()
    }

    async fn connect(&self, dataset: &str, who: &str) -> Result<Rendering, Explanation> {
        match activation::connect(self.serving.as_ref(), dataset, who).await {
            Ok(connected) => Ok(render::activation::connected(dataset, &connected)),
            Err(error) => Err(render::activation::not_connected(dataset, error)),
        }
    }

    async fn disconnect(&self, dataset: &str, who: &str) -> Result<Rendering, Explanation> {
        match activation::disconnect(self.serving.as_ref(), dataset, who).await {
            Ok(disconnected) => render::activation::disconnected(dataset, &disconnected),
            Err(error) => Err(render::activation::not_disconnected(dataset, error)),
        }
    }

    async fn sample(&self, proposed: &Proposed, stream: &str) -> Result<SampleRows, Explanation> {
        let service = self.preview(proposed)?;
        let mut arguments = Map::new();
        arguments.insert("stream".to_owned(), stream.into());
        arguments.insert("limit".to_owned(), SAMPLE_ROWS.into());
        let connection = proposed.mapping().connections.first();
        if let Some(connection) = connection {
            let id = connection.id.value.clone();
            arguments.insert("connection_id".to_owned(), id.into());
        }
        let reply = service.query_records(&Package::local(), arguments).await;
        let structured = reply.structured.value();
        if reply.is_error {
            let message = structured.get("error").and_then(|it| it.get("message"));
            let message = message
                .and_then(Value::as_str)
                .unwrap_or("the read was refused");
            return Err(Explanation::new(message));
        }
        Ok(SampleRows {
            fields: member(structured, "/data/fields")?,
            rows: member(structured, "/data/rows")?,
        })
    }

    async fn try_read(
        &self,
        token: Option<&str>,
        tool: ReadTool,
        arguments: Map<String, Value>,
    ) -> Result<ReadTrial, Explanation> {
        let state = self.serving.state().await?;
        let package = match token {
            None => Package::local(),
            Some(id) => {
                let token = state.tokens().get(id);
                let token = token.ok_or_else(|| Explanation::new("there is no such token"))?;
                let now = state.now(SystemClock.now());
                packages::package(&state, token, &token.claims, now)
            }
        };
        let service = self.serving.service();
        let reply = service.call(tool, &package, arguments).await;
        Ok(trial(&reply))
    }

    async fn indexes(&self) -> Result<IndexStatuses, Explanation> {
        deployment::index_statuses(&self.serving, self.indexes.clone()).await
    }

    async fn calls(&self, query: CallQuery) -> Result<CallSummary, Explanation> {
        let read = self.read_calls(move |reader| call_summary::summarize(reader, &query));
        read.await
    }

    async fn call(&self, id: &str) -> Result<Option<Activity>, Explanation> {
        let Ok(id) = id.parse() else {
            return Ok(None);
        };
        self.read_calls(move |reader| reader.find(id)).await
    }

    async fn recent_use(&self) -> Result<RecentUse, Explanation> {
        let now = u64::try_from(SystemClock.now()).unwrap_or(0);
        let since = now.saturating_sub(RECENT_USE_MILLIS);
        let read = self
            .read_calls(move |reader| call_summary::recent_use(reader, since, MAX_RECENT_CALLS));
        read.await
    }

    async fn verify_calls(&self) -> Result<Rendering, Explanation> {
        let seals = activity_log::recorded_seals(self.serving.project()).await;
        let seals = seals.map_err(|error| Explanation::from_error(&error))?;
        let report = self.read_calls(move |reader| reader.verify(&seals)).await?;
        Ok(render::activity::verification(&report))
    }

    async fn calls_since(
        &self,
        since_ms: u64,
        known: &LogStamp,
    ) -> Result<Option<(LogStamp, usize)>, Explanation> {
        let known = known.clone();
        let read = self.read_calls(move |reader| {
            let stamp = reader.stamp()?;
            if stamp == known {
                return Ok(None);
            }
            let filter = ActivityFilter {
                since_ms: Some(since_ms),
                ..ActivityFilter::default()
            };
            let mut many = 0;
            reader.recent(&filter, MAX_COUNTED_CALLS, |_| many += 1)?;
            Ok(Some((stamp, many)))
        });
        read.await
    }

    fn agents_url(&self) -> Option<String> {
        self.agents_url.clone()
    }

    async fn unlock(
        &self,
        path: PathBuf,
        passphrase: SecretString,
    ) -> Result<UnlockedKey, KeyFileError> {
        let named = path.clone();
        let unlocked = tokio::task::spawn_blocking(move || unlock(&path, &passphrase));
        unlocked.await.unwrap_or_else(|cause| {
            Err(KeyFileError::Disk {
                path: named,
                doing: "opened",
                source: std::io::Error::other(cause),
            })
        })
    }

    fn listening(&self) -> usize {
        self.serving.registry().listening()
    }
}

/// A member of the answer to a read.
fn member<T: DeserializeOwned>(answer: &Value, pointer: &str) -> Result<T, Explanation> {
    let found = answer.pointer(pointer).cloned().unwrap_or_default();
    serde_json::from_value(found).map_err(|error| Explanation::from_error(&error))
}

fn trial(reply: &Reply) -> ReadTrial {
    let structured = reply.structured.value();
    ReadTrial {
        text: reply.text.clone(),
        structured: json!(structured),
        is_error: reply.is_error,
    }
}
