//! `search`: selects the streams and fields to search, and plans how candidates are read from their
//! source before anything of them is shown.
//!
//! Does not rank. An index proposes candidates by id, and this plan reads them under the caller's
//! own grant, rows and filter, so the read does not return a candidate that the caller may not see.

use std::collections::BTreeSet;
use std::sync::Arc;

use wayleave_model::digest::Digest;
use wayleave_model::mapping::SearchAnalyzer;
use wayleave_model::ranking::{RankPosition, Score};

use crate::active_datasets::ActiveDatasets;
use crate::filter;
use crate::id::RecordId;
use crate::layout::{self, Layout, Record};
use crate::package::Package;
use crate::plan::{AuthorizedPlan, Comparison, JoinedTable, Predicate, Rows};
use crate::query::canonical;
use crate::refusal::{Call, Code, Refusal};
use crate::request::SearchRequest;
use crate::scope::PathScope;
use crate::seal::{Binding, CURSOR_HOURS, CursorPosition, Seal};
use crate::value::Value;
use crate::view::{ConnectionView, FieldView, StreamView, Tracking, View};

/// Maximum number of candidates read at once.
pub const MAX_CANDIDATES: usize = 100;

/// An authorized search.
#[derive(Debug, Clone)]
pub struct SearchPlan {
    streams: Vec<SearchStream>,
    limit: u32,
    after: Option<(RankPosition, u64)>,
    request: SearchRequest,
    binding: Binding,
}

/// One stream to search.
#[derive(Debug, Clone)]
pub struct SearchStream {
    /// The stream, as the caller sees it.
    pub view: StreamView,
    /// The connection's label.
    pub label: String,
    /// The fields to search: searchable, granted and requested.
    pub fields: Vec<String>,
    predicate: Predicate,
    layout: Layout,
    /// The tables that the filter and the fields are read from, besides the stream's own.
    tables: Arc<Vec<JoinedTable>>,
}

impl SearchPlan {
    /// Plans a search.
    pub fn new(view: &View, request: &SearchRequest, seal: Seal<'_>) -> Result<Self, Refusal> {
        let mut streams = Vec::new();
        let mut refused = None;
        let named = named(view, request)?;
        for (connection, stream) in &named {
            match SearchStream::new(connection, stream, request) {
                Ok(stream) => streams.push(stream),
                // Without `streams`, search those that fit the filter and the fields. If none does,
                // prefer a refusal with a suggestion.
                Err(refusal) if request.streams.is_none() => {
                    let known: &mut Refusal = refused.get_or_insert_with(|| refusal.clone());
                    if known.did_you_mean.is_none() && refusal.did_you_mean.is_some() {
                        *known = refusal;
                    }
                }
                Err(refusal) => return Err(refusal),
            }
        }
        if let (true, Some(refusal)) = (streams.is_empty(), refused) {
            return Err(refusal);
        }
        streams.retain(|stream| !stream.fields.is_empty());
        if streams.is_empty() {
            return Err(nothing_to_search(view, &named));
        }
        let binding = binding(view, &streams, request);
        let after = match &request.cursor {
            None => None,
            Some(cursor) => Some(resumed(cursor, &binding, request, seal)?),
        };
        Ok(Self {
            streams,
            limit: request.limit,
            after,
            request: request.clone(),
            binding,
        })
    }

    /// The streams to search.
    pub fn streams(&self) -> &[SearchStream] {
        &self.streams
    }

    /// The stream at an index of [`streams`](Self::streams).
    #[expect(clippy::expect_used, reason = "a default would drop a hit silently")]
    pub fn stream(&self, place: usize) -> &SearchStream {
        self.streams.get(place).expect("a stream of this plan")
    }

    /// Maximum number of hits, over all streams.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The position that the page starts after.
    pub fn after(&self) -> Option<&RankPosition> {
        self.after.as_ref().map(|(place, _)| place)
    }

    /// The index generation in which the walk began; `None` on its first page.
    pub fn generation(&self) -> Option<u64> {
        self.after.as_ref().map(|(_, generation)| *generation)
    }

    /// The refusal of a walk whose index generation no longer exists.
    pub fn generation_expired(&self) -> Refusal {
        let message = "the indexes were refreshed since the first page, so this `cursor` is no longer valid; repeat the call without it";
        restart(&self.request, message)
    }

    /// The cursor that continues after a record, in the same index generation.
    pub fn cursor(&self, last: &RankPosition, generation: u64, seal: Seal<'_>) -> String {
        let position = CursorPosition {
            at: vec![
                Value::Integer(i128::from(last.score.units())),
                Value::Text(last.id.as_str().into()),
                Value::Integer(i128::from(generation)),
            ],
            horizon: None,
            settled: false,
        };
        seal.seal(&self.binding, CURSOR_HOURS, &position)
    }
}

