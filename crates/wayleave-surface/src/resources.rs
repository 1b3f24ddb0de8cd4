//! Typed records as resources: a page of each type, each record as JSON-LD, its long texts in
//! windows, and an inventory.
//!
//! Everything is read under the caller's package, through the same plans as the tools, so a type,
//! record or field that is not granted does not exist.

mod built_in;
pub mod doctor;
mod json_ld;
mod page;
mod parameter;
pub mod prov;
mod record;
mod schema;
mod where_clause;

use serde_json::{Value as Json, json};
use wayleave_mcp::{
    Caller, Read, ReadReply, Resource, ResourceTemplate, RpcError, TemplateError, Visibility,
};
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::{Code, Refusal};
use wayleave_plan::request::{CountKind, QueryRequest};
use wayleave_plan::value::Value;
use wayleave_plan::view::{ConnectionView, StreamView, View};

pub(crate) use built_in::BuiltIn;
pub(crate) use where_clause::is_forbidden;

use crate::call_context::CallContext;
use crate::live::ChangeFeedOptions;
use crate::service::ReadService;
use crate::{escape, ids};

/// Default number of records on a page of a type.
const DEFAULT_PAGE_RECORDS: u32 = 100;
/// Maximum number of records on a page.
const MAX_PAGE_RECORDS: u32 = 1_000;
/// Maximum offset of a page. Beyond it, use `query_records` and its cursors.
const MAX_OFFSET: u32 = 10_000;
/// Default length of a window of a text, in characters.
const DEFAULT_WINDOW_CHARS: u32 = 10_000;
/// Maximum number of characters of a window.
const MAX_WINDOW_CHARS: u32 = 100_000;
/// Maximum length of a label, in characters.
const MAX_LABEL_CHARS: usize = 200;

/// The URI template of a page of any type.
pub(crate) const PAGE: &str = "wayleave://kg/{type}{?where,limit,offset}";

/// The URI template of the pages of a type.
pub(crate) fn page_template_of(type_name: &str) -> String {
    format!("wayleave://kg/{type_name}{{?where,limit,offset}}")
}

/// The URI template of the records of a type.
pub(crate) fn record_template_of(type_name: &str) -> String {
    format!("wayleave://kg/{type_name}/{{id}}")
}

/// The URI template of the texts of a type's records.
pub(crate) fn window_template_of(type_name: &str) -> String {
    format!("wayleave://kg/{type_name}/{{id}}/{{field}}{{?offset,limit}}")
}

/// Every URI template of a type.
pub(crate) fn templates_of(type_name: &str) -> [String; 3] {
    [
        page_template_of(type_name),
        record_template_of(type_name),
        window_template_of(type_name),
    ]
}

/// The URI of the first page of a type.
pub(crate) fn type_uri(type_name: &str) -> String {
    format!("wayleave://kg/{type_name}")
}

/// The resource for the first page of a type.
pub(crate) fn type_resource(
    service: &ReadService,
    type_name: &str,
    who: Visibility,
    live: Option<ChangeFeedOptions>,
) -> Resource {
    let (service, wanted) = (service.clone(), type_name.to_owned());
    let note = live.map_or_else(String::new, |_| format!(" {}", ChangeFeedOptions::NOTE));
    let resource = Resource::new(type_uri(type_name), type_name, move |read| {
        let (service, wanted) = (service.clone(), wanted.clone());
        async move { page::read(&service, &read, &wanted).await }
    })
    .describe(format!(
        "The first {DEFAULT_PAGE_RECORDS} records of type {type_name}: iri and label of each. A \
         read costs one query a connection; more by limit and offset.{note}"
    ))
    .of_type("application/json")
    .visible(who);
    match live {
        Some(_) => resource.subscribable(),
        None => resource,
    }
}

/// The template for pages of every type.
pub(crate) fn pages(
    service: &ReadService,
    who: Visibility,
) -> Result<ResourceTemplate, TemplateError> {
    let service = service.clone();
    let template = ResourceTemplate::new(PAGE, "type", move |read: Read| {
        let service = service.clone();
        async move {
            match read.variables.get("type") {
                Some(wanted) => page::read(&service, &read, wanted).await,
                None => Ok(ReadReply::Missing),
            }
        }
    })?;
    Ok(template
        .describe(page_description("a type"))
        .of_type("application/json")
        .visible(who)
        .subscribable(refuse_query))
}

/// Refuses to watch a page: only whole types and single records are watched.
fn refuse_query(uri: &str, _: &Caller) -> Result<(), RpcError> {
    let whole = uri.split_once('?').map_or(uri, |(whole, _)| whole);
    Err(RpcError::query_not_subscribable(whole))
}

fn page_description(type_name: &str) -> String {
    format!(
        "Records of {type_name}, iri and label of each. where: one field=value. limit 1 to \
         {MAX_PAGE_RECORDS} ({DEFAULT_PAGE_RECORDS}), offset up to {MAX_OFFSET}."
    )
}

