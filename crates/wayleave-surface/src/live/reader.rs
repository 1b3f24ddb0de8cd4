//! Reads a stream for the change feed, through the same plans as every other read.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wayleave_plan::package::Package;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::Refusal;
use wayleave_plan::request::{CountKind, QueryRequest};
use wayleave_plan::value::Value;
use wayleave_plan::{AuthorizedPlan, Record};
use wayleave_store::{CallerKey, OnMalformed, ReadContext, Rows, StoreError};

use super::digests::RecordDigests;
use super::{LiveOptions, StreamKey};
use crate::service::ReadService;

/// Maximum time of one read.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The subject that the feed reads as: no token has such a name.
const FEED: &str = "change feed";

/// Why a stream could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadFailure {
    /// It has more records or bytes than are compared.
    #[error("it is too large to be compared")]
    TooLarge,
    /// It is not served any more, or not to this caller.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Its store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads one stream.
pub(super) struct StreamReader {
    pub(super) service: ReadService,
    pub(super) key: StreamKey,
    pub(super) options: LiveOptions,
    pub(super) stop: CancellationToken,
}

impl StreamReader {
    fn request(&self, changes_since: Option<String>) -> QueryRequest {
        QueryRequest {
            stream: self.key.stream.clone(),
            connection_id: Some(self.key.connection_id.clone()),
            filter: None,
            sort: Vec::new(),
            fields: None,
            expand: Vec::new(),
            limit: self.options.max_records,
            cursor: None,
            count: CountKind::None,
            changes_since,
        }
    }

    /// The plan of everything that a package sees of the stream. Callers with equal plans see the
    /// same.
    pub(super) fn plan(&self, package: &Package) -> Result<QueryPlan, Refusal> {
        let view = self.service.view(package);
        QueryPlan::new(&view, &self.request(None), self.service.seal())
    }

    /// Changes when the store's data may have changed; `None` where only reading can tell.
    pub(super) async fn change_token(&self, plan: &AuthorizedPlan) -> Option<u64> {
        let store = self.service.stores().store(&plan.target().source).ok()?;
        store.change_token().await.ok().flatten()
    }

    /// Reads all records of a plan, if they are few enough to be compared.
    pub(super) async fn digests(&self, plan: &QueryPlan) -> Result<RecordDigests, ReadFailure> {
        let mut digests = RecordDigests::default();
        let (mut bytes, mut count) = (0_usize, 0_u32);
        let mut rows = self.rows(plan.rows()).await?;
        while let Some(row) = rows.next().await {
            let row = row?;
            count += 1;
            bytes += row.iter().map(Value::bytes).sum::<usize>();
            if count > self.options.max_records || bytes > self.options.max_bytes {
                return Err(ReadFailure::TooLarge);
            }
            with_record(plan, row, |record| digests.insert(record));
        }
        Ok(digests)
    }

    async fn rows(&self, plan: &AuthorizedPlan) -> Result<Rows, StoreError> {
        let context = ReadContext {
            cancel: self.stop.clone(),
            on_malformed: OnMalformed::Mark,
            caller: CallerKey::from_subject(FEED),
            ..ReadContext::within(READ_TIMEOUT)
        };
        let store = self.service.stores().store(&plan.target().source)?;
        store.read(plan, &context).await?.rows(plan)
    }
}

fn with_record(plan: &QueryPlan, row: Vec<Value>, mut act: impl FnMut(&Record)) {
    let page = plan.page_of(vec![row]);
    page.records().iter().for_each(&mut act);
}