impl SearchStream {
    fn new(
        connection: &ConnectionView,
        stream: &StreamView,
        request: &SearchRequest,
    ) -> Result<Self, Refusal> {
        let asked = |field: &&FieldView| {
            let fields = request.fields.as_ref();
            fields.is_none_or(|fields| fields.iter().any(|name| name == field.name()))
        };
        let mut scope = PathScope::new(connection, stream);
        let wanted = match &request.filter {
            None => Predicate::True,
            Some(filter) => filter::parse_caller_filter(&mut scope, filter)
                .map_err(|refusal| refusal.see(stream))?,
        };
        for name in request.fields.iter().flatten() {
            if stream.field(name).is_none() {
                return Err(layout::unknown_field(&scope, name, "fields").see(stream));
            }
        }
        let searched: Vec<&FieldView> = stream.search().filter(asked).collect();
        let mut shown: Vec<FieldView> = stream.key_fields().to_vec();
        let around = stream.title().into_iter().chain(stream.event_time());
        for field in searched.iter().copied().chain(around.filter(asked)) {
            if !shown.contains(field) {
                shown.push(field.clone());
            }
        }
        let shown = shown.iter().map(|field| scope.own(field)).collect();
        let layout = Layout::new(&mut scope, shown);
        scope.check_size()?;
        Ok(Self {
            view: stream.clone(),
            label: connection.label.clone(),
            fields: searched.iter().map(|it| it.name().to_owned()).collect(),
            predicate: Predicate::all([stream.visible_rows(), wanted]),
            layout,
            tables: scope.into_joins(),
        })
    }

    /// Whether the caller may see all rows. If not, scores must not depend on counts of rows.
    pub fn is_whole(&self) -> bool {
        self.view.is_whole()
    }

    /// The names of a [`record`](Self::record)'s values.
    pub fn header(&self) -> &[String] {
        self.layout.header()
    }

    /// Plans a read of these ids' records that the caller may see, up to [`MAX_CANDIDATES`]; `None`
    /// if no id belongs to this stream.
    pub fn rows<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Option<AuthorizedPlan> {
        let known: Vec<Vec<Value>> = ids
            .into_iter()
            .take(MAX_CANDIDATES)
            .filter_map(|id| key_of(&self.view, id))
            .collect();
        if known.is_empty() {
            return None;
        }
        let limit = u32::try_from(known.len()).unwrap_or(u32::MAX);
        Some(self.layout.plan(
            self.view.target(),
            Arc::clone(&self.tables),
            Rows {
                columns: Arc::clone(&self.layout.columns),
                predicate: Predicate::all([
                    one_of(self.view.key_fields(), known),
                    self.predicate.clone(),
                ]),
                order: layout::total(&self.view, Vec::new()),
                after: None,
                per_parent: None,
                limit,
                previews: false,
            },
        ))
    }

    /// Converts a row to a record.
    pub fn record(&self, row: Vec<Value>) -> Record {
        self.layout.record(row)
    }
}

/// The key values in the id of one of the stream's records.
pub(crate) fn key_of(stream: &StreamView, id: &str) -> Option<Vec<Value>> {
    let id = RecordId::parse(id).ok()?;
    let keys = stream.key_fields();
    let ours = id.connection_id == stream.connection_id() && id.stream == stream.name();
    if !ours || id.key.len() != keys.len() {
        return None;
    }
    keys.iter()
        .zip(&id.key)
        .map(|(field, text)| Value::from_text(field.datatype(), text).ok())
        .collect()
}

/// The definition of a stream's index. The same for every caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDefinition {
    /// The digest of the mapping.
    pub digest: Digest,
    /// All searchable fields of the mapping, granted or not.
    pub fields: Vec<String>,
    /// The text analyzer.
    pub analyzer: SearchAnalyzer,
}

impl IndexDefinition {
    /// The definition of this stream's index.
    pub fn new(stream: &StreamView) -> Self {
        let names = &stream.mapped.search;
        Self {
            digest: stream.mapping.digest(),
            fields: names.iter().map(|name| name.value.clone()).collect(),
            analyzer: stream.search_analyzer(),
        }
    }
}

/// A stream with searchable fields, independent of any caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchableStream {
    /// The dataset.
    pub connector_key: String,
    /// The connection.
    pub connection_id: String,
    /// The stream.
    pub stream: String,
    /// The definition of its index.
    pub indexed: IndexDefinition,
    /// Whether its changes can be followed. If not, it must be read completely for each refresh.
    pub is_tracked: bool,
}

/// Every stream of the active datasets that has searchable fields.
pub fn searchable(active: &ActiveDatasets) -> Vec<SearchableStream> {
    let view = View::new(active, &Package::local());
    let mut found = Vec::new();
    for connection in view.connections() {
        for stream in &connection.streams {
            let indexed = IndexDefinition::new(stream);
            if !indexed.fields.is_empty() {
                found.push(SearchableStream {
                    connector_key: connection.connector_key.clone(),
                    connection_id: connection.connection_id.clone(),
                    stream: stream.name().to_owned(),
                    is_tracked: stream.tracking() != Tracking::None,
                    indexed,
                });
            }
        }
    }
    found
}

