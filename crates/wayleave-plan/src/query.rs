//! `query_records`: a page of records, a count, and walks of changes.
//!
//! A plan reads one row more than the page holds, to know whether another page follows. If a result
//! must end early, `next_cursor` continues after the last record shown.

mod changes;
mod page;

use std::sync::Arc;

use serde_json::Value as Json;

pub use page::Page;

use crate::expand::{self, Expansion};
use crate::filter;
use crate::layout::{self, Layout};
use crate::plan::{AuthorizedPlan, JoinedTable, Predicate, Read, Rows};
use crate::read_tool::ReadTool;
use crate::refusal::{Call, Code, Refusal};
use crate::request::{CountKind, QueryRequest, SortKey};
use crate::scope::PathScope;
use crate::seal::{Binding, CURSOR_HOURS, CursorPosition, Seal};
use crate::value::{Value, sorted_object};
use crate::view::{ConnectionView, StreamView, View};
use changes::Changes;

/// An authorized query: its reads, and how to build a page from their rows.
#[derive(Debug, Clone)]
pub struct QueryPlan {
    stream: StreamView,
    layout: Layout,
    rows: AuthorizedPlan,
    count: Option<AuthorizedPlan>,
    expansions: Vec<Expansion>,
    limit: u32,
    changes: Option<Changes>,
    binding: Binding,
}

impl QueryPlan {
    /// Plans a query.
    pub fn new(view: &View, request: &QueryRequest, seal: Seal<'_>) -> Result<Self, Refusal> {
        let connection_id = request.connection_id.as_deref();
        let (connection, stream) =
            view.locate(ReadTool::QueryRecords, &request.stream, connection_id)?;
        Self::build(view, connection, stream, request, seal).map_err(|refusal| refusal.see(stream))
    }

    fn build(
        view: &View,
        connection: &ConnectionView,
        stream: &StreamView,
        request: &QueryRequest,
        seal: Seal<'_>,
    ) -> Result<Self, Refusal> {
        let (own, theirs) = expand::split(request.fields.as_deref(), &request.expand);
        let mut scope = PathScope::new(connection, stream);
        let layout = Layout::with_fields(&mut scope, own.as_deref())?;
        let wanted = match &request.filter {
            None => Predicate::True,
            Some(filter) => filter::parse_caller_filter(&mut scope, filter)?,
        };
        let changes = changes::begin(view, connection, stream, request, seal)?;
        let order = match &changes {
            None => layout::order(&mut scope, &request.sort)?,
            Some(_) => changes::order(stream),
        };
        let predicate = match &changes {
            None => Predicate::all([stream.visible_rows(), wanted]),
            Some(changes) => Predicate::all([stream.granted_rows(), wanted, changes.since()]),
        };
        let mut layout = layout.ordered(&order);
        if changes.is_some() {
            layout = layout.with_deleted(stream.deleted());
        }
        let expansions =
            expand::plan_expansions(connection, stream, &request.expand, &theirs, &mut layout)?;
        let binding = binding(view, stream, request);
        scope.check_size()?;
        let tables = scope.into_joins();
        let mut plan = Self {
            stream: stream.clone(),
            count: count(stream, &tables, &predicate, request.count),
            rows: layout.plan(
                stream.target(),
                tables,
                Rows {
                    columns: Arc::clone(&layout.columns),
                    predicate,
                    order,
                    after: None,
                    per_parent: None,
                    limit: request.limit + 1,
                    previews: false,
                },
            ),
            layout,
            expansions,
            limit: request.limit,
            changes,
            binding,
        };
        if let Some(cursor) = &request.cursor {
            plan.resume(cursor, seal)?;
        }
        Ok(plan)
    }

    /// Lets the store return only the beginning of texts too long for any page. Has no effect if
    /// relations are expanded, because the join may need any value, or if a column is masked,
    /// because the mask may show the end of a text.
    #[must_use]
    pub fn with_previews(mut self) -> Self {
        if self.expansions.is_empty() && !self.rows.is_masked() {
            rows_mut(&mut self.rows).previews = true;
        }
        self
    }

    /// Continues from a cursor.
    fn resume(&mut self, cursor: &str, seal: Seal<'_>) -> Result<(), Refusal> {
        let refusal = || refused(self, "cursor");
        let position = seal
            .open(&self.binding, CURSOR_HOURS, cursor)
            .ok_or_else(refusal)?;
        if let Some(changes) = &mut self.changes {
            changes.bound(position.horizon, rows_mut(&mut self.rows));
        }
        // The binding includes the order, so our own cursors always match.
        if position.at.len() != rows_mut(&mut self.rows).order.len() {
            return Err(refused(self, "cursor"));
        }
        rows_mut(&mut self.rows).after = Some(position.at);
        Ok(())
    }

    /// The connection of the stream.
    pub fn connection_id(&self) -> &str {
        self.stream.connection_id()
    }

    /// The dataset of the stream.
    pub fn connector_key(&self) -> &str {
        self.stream.connector_key()
    }

    /// The stream.
    pub fn stream(&self) -> &str {
        self.stream.name()
    }

    /// The stream, as the caller sees it.
    pub fn view(&self) -> &StreamView {
        &self.stream
    }

    /// The fields of the answer, in order.
    pub fn header(&self) -> &[String] {
        self.layout.header()
    }

