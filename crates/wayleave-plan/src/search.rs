//! `search`: which streams are searched, in which fields, and how candidates are read at their
//! source before anything of them is shown.
//!
//! Ranking is not done here. An index offers candidates by id; what this plan reads of them is
//! under the caller's own grant, rows and filter, so a candidate the caller may not see is not
//! there.

use std::collections::BTreeSet;
use std::sync::Arc;

use wayleave_model::digest::Digest;
use wayleave_model::mapping::SearchAnalyzer;

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

/// The most candidates that are read at once.
pub const MAX_CANDIDATES: usize = 100;

/// An authorized search.
#[derive(Debug, Clone)]
pub struct SearchPlan {
    streams: Vec<SearchStream>,
    limit: u32,
    after: Option<(HitPosition, u64)>,
    request: SearchRequest,
    binding: Binding,
}

/// One stream to search.
#[derive(Debug, Clone)]
pub struct SearchStream {
    /// The stream, as far as the caller may see it.
    pub view: StreamView,
    /// The connection's label.
    pub label: String,
    /// The fields to look in: searchable, granted and asked for.
    pub fields: Vec<String>,
    predicate: Predicate,
    layout: Layout,
    /// What the filter and the fields are read from besides the stream's own table.
    tables: Arc<Vec<JoinedTable>>,
}

/// A place in a ranking: right after this record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HitPosition {
    /// The record's score, in whole units.
    pub score: u64,
    /// The record's id.
    pub id: String,
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
                // Without `streams`, those are searched that the filter and the fields fit. Where none
                // is, the one tells best that knows a near miss.
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

    /// The stream at a place of [`streams`](Self::streams).
    #[expect(
        clippy::expect_used,
        reason = "a hit of no stream would be left out unseen"
    )]
    pub fn stream(&self, place: usize) -> &SearchStream {
        self.streams.get(place).expect("a stream of this plan")
    }

    /// At most so many hits, of all streams together.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Where the page begins.
    pub fn after(&self) -> Option<&HitPosition> {
        self.after.as_ref().map(|(place, _)| place)
    }

    /// The generation of the indexes that the walk began in; `None` on its first page.
    pub fn generation(&self) -> Option<u64> {
        self.after.as_ref().map(|(_, generation)| *generation)
    }

    /// The refusal of a walk that began in indexes that are gone.
    pub fn outlived(&self) -> Refusal {
        let message = "the indexes were refreshed since this walk began, and its order is gone; repeat the call without `cursor`";
        restart(&self.request, message)
    }

    /// The cursor that continues after a record, in the same generation of the indexes.
    pub fn cursor(&self, last: &HitPosition, generation: u64, seal: Seal<'_>) -> String {
        let position = CursorPosition {
            at: vec![
                Value::Integer(i128::from(last.score)),
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
            Some(filter) => {
                filter::of_caller(&mut scope, filter).map_err(|refusal| refusal.see(stream))?
            }
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
        let shown = shown.iter().filter_map(|field| scope.own(field)).collect();
        let layout = Layout::new(&mut scope, shown);
        scope.check_size()?;
        Ok(Self {
            view: stream.clone(),
            label: connection.label.clone(),
            fields: searched.iter().map(|it| it.name().to_owned()).collect(),
            predicate: Predicate::all([stream.base(), wanted]),
            layout,
            tables: scope.into_joins(),
        })
    }

    /// Whether the caller may see all rows. If not, no count of them may show in a score.
    pub fn is_whole(&self) -> bool {
        self.view.is_whole()
    }

    /// The names of the values of a [`record`](Self::record).
    pub fn header(&self) -> &[String] {
        self.layout.header()
    }

    /// Reads the records of these ids that the caller may see, the first
    /// [`MAX_CANDIDATES`]; `None` where no id is one of this stream's.
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
                each: None,
                limit,
                previews: false,
            },
        ))
    }

    /// A row as a record.
    pub fn record(&self, row: Vec<Value>) -> Record {
        self.layout.record(row)
    }
}

/// The values of a key that an id of one of the stream's records holds.
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

/// What the index of a stream is made of, whoever asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    /// The digest of the mapping.
    pub digest: Digest,
    /// All fields the mapping has searched, granted or not.
    pub fields: Vec<String>,
    /// How their words are made.
    pub analyzer: SearchAnalyzer,
}

impl Indexed {
    /// What the index of this stream is made of.
    pub fn new(stream: &StreamView) -> Self {
        let names = &stream.mapped.search;
        Self {
            digest: stream.mapping.digest(),
            fields: names.iter().map(|name| name.value.clone()).collect(),
            analyzer: stream.search_analyzer(),
        }
    }
}

/// A stream that can be searched, whoever asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchableStream {
    /// The dataset.
    pub connector_key: String,
    /// The connection.
    pub connection_id: String,
    /// The stream.
    pub stream: String,
    /// What its index is made of.
    pub indexed: Indexed,
    /// Whether its changes can be followed; if not, it is read whole again and again.
    pub is_tracked: bool,
}

/// Every stream of the active datasets that can be searched.
pub fn searchable(active: &ActiveDatasets) -> Vec<SearchableStream> {
    let view = View::new(active, &Package::local());
    let mut found = Vec::new();
    for connection in view.connections() {
        for stream in &connection.streams {
            let indexed = Indexed::new(stream);
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

/// Rows with one of these keys.
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

/// The streams a request names, or all.
fn named<'a>(
    view: &'a View,
    request: &SearchRequest,
) -> Result<Vec<(&'a ConnectionView, &'a StreamView)>, Refusal> {
    let connection = match &request.connection_id {
        None => None,
        Some(id) => Some(view.located(id)?),
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

/// The refusal of a search in which no field would be looked at: what could be named instead.
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
    let message = "no text of these streams can be searched; `query_records` with `contains` can look into others";
    Refusal::new(Code::InvalidRequest, message)
        .param("streams")
        .allowed(streams)
        .retry_with("streams")
        .next(Call::new("schema", []))
}

/// What a cursor is bound to: who asks, under which grants and mappings, and the search but for
/// its limit.
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
) -> Result<(HitPosition, u64), Refusal> {
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
            HitPosition {
                score,
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

/// The refusal of a cursor, with the call that begins anew.
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