/// The predicate of rows with one of these keys.
pub(crate) fn one_of(keys: &[FieldView], known: Vec<Vec<Value>>) -> Predicate {
    if let [only] = keys {
        return Predicate::In {
            column: only.own_column(),
            values: known.into_iter().flatten().collect(),
            negated: false,
        };
    }
    let equal = |(field, value): (&FieldView, Value)| Predicate::Compare {
        column: field.own_column(),
        comparison: Comparison::Eq,
        value,
    };
    Predicate::any(
        known
            .into_iter()
            .map(|values| Predicate::all(keys.iter().zip(values).map(equal))),
    )
}

/// The streams that a request names, or all.
fn named<'a>(
    view: &'a View,
    request: &SearchRequest,
) -> Result<Vec<(&'a ConnectionView, &'a StreamView)>, Refusal> {
    let connection = match &request.connection_id {
        None => None,
        Some(id) => Some(view.require_connection(id)?),
    };
    let within =
        |one: &&ConnectionView| connection.is_none_or(|it| it.connection_id == one.connection_id);
    let mut found = Vec::new();
    let Some(names) = &request.streams else {
        for connection in view.connections().iter().filter(within) {
            found.extend(connection.streams.iter().map(|stream| (connection, stream)));
        }
        return Ok(found);
    };
    for name in names {
        let before = found.len();
        let holders = view.holders(name).into_iter();
        found.extend(holders.filter(|(connection, _)| within(connection)));
        if found.len() == before {
            return Err(view
                .no_stream(name, connection)
                .param("streams")
                .retry_with("streams"));
        }
    }
    Ok(found)
}

/// The refusal of a search without any field to search, with the names that would work.
fn nothing_to_search(view: &View, named: &[(&ConnectionView, &StreamView)]) -> Refusal {
    let fields: BTreeSet<&str> = named
        .iter()
        .flat_map(|(_, stream)| stream.search())
        .map(FieldView::name)
        .collect();
    if !fields.is_empty() {
        let message = "none of `fields` can be searched in these streams";
        return Refusal::new(Code::InvalidRequest, message)
            .param("fields")
            .allowed(fields)
            .retry_with("fields");
    }
    let all = view.connections().iter().flat_map(|it| &it.streams);
    let streams: BTreeSet<&str> = all
        .filter(|stream| stream.search().next().is_some())
        .map(StreamView::name)
        .collect();
    let message =
        "these streams have no searchable text; use `query_records` with `contains` instead";
    Refusal::new(Code::InvalidRequest, message)
        .param("streams")
        .allowed(streams)
        .retry_with("streams")
        .next(Call::new("schema", []))
}

/// Binds a cursor to the caller, its grants, the mappings, and the search except for its limit.
fn binding(view: &View, streams: &[SearchStream], request: &SearchRequest) -> Binding {
    let searched: Vec<String> = streams
        .iter()
        .map(|stream| {
            let view = &stream.view;
            let (connection, name) = (view.connection_id(), view.name());
            format!("{connection}/{name}@{}", view.mapping.digest())
        })
        .collect();
    let mut fields = request.fields.clone().unwrap_or_default();
    fields.sort();
    Binding::from_parts(&[
        b"wayleave search 2",
        view.subject().as_bytes(),
        &view.epoch().to_be_bytes(),
        searched.join(",").as_bytes(),
        request.q.as_bytes(),
        canonical(request.filter.as_ref()).as_bytes(),
        &[u8::from(request.fields.is_some())],
        fields.join(",").as_bytes(),
    ])
}

fn resumed(
    cursor: &str,
    binding: &Binding,
    request: &SearchRequest,
    seal: Seal<'_>,
) -> Result<(RankPosition, u64), Refusal> {
    let opened = seal
        .open(binding, CURSOR_HOURS, cursor)
        .map(|position| position.at);
    if let Some(
        [
            Value::Integer(score),
            Value::Text(id),
            Value::Integer(generation),
        ],
    ) = opened.as_deref()
        && let (Ok(score), Ok(generation)) = (u64::try_from(*score), u64::try_from(*generation))
    {
        let id = id.clone();
        return Ok((
            RankPosition {
                score: Score::from_units(score),
                id: id.into(),
            },
            generation,
        ));
    }
    Err(restart(
        request,
        "`cursor` does not continue this call: it belongs to another call, has expired, or the data's mapping has changed; repeat the call without it",
    ))
}

/// The refusal of a cursor, with the call that starts over.
fn restart(request: &SearchRequest, message: &'static str) -> Refusal {
    let mut arguments = vec![("q", request.q.chars().take(200).collect::<String>().into())];
    if let Some(id) = &request.connection_id {
        arguments.push(("connection_id", id.clone().into()));
    }
    Refusal::new(Code::InvalidCursor, message)
        .param("cursor")
        .retry_with("cursor")
        .next(Call::new("search", arguments))
}
