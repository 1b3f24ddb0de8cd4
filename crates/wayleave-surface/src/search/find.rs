//! Takes candidates from the indexes, and reads them at their sources until there are enough hits.

use std::borrow::Cow;
use std::collections::BTreeMap;

use futures::future::join_all;
use wayleave_model::ranking::RankPosition;
use wayleave_plan::Record;
use wayleave_plan::refusal::{Code, Refusal};
use wayleave_plan::search::{MAX_CANDIDATES, SearchPlan, SearchStream};
use wayleave_search::{Candidate, IndexError, Query, Ranking, search};

use super::sources::{MissingStream, ReadyIndexes, Sources};
use crate::call_context::CallContext;
use crate::indexing::words_of;

/// Maximum number of candidates in one round.
const MAX_ROUND_CANDIDATES: usize = 1_000;
/// Maximum size of one read's rows, in bytes; more are read in smaller portions.
const MAX_READ_BYTES: usize = 4 * 1024 * 1024;

/// A search in progress.
pub(super) struct Search<'a> {
    call: &'a CallContext<'a>,
    plan: &'a SearchPlan,
    query: &'a Query,
    required: &'a [Query],
}

/// The result of a search.
pub(super) struct SearchOutcome {
    /// At most one more than the limit.
    pub(super) hits: Vec<Hit>,
    /// Where to continue, if time ran out before the requested number of hits was reached.
    pub(super) ended_at: Option<RankPosition>,
}

/// A candidate that was read at its source.
pub(super) struct Hit {
    /// The index of its stream in the plan.
    pub(super) stream: usize,
    pub(super) position: RankPosition,
    pub(super) record: Record,
}

impl<'a> Search<'a> {
    pub(super) fn new(call: &'a CallContext<'a>, plan: &'a SearchPlan, query: &'a Query) -> Self {
        Self {
            call,
            plan,
            query,
            required: &[],
        }
    }

    /// Restricts the search to records that also match each of these.
    pub(super) fn requiring(self, required: &'a [Query]) -> Self {
        Self { required, ..self }
    }

    pub(super) async fn run(&self, sources: &mut Sources) -> Result<SearchOutcome, Refusal> {
        let wanted = usize::try_from(self.plan.limit()).unwrap_or(usize::MAX) + 1;
        let mut hits: Vec<Hit> = Vec::new();
        let mut after = self.plan.after().cloned();
        // This one snapshot decides what is searched and how words are weighted, for the whole
        // page.
        let ready = sources.ready();
        let mut round = 0;
        while self.call.has_time() {
            let missing = wanted.saturating_sub(hits.len());
            // Where many candidates are hidden from the caller, each round requests more.
            let most = (missing << round).clamp(1, MAX_ROUND_CANDIDATES);
            round = (round + 1).min(10);
            let ranking = self.candidates(&ready, after.clone(), most).await?;
            for (source, error) in &ranking.failed {
                tracing::warn!(%error, "an index cannot be searched");
                if let Some(stream) = ready.stream(*source) {
                    sources.fail(stream, MissingStream::NotIndexed);
                }
            }
            let exhausted = ranking.candidates.len() < most;
            if let Some(last) = ranking.candidates.last() {
                after = Some(last.position.clone());
            }
            hits.extend(self.verified(&ready, ranking.candidates, sources).await);
            // A source that failed meanwhile loses its earlier hits.
            hits.retain(|hit| !sources.is_missing(hit.stream));
            if exhausted || hits.len() >= wanted {
                hits.truncate(wanted);
                return Ok(SearchOutcome {
                    hits,
                    ended_at: None,
                });
            }
        }
        Ok(SearchOutcome {
            hits,
            ended_at: after,
        })
    }

    async fn candidates(
        &self,
        ready: &ReadyIndexes,
        after: Option<RankPosition>,
        most: usize,
    ) -> Result<Ranking, Refusal> {
        let (ready, query) = (ready.clone(), self.query.clone());
        let refused = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "a search failed");
            Refusal::new(Code::SourceUnavailable, "the indexes do not answer")
        };
        if after.is_none() && ready.is_quick(&query) {
            let ranked = search(&ready.sources(), &query, None, most);
            return ranked.map_err(|error: IndexError| refused(&error));
        }
        // Ranking is CPU work, not waiting: it would block other tasks on this thread.
        let ranked = tokio::task::spawn_blocking(move || {
            search(&ready.sources(), &query, after.as_ref(), most)
        });
        match ranked.await {
            Ok(ranked) => ranked.map_err(|error: IndexError| refused(&error)),
            Err(error) => Err(refused(&error)),
        }
    }

    /// The candidates that the caller may see and that still match, in ranking order.
    async fn verified(
        &self,
        ready: &ReadyIndexes,
        candidates: Vec<Candidate>,
        sources: &mut Sources,
    ) -> Vec<Hit> {
        let mut by_stream: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for candidate in &candidates {
            let stream = ready.stream(candidate.source);
            if let Some(stream) = stream.filter(|it| !sources.is_missing(*it)) {
                by_stream
                    .entry(stream)
                    .or_default()
                    .push(&candidate.position.id);
            }
        }
        let under_way = by_stream
            .into_iter()
            .map(async |(at, ids)| (at, self.read(self.plan.stream(at), ids).await));
        let mut records: BTreeMap<String, (usize, Record)> = BTreeMap::new();
        for (at, read) in join_all(under_way).await {
            match read {
                Ok(read) => {
                    records.extend(read.into_iter().map(|it| (it.id(), (at, it))));
                }
                Err(refusal) => sources.fail(at, MissingStream::Unread(refusal)),
            }
        }
        candidates
            .into_iter()
            .filter_map(|candidate| {
                let (stream, record) = records.remove(&candidate.position.id)?;
                Some(Hit {
                    stream,
                    position: candidate.position,
                    record,
                })
            })
            .collect()
    }

    async fn read(&self, stream: &SearchStream, ids: Vec<&str>) -> Result<Vec<Record>, Refusal> {
        let mut found = Vec::new();
        let mut portions: Vec<&[&str]> = ids.chunks(MAX_CANDIDATES).collect();
        while let Some(portion) = portions.pop() {
            let Some(plan) = stream.rows(portion.iter().copied()) else {
                continue;
            };
            let read = self.call.rows(&plan, MAX_READ_BYTES).await?;
            if read.cut && portion.len() > 1 {
                let (first, second) = portion.split_at(portion.len() / 2);
                portions.extend([second, first]);
                continue;
            }
            let records = read.rows.into_iter().map(|row| stream.record(row));
            found.extend(records.filter(|record| self.matches(stream, record)));
        }
        Ok(found)
    }

    fn matches(&self, stream: &SearchStream, record: &Record) -> bool {
        let texts = texts(stream, record);
        let texts = texts.iter().map(|(field, text)| (*field, text.as_ref()));
        let analyzer = stream.view.search_analyzer().into();
        let has = |query: &Query| query.matches(analyzer, texts.clone());
        has(self.query) && self.required.iter().all(has)
    }
}

/// The searchable texts of a record, each with its field.
pub(super) fn texts<'a>(
    stream: &'a SearchStream,
    record: &'a Record,
) -> Vec<(&'a str, Cow<'a, str>)> {
    let text = |field: &'a String| Some((field.as_str(), words_of(record.value(field)?)));
    stream.fields.iter().filter_map(text).collect()
}
