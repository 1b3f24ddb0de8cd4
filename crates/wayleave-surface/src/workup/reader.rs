//! The reads of one workup: all through the caller's own plans, and limited in number.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use serde_json::{Map, json};
use wayleave_plan::neighbours::NeighbourPlan;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::{Code, Refusal};
use wayleave_plan::request::{CountKind, QueryRequest, SearchRequest};
use wayleave_plan::view::StreamView;
use wayleave_plan::{AuthorizedPlan, Record};
use wayleave_search::Query;

use super::node::Node;
use crate::call_context::{CallContext, RowBatch};
use crate::search::{self, BestMatches};

/// Maximum number of reads from stores.
pub(super) const MAX_READS: usize = 400;
/// Maximum number of streams in which an entity is looked up, per lookup method.
pub(super) const MAX_LOOKUP_STREAMS: usize = 100;
/// Maximum number of rows.
pub(super) const MAX_ROWS: usize = 2_000;
/// Maximum size of one read's rows, in bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// Maximum number of concurrent reads.
const MAX_CONCURRENT_READS: usize = 4;

/// Reads for one workup.
pub(super) struct WorkupReader<'a> {
    pub(super) call: &'a CallContext<'a>,
    /// Reads and rows so far. A search counts as one read, however many candidates it skips: their
    /// number would reveal rows that the caller may not see.
    reads: AtomicUsize,
    read_rows: AtomicUsize,
}

/// Why no further read may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    /// Time is running out.
    Deadline,
    /// The limit of reads or rows is reached.
    Caps,
}

impl<'a> WorkupReader<'a> {
    pub(super) fn new(call: &'a CallContext<'a>) -> Self {
        Self {
            call,
            reads: AtomicUsize::new(0),
            read_rows: AtomicUsize::new(0),
        }
    }

    /// Every stream of the dataset that the caller sees.
    pub(super) fn streams(&self) -> impl Iterator<Item = &'a StreamView> + use<'a> {
        let connections = self.call.view.connections().iter();
        connections.flat_map(|connection| &connection.streams)
    }

