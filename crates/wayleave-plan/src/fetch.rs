//! `fetch`: one record by its id.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::expand::{self, Expansion};
use crate::id::RecordId;
use crate::layout::{self, Layout, Record};
use crate::plan::{AuthorizedPlan, Comparison, Predicate, Rows};
use crate::read_tool::ReadTool;
use crate::refusal::{Call, Code, Refusal, quoted};
use crate::request::FetchRequest;
use crate::scope::PathScope;
use crate::value::Value;
use crate::view::{ConnectionView, StreamView, View};

/// An authorized fetch.
#[derive(Debug, Clone)]
pub struct FetchPlan {
    id: RecordId,
    stream: StreamView,
    label: String,
    key: Vec<Value>,
    layout: Layout,
    rows: AuthorizedPlan,
    expansions: Vec<Expansion>,
}

impl FetchPlan {
    /// Plans a fetch.
    pub fn new(view: &View, request: &FetchRequest) -> Result<Self, Refusal> {
        let id = RecordId::parse(&request.id).map_err(|_| malformed(view, request))?;
        if let Some(explicit) = &request.connection_id
            && *explicit != id.connection_id
        {
            let message = format!(
                "conflicting connections: the id says `{}`, `connection_id` says {}",
                id.connection_id,
                quoted(explicit)
            );
            return Err(Refusal::new(Code::InvalidRequest, message)
                .param("connection_id")
                .retry_with("connection_id")
                .next(Call::new("fetch", [("id", request.id.clone().into())])));
        }
        let (connection, stream) = view
            .locate(ReadTool::Fetch, &id.stream, Some(&id.connection_id))
            .map_err(|refusal| refusal.param("id").retry_with("id"))?;
        Self::build(connection, stream, request, id).map_err(|refusal| refusal.see(stream))
    }

    fn build(
        connection: &ConnectionView,
        stream: &StreamView,
        request: &FetchRequest,
        id: RecordId,
    ) -> Result<Self, Refusal> {
        let (own, theirs) = expand::split(request.fields.as_deref(), &request.expand);
        let mut scope = PathScope::new(connection, stream);
        let mut layout = Layout::with_fields(&mut scope, own.as_deref())?;
        let keys = stream.key_fields();
        let values: Option<Vec<Value>> = keys
            .iter()
            .zip(&id.key)
            .map(|(field, text)| Value::from_text(field.datatype(), text).ok())
            .collect();
        // No record has a malformed key.
        let values = values
            .filter(|_| keys.len() == id.key.len() && !id.key.iter().any(|k| k.contains('\0')))
            .ok_or_else(|| missing(&id))?;
        let key = keys
            .iter()
            .zip(values.clone())
            .map(|(field, value)| Predicate::Compare {
                column: field.own_column(),
                comparison: Comparison::Eq,
                value,
            });
        scope.check_size()?;
        let order = layout::total(stream, Vec::new());
        let expansions =
            expand::plan_expansions(connection, stream, &request.expand, &theirs, &mut layout)?;
        Ok(Self {
            stream: stream.clone(),
            label: connection.label.clone(),
            key: values,
            rows: layout.plan(
                stream.target(),
                scope.into_joins(),
                Rows {
                    columns: Arc::clone(&layout.columns),
                    predicate: Predicate::all([Predicate::all(key), stream.visible_rows()]),
                    order,
                    after: None,
                    per_parent: None,
                    limit: 1,
                    previews: false,
                },
            ),
            layout,
            expansions,
            id,
        })
    }

    /// The connection of the record.
    pub fn connection_id(&self) -> &str {
        &self.id.connection_id
    }

    /// The values of the key, in key order.
    pub fn key(&self) -> &[Value] {
        &self.key
    }

    /// The key as the record's id spells it.
    pub fn key_text(&self) -> String {
        RecordId::key_text(&self.key)
    }

    /// The connection's label.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The dataset of the record.
    pub fn connector_key(&self) -> &str {
        self.stream.connector_key()
    }

    /// The stream of the record.
    pub fn stream(&self) -> &str {
        &self.id.stream
    }

    /// The stream of the record, as the caller sees it.
    pub fn view(&self) -> &StreamView {
        &self.stream
    }

    /// The fields of the answer, in order.
    pub fn header(&self) -> &[String] {
        self.layout.header()
    }

    /// The row to read.
    pub fn rows(&self) -> &AuthorizedPlan {
        &self.rows
    }

    /// The relations to follow.
    pub fn expansions(&self) -> &[Expansion] {
        &self.expansions
    }

    /// The record, or `not_found`.
    pub fn record(&self, rows: &[Vec<Value>]) -> Result<Record, Refusal> {
        match rows.first() {
            Some(row) => Ok(self.layout.record(row.clone())),
            None => Err(missing(&self.id)),
        }
    }
}

fn malformed(view: &View, request: &FetchRequest) -> Refusal {
    let message = format!(
        "{} is not a record id; write `connection_id/stream:key`, as in results",
        quoted(&request.id)
    );
    let refusal = Refusal::new(Code::InvalidRequest, message)
        .param("id")
        .retry_with("id");
    match whole(view, request) {
        Some(id) => {
            let next = Call::new("fetch", [("id", id.as_str().into())]);
            let mut refusal = refusal.next(next);
            refusal.did_you_mean = Some(id);
            refusal
        }
        None => refusal.next(Call::new("schema", [])),
    }
}

/// Completes an id given as `stream:key` or `stream/key`, if one connection holds the stream.
fn whole(view: &View, request: &FetchRequest) -> Option<String> {
    const MAX_KEY_LENGTH: usize = 200;
    let (stream, key) = request.id.split_once([':', '/'])?;
    let connection = request.connection_id.as_deref();
    let (connection, stream) = view.locate(ReadTool::Fetch, stream, connection).ok()?;
    let id = format!("{}/{}:{key}", connection.connection_id, stream.name());
    (id.len() <= MAX_KEY_LENGTH && RecordId::parse(&id).is_ok()).then_some(id)
}

fn missing(id: &RecordId) -> Refusal {
    let message = format!("there is no record {}", quoted(&id.to_string()));
    Refusal::new(Code::NotFound, message)
        .param("id")
        .next(Call::new(
            "query_records",
            [
                ("stream", Json::from(id.stream.as_str())),
                ("connection_id", id.connection_id.as_str().into()),
            ],
        ))
}