    /// Whether records can be tombstones: in a walk of changes, if the mapping has a mark of
    /// deletion.
    pub fn marks_deleted(&self) -> bool {
        self.layout.marks_deleted()
    }

    /// On the first page of a walk of changes, the read of its horizon. Its one value must be
    /// passed to [`with_horizon`](Self::with_horizon) before the rows are read, so that all pages of
    /// the walk end at the same point.
    pub fn horizon(&self) -> Option<&AuthorizedPlan> {
        self.changes.as_ref()?.horizon_plan()
    }

    /// Limits the walk to the horizon that [`horizon`](Self::horizon) read.
    #[must_use]
    pub fn with_horizon(mut self, horizon: Value) -> Self {
        if let Some(changes) = &mut self.changes {
            changes.bound(Some(horizon), rows_mut(&mut self.rows));
        }
        self
    }

    /// The rows to read: up to one more than the page holds.
    pub fn rows(&self) -> &AuthorizedPlan {
        &self.rows
    }

    /// Whether a walk can continue after this row: none of the order's values is malformed.
    pub fn can_resume_after(&self, row: &[Value]) -> bool {
        let mut position = self.layout.position(row);
        position.all(|value| value != Value::Malformed)
    }

    /// The read of the count, if requested.
    pub fn count(&self) -> Option<&AuthorizedPlan> {
        self.count.as_ref()
    }

    /// The relations to expand once the page is read.
    pub fn expansions(&self) -> &[Expansion] {
        &self.expansions
    }

    /// Builds the page from the store's rows.
    pub fn page(&self, rows: &[Vec<Value>]) -> Page<'_> {
        self.page_from_rows(rows.to_vec())
    }

    /// Like [`page`](Self::page), for rows that are no longer needed.
    pub fn page_from_rows(&self, rows: Vec<Vec<Value>>) -> Page<'_> {
        Page::new(self, rows)
    }
}

/// The read of a count: from statistics only if they can answer it, exactly otherwise.
fn count(
    stream: &StreamView,
    tables: &Arc<Vec<JoinedTable>>,
    predicate: &Predicate,
    kind: CountKind,
) -> Option<AuthorizedPlan> {
    let exact = match kind {
        CountKind::None => return None,
        CountKind::Exact => true,
        CountKind::Estimated => *predicate != Predicate::True,
    };
    Some(AuthorizedPlan::new(
        stream.target(),
        JoinedTable::needed(tables, predicate),
        Read::Count {
            predicate: predicate.clone(),
            exact,
        },
    ))
}

/// Binds a page cursor to the caller, its grants, the mapping, and the query except for its limit
/// and count.
fn binding(view: &View, stream: &StreamView, request: &QueryRequest) -> Binding {
    let sort: Vec<String> = request.sort.iter().map(SortKey::to_string).collect();
    let mut fields = request.fields.clone().unwrap_or_default();
    fields.sort();
    Binding::from_parts(&[
        b"wayleave cursor 1",
        view.subject().as_bytes(),
        &view.epoch().to_be_bytes(),
        stream.mapping.digest().as_bytes(),
        stream.connection_id().as_bytes(),
        stream.name().as_bytes(),
        canonical(request.filter.as_ref()).as_bytes(),
        sort.join(",").as_bytes(),
        &[u8::from(request.fields.is_some())],
        fields.join(",").as_bytes(),
        request.expand.join(",").as_bytes(),
        request.changes_since.as_deref().unwrap_or("").as_bytes(),
    ])
}

/// A filter with sorted keys, because their order has no meaning.
pub(crate) fn canonical(filter: Option<&serde_json::Map<String, Json>>) -> String {
    filter.map_or_else(String::new, |filter| sorted_object(filter).to_string())
}

/// The rows that a query's plan reads.
#[expect(clippy::expect_used, reason = "`QueryPlan::new` plans rows")]
fn rows_mut(plan: &mut AuthorizedPlan) -> &mut Rows {
    match plan.read_mut() {
        Read::Rows(rows) => Some(rows),
        Read::Groups(_) | Read::Count { .. } => None,
    }
    .expect("a query reads rows")
}

/// The single refusal for all cursors and bookmarks that do not open.
fn refused(plan: &QueryPlan, param: &'static str) -> Refusal {
    refused_at(plan.stream(), plan.connection_id(), param)
}

fn refused_at(stream: &str, connection_id: &str, param: &'static str) -> Refusal {
    let mut arguments = vec![
        ("stream", Json::from(stream)),
        ("connection_id", Json::from(connection_id)),
    ];
    let message = if param == "cursor" {
        "`cursor` does not continue this call: it belongs to another call, has expired, or the data's mapping has changed; repeat the call without it"
    } else {
        arguments.push(("changes_since", "beginning".into()));
        "`changes_since` is not a bookmark of this call: it belongs to another call, has expired, or the data's mapping has changed; start over"
    };
    Refusal::new(Code::InvalidCursor, message)
        .param(param)
        .retry_with(param)
        .next(Call::new("query_records", arguments))
}

/// A position within a page of ordinary rows.
fn position(at: Vec<Value>, horizon: Option<Value>) -> CursorPosition {
    CursorPosition {
        at,
        horizon,
        settled: false,
    }
}
