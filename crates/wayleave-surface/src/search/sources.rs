//! Each connection's part in a search: how fresh it is, or why it is missing.

use std::sync::Arc;

use serde_json::{Map, Value as Json};
use wayleave_plan::refusal::Refusal;
use wayleave_plan::search::{IndexDefinition, SearchPlan};
use wayleave_plan::value::datetime_text;
use wayleave_project::index_status;
use wayleave_search::{Index, Query, SearchedIndex};

use super::{Indexes, SearchIndexState};
use crate::failure;

/// Maximum number of connections listed individually.
const MAX_LISTED: usize = 12;

/// The streams of a search, in plan order.
pub(super) struct Sources {
    streams: Vec<Stream>,
    generation: u64,
}

struct Stream {
    connection_id: String,
    fields: Vec<String>,
    is_whole: bool,
    state: State,
}

enum State {
    Ready(Arc<Index>),
    Missing(MissingStream),
}

/// Why a stream is missing from a search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MissingStream {
    /// Its index is being built.
    Indexing,
    /// Its index could not be built or read; it will be rebuilt.
    NotIndexed,
    /// Its source did not return the candidates that the index proposed.
    Unread(Refusal),
}

impl MissingStream {
    /// The reason in one word.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Indexing => "indexing",
            Self::NotIndexed => "not_indexed",
            Self::Unread(refusal) => refusal.reason.unwrap_or(refusal.code.as_str()),
        }
    }
}

impl Sources {
    pub(super) fn new(plan: &SearchPlan, indexes: &dyn Indexes) -> Self {
        let stream = |it: &wayleave_plan::search::SearchStream| {
            let spec = index_status::spec(&IndexDefinition::new(&it.view));
            let (id, name) = (it.view.connection_id(), it.view.name());
            let index = indexes.index(id, name, &spec);
            Stream {
                connection_id: it.view.connection_id().to_owned(),
                fields: it.fields.clone(),
                is_whole: it.is_whole(),
                state: match index {
                    // The index was built from a source that the mapping no longer describes.
                    _ if it.view.is_suspended() => {
                        State::Missing(MissingStream::Unread(failure::suspended(id, name)))
                    }
                    SearchIndexState::Ready(index) => State::Ready(index),
                    SearchIndexState::Making => State::Missing(MissingStream::Indexing),
                    SearchIndexState::Failed => State::Missing(MissingStream::NotIndexed),
                },
            }
        };
        let streams: Vec<Stream> = plan.streams().iter().map(stream).collect();
        Self {
            generation: generation(&streams),
            streams,
        }
    }

    /// A number that identifies everything the order of hits depends on.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn any_ready(&self) -> bool {
        let mut streams = self.streams.iter();
        streams.any(|it| matches!(it.state, State::Ready(_)))
    }

    /// Why a stream could not be read, other than a missing index.
    pub(super) fn unread(&self) -> Option<&Refusal> {
        self.streams.iter().find_map(|it| match &it.state {
            State::Missing(MissingStream::Unread(refusal)) => Some(refusal),
            _ => None,
        })
    }

    /// Whether an index is being built.
    pub(super) fn any_making(&self) -> bool {
        let mut streams = self.streams.iter();
        streams.any(|it| matches!(it.state, State::Missing(MissingStream::Indexing)))
    }

    /// The indexes to search, each with its stream's index in the plan.
    pub(super) fn ready(&self) -> ReadyIndexes {
        ReadyIndexes(
            self.streams
                .iter()
                .enumerate()
                .filter_map(|(at, it)| match &it.state {
                    State::Ready(index) => Some(ReadyIndex {
                        stream: at,
                        index: Arc::clone(index),
                        fields: it.fields.clone(),
                        counted: it.is_whole,
                    }),
                    State::Missing(_) => None,
                })
                .collect(),
        )
    }

    /// Excludes a stream from now on, with the reason.
    pub(super) fn fail(&mut self, stream: usize, why: MissingStream) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.state = State::Missing(why);
        }
    }

    pub(super) fn is_missing(&self, stream: usize) -> bool {
        let stream = self.streams.get(stream);
        stream.is_none_or(|it| matches!(it.state, State::Missing(_)))
    }

    /// The connections with a missing stream, each once, with the reason.
    pub(super) fn missing(&self) -> Vec<(String, MissingStream)> {
        let mut missing: Vec<(String, MissingStream)> = Vec::new();
        for stream in &self.streams {
            if let State::Missing(why) = &stream.state
                && !missing.iter().any(|(id, _)| *id == stream.connection_id)
            {
                missing.push((stream.connection_id.clone(), why.clone()));
            }
        }
        missing
    }

    /// Each connection once: missing ones first, then those with hits.
    pub(super) fn listed(&self, mix: &[(&str, usize)]) -> Vec<SearchedConnection<'_>> {
        let mut listed: Vec<SearchedConnection<'_>> = Vec::new();
        for stream in &self.streams {
            let id = stream.connection_id.as_str();
            let at = listed.iter().position(|it| it.connection_id == id);
            let at = at.unwrap_or_else(|| {
                listed.push(SearchedConnection {
                    connection_id: id,
                    hits: mix.iter().find(|it| it.0 == id).map_or(0, |it| it.1),
                    as_of: None,
                    missing: None,
                });
                listed.len() - 1
            });
            let Some(one) = listed.get_mut(at) else {
                continue;
            };
            match &stream.state {
                State::Missing(why) => one.missing = Some(why.as_str()),
                State::Ready(index) => {
                    let as_of = index.stamp().as_of;
                    one.as_of = Some(one.as_of.map_or(as_of, |before| before.min(as_of)));
                }
            }
        }
        listed.sort_by_key(|it| (it.missing.is_none(), std::cmp::Reverse(it.hits)));
        listed
    }
}