    pub(super) fn stream(&self, connection_id: &str, name: &str) -> Option<&'a StreamView> {
        self.call.view.connection(connection_id)?.stream(name)
    }

    /// How the records of a stream are read, without what is around them.
    pub(super) fn alone(&self, stream: &StreamView) -> Option<NeighbourPlan> {
        let connection = self.call.view.connection(stream.connection_id())?;
        Some(NeighbourPlan::new(connection, stream))
    }

    /// How many reads have begun, and how many rows they gave.
    pub(super) fn tally(&self) -> (usize, usize) {
        let count = |it: &AtomicUsize| it.load(Ordering::Relaxed);
        (count(&self.reads), count(&self.read_rows))
    }

    /// The reason why no further read may begin, if there is one.
    pub(super) fn stop(&self) -> Option<StopReason> {
        let (reads, rows) = self.tally();
        if reads >= MAX_READS || rows >= MAX_ROWS {
            return Some(StopReason::Caps);
        }
        (!self.call.has_time()).then_some(StopReason::Deadline)
    }

    pub(super) async fn rows(&self, plan: &AuthorizedPlan) -> Result<RowBatch, Refusal> {
        if let Some(stop) = self.stop() {
            return Err(stopped(stop));
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        let read = self.call.rows(plan, MAX_BYTES).await?;
        self.read_rows.fetch_add(read.rows.len(), Ordering::Relaxed);
        Ok(read)
    }

    /// The records of one stream with these ids.
    pub(super) async fn by_id(
        &self,
        around: &NeighbourPlan,
        ids: &[&str],
    ) -> Result<Vec<Record>, Refusal> {
        let Some(plan) = around.rows(ids.iter().copied()) else {
            return Ok(Vec::new());
        };
        let read = self.rows(&plan).await?;
        Ok(read
            .rows
            .into_iter()
            .map(|row| around.record(row))
            .collect())
    }

    /// The records of a stream whose title is, or begins with, a text; none where titles cannot be
    /// filtered on.
    pub(super) async fn by_title(
        &self,
        stream: &'a StreamView,
        operator: &str,
        text: &str,
        limit: u32,
    ) -> Result<Vec<Node<'a>>, Refusal> {
        let Some(title) = stream.title() else {
            return Ok(Vec::new());
        };
        let filter = Map::from_iter([(title.name().to_owned(), json!({ operator: text }))]);
        let request = QueryRequest {
            stream: stream.name().to_owned(),
            connection_id: Some(stream.connection_id().to_owned()),
            filter: Some(filter),
            sort: Vec::new(),
            fields: None,
            expand: Vec::new(),
            limit,
            cursor: None,
            count: CountKind::None,
            changes_since: None,
        };
        // A title that filters may not use, or that is not text, has no such record.
        let Ok(plan) = QueryPlan::new(&self.call.view, &request, self.call.seal) else {
            return Ok(Vec::new());
        };
        let read = self.rows(plan.rows()).await?;
        let page = plan.page_from_rows(read.rows);
        let records = page.records().iter().cloned();
        Ok(records.map(|record| Node::new(stream, record)).collect())
    }

    /// The records of the whole dataset that match a text best.
    pub(super) async fn best(&self, q: String, limit: u32) -> Result<BestMatches, Refusal> {
        self.search(q, None, &[], limit).await
    }

    /// The records that match a text best in the field of this name, and contain all of the
    /// required words there.
    pub(super) async fn best_in(
        &self,
        field: &str,
        q: String,
        words: &[Query],
        limit: u32,
    ) -> Result<BestMatches, Refusal> {
        let fields = Some(vec![field.to_owned()]);
        self.search(q, fields, words, limit).await
    }

    async fn search(
        &self,
        q: String,
        fields: Option<Vec<String>>,
        words: &[Query],
        limit: u32,
    ) -> Result<BestMatches, Refusal> {
        if !self.call.has_time() {
            return Err(stopped(StopReason::Deadline));
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        let request = SearchRequest {
            q,
            connection_id: None,
            streams: None,
            filter: None,
            fields,
            limit,
            cursor: None,
        };
        search::best(self.call, &request, words).await
    }

    /// The records with these ids, whatever their streams; missing ones are left out.
    pub(super) async fn nodes(&self, ids: &[String]) -> Result<Vec<Node<'a>>, Refusal> {
        let mut found: Vec<Node<'a>> = Vec::new();
        for stream in self.streams() {
            let Some(around) = self.alone(stream) else {
                continue;
            };
            let ours: Vec<&str> = ids.iter().map(String::as_str).collect();
            if around.rows(ours.iter().copied()).is_none() {
                continue;
            }
            let records = self.by_id(&around, &ours).await?;
            found.extend(records.into_iter().map(|record| Node::new(stream, record)));
        }
        found.sort_by_key(|node| ids.iter().position(|id| id == node.id()));
        Ok(found)
    }
}

/// Runs the reads concurrently, a few at a time, and returns the answers in order.
pub(super) async fn run_concurrently<F: Future>(reads: Vec<F>) -> Vec<F::Output> {
    let mut reads = reads.into_iter();
    let mut answers = Vec::new();
    loop {
        let some: Vec<F> = reads.by_ref().take(MAX_CONCURRENT_READS).collect();
        if some.is_empty() {
            return answers;
        }
        answers.extend(join_all(some).await);
    }
}

/// The refusal of a read that may not begin.
pub(super) fn stopped(stop: StopReason) -> Refusal {
    let (code, message) = match stop {
        StopReason::Deadline => (Code::Timeout, "time ran out before the entity was found"),
        StopReason::Caps => (
            Code::ResultTooLarge,
            "too much would have to be read to find the entity; give its record id",
        ),
    };
    Refusal::new(code, message).param("entity")
}

/// The text as a quoted search phrase, without characters that a search would interpret.
pub(super) fn phrase(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c == '"' { ' ' } else { c })
        .collect();
    format!("\"{plain}\"")
}
