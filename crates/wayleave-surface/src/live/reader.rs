//! Reads a stream for the change feed, through the same plans as every other read.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::{Map, Value as Json};
use tokio_util::sync::CancellationToken;
use wayleave_plan::package::Package;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::{Code, Refusal};
use wayleave_plan::request::{CountKind, QueryRequest};
use wayleave_plan::value::Value;
use wayleave_plan::{AuthorizedPlan, Record};
use wayleave_store::{CallerKey, OnMalformed, ReadContext, Rows, StoreError};

use super::digests::RecordDigests;
use super::{ChangeFeedOptions, StreamKey, WatchedKey};
use crate::service::ReadService;

/// Maximum time of one read.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Subject of the feed's own reads. No token has such a name.
const FEED: &str = "change feed";

/// Why a stream could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadFailure {
    /// It exceeds the limit of records or bytes to compare.
    #[error("it is too large to be compared")]
    TooLarge,
    /// It is too large to be compared, and no field shows which records changed.
    #[error("it is too large to be compared, and its changes cannot be followed")]
    NotFollowed,
    /// It is too large to be compared, and its key has more than one field.
    #[error("it is too large to be compared, and its key is more than one field")]
    NotKeyed,
    /// It is no longer served, or not to this caller.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Its store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ReadFailure {
    /// Whether reading again cannot help.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::TooLarge | Self::NotFollowed | Self::NotKeyed | Self::Refused(_) => true,
            // Not final: a suspended stream resumes once it fits its source again.
            Self::Store(_) => false,
        }
    }
}

/// The bookmark before all changes.
pub(super) const BEGINNING: &str = "beginning";
/// Number of records that one statement reads by key.
const KEYS_PER_READ: usize = 50;

/// What changed since a bookmark.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) records: RecordDigests,
    /// Where the next walk begins.
    pub(super) bookmark: String,
    /// Whether there are more changes than one walk reads.
    pub(super) is_cut: bool,
}

/// Reads one stream.
pub(super) struct StreamReader {
    pub(super) service: ReadService,
    pub(super) key: StreamKey,
    pub(super) options: Arc<ArcSwap<ChangeFeedOptions>>,
    pub(super) stop: CancellationToken,
}

impl StreamReader {
    /// The current options.
    pub(super) fn options(&self) -> ChangeFeedOptions {
        **self.options.load()
    }

    fn request(&self, changes_since: Option<String>) -> QueryRequest {
        QueryRequest {
            stream: self.key.stream.clone(),
            connection_id: Some(self.key.connection_id.clone()),
            filter: None,
            sort: Vec::new(),
            fields: None,
            expand: Vec::new(),
            limit: self.options().max_records,
            cursor: None,
            count: CountKind::None,
            changes_since,
        }
    }

    /// The plan that reads everything a package sees of the stream. Callers with equal plans have
    /// the same view.
    pub(super) fn plan(&self, package: &Package) -> Result<QueryPlan, Refusal> {
        let view = self.service.view(package);
        QueryPlan::new(&view, &self.request(None), self.service.process_seal())
    }

    /// Reports a failure of the source, which may have changed.
    pub(super) fn report(&self, plan: &AuthorizedPlan, failure: &ReadFailure) {
        if let ReadFailure::Store(error) = failure {
            let stores = self.service.stores();
            stores.report(&plan.target().source, error);
        }
    }

    /// A token that changes when the store's data may have changed; `None` if the store has none.
    pub(super) async fn change_token(&self, plan: &AuthorizedPlan) -> Option<u64> {
        let store = self.service.stores().store(&plan.target().source).ok()?;
        store.change_token(plan).await.ok().flatten()
    }

    /// Digests all records of a plan, if they are few enough to compare.
    pub(super) async fn digests(&self, plan: &QueryPlan) -> Result<RecordDigests, ReadFailure> {
        let mut digests = RecordDigests::default();
        let (mut bytes, mut count) = (0_usize, 0_u32);
        let mut rows = self.rows(plan.rows()).await?;
        while let Some(row) = rows.next().await {
            let row = row?;
            count += 1;
            bytes += row.iter().map(Value::bytes).sum::<usize>();
            if count > self.options().max_records || bytes > self.options().max_bytes {
                return Err(ReadFailure::TooLarge);
            }
            with_record(plan, row, |record| digests.insert(record));
        }
        Ok(digests)
    }

    /// The changes since a bookmark, in order.
    pub(super) async fn walk(&self, package: &Package, since: &str) -> Result<Walk, ReadFailure> {
        let view = self.service.view(package);
        let request = self.request(Some(since.to_owned()));
        let plan = match QueryPlan::new(&view, &request, self.service.process_seal()) {
            Err(refusal) if refusal.code == Code::ChangesUnavailable => {
                return Err(ReadFailure::NotFollowed);
            }
            plan => plan?,
        };
        let horizon = plan.horizon().ok_or(ReadFailure::NotFollowed)?;
        let mut walk = Walk {
            bookmark: since.to_owned(),
            ..Walk::default()
        };
        let plan = match self.rows(horizon).await?.into_value().await? {
            Value::Null => return Ok(walk),
            Value::Malformed => return Err(ReadFailure::NotFollowed),
            horizon => plan.with_horizon(horizon),
        };
        let bookmark = plan
            .page(&[])
            .next_changes_since(0, self.service.process_seal());
        walk.bookmark = bookmark.ok_or(ReadFailure::NotFollowed)?;
        if since == BEGINNING {
            return Ok(walk);
        }
        let mut count = 0;
        let mut rows = self.rows(plan.rows()).await?;
        while let Some(row) = rows.next().await {
            let row = row?;
            count += 1;
            if count > self.options().max_records {
                walk.is_cut = true;
                break;
            }
            with_record(&plan, row, |record| walk.records.insert(record));
        }
        Ok(walk)
    }

    /// Reads the records with these keys. Requires a stream with a key of one field.
    pub(super) async fn keyed(
        &self,
        package: &Package,
        keys: &[WatchedKey],
    ) -> Result<RecordDigests, ReadFailure> {
        let mut digests = RecordDigests::default();
        let view = self.service.view(package);
        for some in keys.chunks(KEYS_PER_READ) {
            let values: Option<Vec<Json>> = some.iter().map(|key| key.value.clone()).collect();
            let values = values.ok_or(ReadFailure::NotKeyed)?;
            let mut request = self.request(None);
            let plan = QueryPlan::new(&view, &request, self.service.process_seal())?;
            let [field] = plan.view().key_fields() else {
                return Err(ReadFailure::NotKeyed);
            };
            let name = field.name().to_owned();
            request.filter = Some(Map::from_iter([(name, Json::Array(values))]));
            let plan = QueryPlan::new(&view, &request, self.service.process_seal())?;
            let mut rows = self.rows(plan.rows()).await?;
            while let Some(row) = rows.next().await {
                with_record(&plan, row?, |record| digests.insert(record));
            }
        }
        Ok(digests)
    }

    async fn rows(&self, plan: &AuthorizedPlan) -> Result<Rows, StoreError> {
        let context = ReadContext {
            cancel: self.stop.clone(),
            on_malformed: OnMalformed::Mark,
            caller: CallerKey::from_subject(FEED),
            ..ReadContext::with_timeout(READ_TIMEOUT)
        };
        let store = self.service.stores().store(&plan.target().source)?;
        store.read(plan, &context).await?.rows(plan)
    }
}

fn with_record(plan: &QueryPlan, row: Vec<Value>, mut act: impl FnMut(&Record)) {
    let page = plan.page_from_rows(vec![row]);
    page.records().iter().for_each(&mut act);
}