/// The templates of a type: its pages, its records by their ids, and the texts of these.
pub(crate) fn type_templates(
    service: &ReadService,
    type_name: &str,
    who: &Visibility,
    live: Option<ChangeFeedOptions>,
) -> Result<[ResourceTemplate; 3], TemplateError> {
    let (of_pages, of_records, of_windows) = (service.clone(), service.clone(), service.clone());
    let wanted = [(); 3].map(|()| type_name.to_owned());
    let [for_pages, for_records, for_windows] = wanted;
    let [pages, records, windows] = templates_of(type_name);
    let pages = ResourceTemplate::new(pages, format!("{type_name}-page"), move |read: Read| {
        let (service, wanted) = (of_pages.clone(), for_pages.clone());
        async move { page::read(&service, &read, &wanted).await }
    })?;
    let records = ResourceTemplate::new(records, type_name, move |read: Read| {
        let (service, wanted) = (of_records.clone(), for_records.clone());
        async move { record::read(&service, &read, &wanted).await }
    })?;
    let windows =
        ResourceTemplate::new(windows, format!("{type_name}-text"), move |read: Read| {
            let (service, wanted) = (of_windows.clone(), for_windows.clone());
            async move { record::read_window(&service, &read, &wanted).await }
        })?;
    let records = records
        .describe(format!("One {type_name} as JSON-LD, by its id."))
        .of_type("application/ld+json")
        .visible(who.clone());
    Ok([
        pages
            .describe(page_description(type_name))
            .of_type("application/json")
            .visible(who.clone())
            .subscribable(refuse_query),
        match live {
            Some(_) => records.subscribable(|_, _| Ok(())),
            None => records,
        },
        windows
            .describe(format!(
                "The text of one field of a {type_name}, in windows of limit characters: 1 to \
                 {MAX_WINDOW_CHARS} ({DEFAULT_WINDOW_CHARS})."
            ))
            .of_type("text/plain")
            .visible(who.clone()),
    ])
}

/// The visible streams of a type, in the order of their connections.
pub(crate) fn holders<'v>(
    view: &'v View,
    type_name: &'v str,
) -> impl Iterator<Item = (&'v ConnectionView, &'v StreamView)> {
    view.connections().iter().flat_map(move |connection| {
        let streams = connection.streams.iter();
        let of_type = streams.filter(move |stream| stream.type_name() == type_name);
        of_type.map(move |stream| (connection, stream))
    })
}

/// A query of the keys of a stream's first records that match a filter.
fn query_of(
    connection: &ConnectionView,
    stream: &StreamView,
    filter: Option<serde_json::Map<String, Json>>,
    limit: u32,
) -> QueryRequest {
    QueryRequest {
        stream: stream.name().to_owned(),
        connection_id: Some(connection.connection_id.clone()),
        filter,
        sort: Vec::new(),
        fields: Some(Vec::new()),
        expand: Vec::new(),
        limit,
        cursor: None,
        count: CountKind::None,
        changes_since: None,
    }
}

/// Record ids with their human-readable labels.
pub(crate) struct LabelledRecords {
    pub(crate) records: Vec<(String, String)>,
    pub(crate) more: bool,
}

/// The first records of a stream that match a filter.
pub(crate) async fn labelled(
    call: &CallContext<'_>,
    connection: &ConnectionView,
    stream: &StreamView,
    filter: Option<serde_json::Map<String, Json>>,
    limit: u32,
) -> Result<LabelledRecords, Refusal> {
    let title = stream.title().map(|field| field.name().to_owned());
    let request = QueryRequest {
        fields: Some(title.iter().cloned().collect()),
        ..query_of(connection, stream, filter, limit)
    };
    let plan = QueryPlan::new(&call.view, &request, call.seal)?;
    let read = call.rows(plan.rows(), call.max_bytes).await?;
    if read.cut {
        return Err(too_large());
    }
    let more = read.rows.len() > usize::try_from(limit).unwrap_or(usize::MAX);
    let page = plan.page_from_rows(read.rows);
    call.note_records(page.records());
    call.note_rows(page.records().len());
    let records = page.records().iter().map(|record| {
        let title = title.as_ref().and_then(|title| record.value(title));
        let label = title
            .and_then(Value::to_text)
            .map(|text| escape::inline(&text, MAX_LABEL_CHARS))
            .filter(|text| !text.trim().is_empty());
        let label = label.unwrap_or_else(|| {
            let key = ids::readable_key(record);
            format!(
                "{} {}",
                stream.type_name(),
                escape::inline(&key, MAX_LABEL_CHARS)
            )
        });
        (record.id(), label)
    });
    Ok(LabelledRecords {
        records: records.collect(),
        more,
    })
}

fn too_large() -> Refusal {
    Refusal::new(
        Code::ResultTooLarge,
        "too large for a resource: use `fetch` to read it in pieces, `query_records` with fewer \
         fields, or `wayleave://kg/<Type>/<id>/<field>` for one field",
    )
}

/// The error for a read that failed, as opposed to a missing resource.
fn failed(refusal: &Refusal) -> RpcError {
    RpcError::new(RpcError::INTERNAL, refusal.message.clone()).with_data(json!({
        "code": refusal.code.as_str(), "retryable": refusal.retryable,
    }))
}