/// Combines the generations of all indexes, each with its position, into one; a missing index
/// counts too.
fn generation(streams: &[Stream]) -> u64 {
    let of = |stream: &Stream| match &stream.state {
        State::Ready(index) => index.generation(),
        State::Missing(_) => 0,
    };
    streams
        .iter()
        .map(of)
        .fold(streams.len() as u64, |all, one| {
            (all.rotate_left(5) ^ one).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
}

/// One connection of a search.
pub(super) struct SearchedConnection<'a> {
    connection_id: &'a str,
    hits: usize,
    /// The time of its oldest index.
    as_of: Option<i64>,
    /// Why one of its streams is missing.
    missing: Option<&'static str>,
}

impl SearchedConnection<'_> {
    fn to_json(&self) -> Json {
        let mut members = Map::new();
        members.insert("connection_id".to_owned(), self.connection_id.into());
        if let Some(as_of) = self.as_of {
            members.insert("as_of".to_owned(), time(as_of).into());
        }
        if let Some(why) = self.missing {
            members.insert("missing".to_owned(), why.into());
        }
        Json::Object(members)
    }

    fn text(&self) -> String {
        let as_of = self.as_of.map(|it| format!(" as_of {}", time(it)));
        let missing = self.missing.map(|why| format!(" missing: {why}"));
        format!(
            "{}{}{}",
            self.connection_id,
            as_of.unwrap_or_default(),
            missing.unwrap_or_default()
        )
    }
}

/// The connections as one line of text.
pub(super) fn text(listed: &[SearchedConnection<'_>]) -> String {
    let mut text: Vec<String> = listed
        .iter()
        .take(MAX_LISTED)
        .map(SearchedConnection::text)
        .collect();
    if listed.len() > MAX_LISTED {
        let oldest = listed.iter().filter_map(|it| it.as_of).min();
        let oldest = oldest.map(time).unwrap_or_default();
        text.push(format!(
            "{} more, none as_of before {oldest}",
            listed.len() - MAX_LISTED
        ));
    }
    text.join("; ")
}

/// The connections as structure, and their number.
pub(super) fn structure(listed: &[SearchedConnection<'_>]) -> (Json, usize) {
    let shown = listed
        .iter()
        .take(MAX_LISTED)
        .map(SearchedConnection::to_json);
    (shown.collect(), listed.len())
}

fn time(seconds: i64) -> String {
    datetime_text(seconds.saturating_mul(1_000_000))
}

/// Indexes that can go to another thread.
#[derive(Clone)]
pub(super) struct ReadyIndexes(Vec<ReadyIndex>);

#[derive(Clone)]
struct ReadyIndex {
    stream: usize,
    index: Arc<Index>,
    fields: Vec<String>,
    counted: bool,
}

impl ReadyIndexes {
    pub(super) fn sources(&self) -> Vec<SearchedIndex<'_>> {
        self.0.iter().map(ReadyIndex::source).collect()
    }

    /// Whether ranking is too short to be worth moving to another thread.
    pub(super) fn is_quick(&self, query: &Query) -> bool {
        const FEW_PARTS: usize = 3;
        const FEW_RECORDS: u64 = 2_000_000;
        let records: u64 = self.0.iter().map(|it| it.index.documents()).sum();
        query.words().is_some_and(|words| words <= FEW_PARTS)
            && self.0.len() <= FEW_PARTS
            && records <= FEW_RECORDS
    }

    /// The index in the plan of the stream behind a source.
    pub(super) fn stream(&self, source: usize) -> Option<usize> {
        self.0.get(source).map(|it| it.stream)
    }
}

impl ReadyIndex {
    fn source(&self) -> SearchedIndex<'_> {
        SearchedIndex {
            index: &self.index,
            fields: self.fields.iter().map(String::as_str).collect(),
            counted: self.counted,
        }
    }
}
