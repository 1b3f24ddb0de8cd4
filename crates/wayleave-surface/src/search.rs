//! `search`: one ranked list over every granted connection.
//!
//! An index only proposes candidates. Each is read at its source under the caller's plan before
//! anything of it is shown: a record that is gone, hidden, filtered out or no longer matches is not
//! a hit. Snippets and titles are made from that read.

mod find;
mod hit;
mod render;
mod sources;

use std::sync::Arc;

use futures::future::{self, BoxFuture};
use serde_json::{Map, Value as Json};
use wayleave_plan::refusal::{Code, Refusal};
use wayleave_plan::request::{MAX_QUERY_CHARS, SearchRequest};
use wayleave_plan::search::SearchPlan;
use wayleave_search::{Index, Query, Spec};

use crate::call_context::CallContext;
use crate::reply::Reply;
use find::Search;
pub(crate) use sources::MissingStream;
use sources::Sources;

// An accepted query is parsed to its end: no character takes more than four bytes.
const _: () = assert!(MAX_QUERY_CHARS * 4 <= wayleave_search::MAX_QUERY_BYTES);

/// The full-text indexes of a deployment.
pub trait Indexes: Send + Sync {
    /// The index of a stream, if one with exactly this spec exists.
    fn index(&self, connection_id: &str, stream: &str, spec: &Spec) -> SearchIndexState;

    /// Earlier versions of the indexes that are still open, the latest first: a walk continues in
    /// the version it began in.
    fn earlier(&self) -> Vec<Arc<dyn Indexes>> {
        Vec::new()
    }

    /// Waits while the index of any of these streams, each a connection and a stream, is being
    /// opened, but no longer than is reasonable for a caller.
    fn opened<'a>(&'a self, _streams: Vec<(&'a str, &'a str)>) -> BoxFuture<'a, ()> {
        Box::pin(future::ready(()))
    }
}

/// The state of a stream's index.
#[derive(Debug, Clone)]
pub enum SearchIndexState {
    /// An index that can be searched.
    Ready(Arc<Index>),
    /// No index yet: it is being built.
    Making,
    /// No index: building it failed, and will be retried.
    Failed,
}

/// A deployment without indexes.
pub(crate) struct NoIndexes;

impl Indexes for NoIndexes {
    fn index(&self, _: &str, _: &str, _: &Spec) -> SearchIndexState {
        SearchIndexState::Failed
    }
}

/// Answers a search.
pub(crate) async fn answer(
    call: &CallContext<'_>,
    arguments: &Map<String, Json>,
) -> Result<Reply, Refusal> {
    let request = SearchRequest::parse(arguments)?;
    let plan = SearchPlan::new(&call.view, &request, call.seal)?;
    let known = |name: &str| {
        let mut streams = plan.streams().iter();
        streams.any(|stream| stream.fields.iter().any(|field| field == name))
    };
    let query = Query::parse(&request.q, known);
    let mut sources = opened_sources(&plan, call.indexes).await;
    if let Some(generation) = plan.generation().filter(|it| *it != sources.generation()) {
        let earlier = call.indexes.earlier().into_iter();
        let mut earlier = earlier.map(|indexes| Sources::new(&plan, indexes.as_ref()));
        let held = earlier.find(|sources| sources.generation() == generation);
        sources = held.ok_or_else(|| plan.generation_expired())?;
    }
    if !sources.any_ready() {
        let making = sources.any_making();
        let unread = sources.unread().filter(|_| !making).cloned();
        return Err(unread.unwrap_or_else(|| nothing_ready(making)));
    }
    let found = Search::new(call, &plan, &query).run(&mut sources).await?;
    let limit = usize::try_from(plan.limit()).unwrap_or(usize::MAX);
    let shown = found.hits.iter().take(limit);
    call.note_rows(shown.len());
    call.note_ids(shown.map(|hit| hit.position.id.clone()));
    Ok(render::render(call, &plan, &query, &found, &sources))
}

async fn opened_sources(plan: &SearchPlan, indexes: &dyn Indexes) -> Sources {
    let streams = plan.streams().iter();
    let streams = streams.map(|it| (it.view.connection_id(), it.view.name()));
    indexes.opened(streams.collect()).await;
    Sources::new(plan, indexes)
}

/// The ids of the best matches, and the connections that could not be searched, each with the
/// reason.
pub(crate) struct BestMatches {
    pub(crate) ids: Vec<String>,
    /// Whether there are more.
    pub(crate) more: bool,
    pub(crate) missing: Vec<(String, MissingStream)>,
}

/// Finds records without writing them out; only those that also match each of `required`.
pub(crate) async fn best(
    call: &CallContext<'_>,
    request: &SearchRequest,
    required: &[Query],
) -> Result<BestMatches, Refusal> {
    let plan = SearchPlan::new(&call.view, request, call.seal)?;
    let query = Query::parse(&request.q, |_| false);
    let mut sources = opened_sources(&plan, call.indexes).await;
    let search = Search::new(call, &plan, &query).requiring(required);
    let found = search.run(&mut sources).await?;
    let limit = usize::try_from(plan.limit()).unwrap_or(usize::MAX);
    let ids = found.hits.iter().take(limit);
    Ok(BestMatches {
        ids: ids.map(|hit| hit.position.id.clone()).collect(),
        more: found.hits.len() > limit || found.ended_at.is_some(),
        missing: sources.missing(),
    })
}

fn nothing_ready(making: bool) -> Refusal {
    let (why, message) = if making {
        (
            MissingStream::Indexing,
            "the text of these streams is still being indexed; try again in a moment, or use `query_records` with `contains`",
        )
    } else {
        (
            MissingStream::NotIndexed,
            "the text of these streams could not be indexed; the server retries. Until then use `query_records` with `contains`",
        )
    };
    let mut refusal = Refusal::new(Code::SourceUnavailable, message);
    refusal.reason = Some(why.as_str());
    refusal
}
