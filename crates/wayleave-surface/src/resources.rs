//! Typed records as resources: a page of each type, and each record as JSON-LD.
//!
//! Everything is read under the caller's package, through the same plans as the tools, so a type,
//! record or field that is not granted does not exist.

mod json_ld;

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use wayleave_mcp::{
    Read, ReadReply, Resource, ResourceContents, ResourceTemplate, RpcError, TemplateError,
    Visibility,
};
use wayleave_plan::fetch::FetchPlan;
use wayleave_plan::package::Package;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::{Code, Refusal};
use wayleave_plan::request::{CountKind, FetchRequest, QueryRequest};
use wayleave_plan::value::Value;
use wayleave_plan::view::{ConnectionView, StreamView, View};

use crate::access::Access;
use crate::call_context::CallContext;
use crate::live::LiveOptions;
use crate::service::ReadService;
use crate::{escape, ids, url};

/// Default number of records on a page of a type.
const USUAL: u32 = 100;
/// Maximum number of records on a page.
const MAX_RECORDS: u32 = 1_000;
/// Maximum offset of a page. Beyond it, use `query_records` and its cursors.
const FARTHEST: u32 = 10_000;
/// Maximum size of the rows read for a page, in bytes.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum size of a record, in bytes.
const RECORD_BYTES: usize = 1024 * 1024;
/// Maximum length of a label, in characters.
const LABEL: usize = 200;

/// The URI template of a page of any type.
pub(crate) const PAGE: &str = "wayleave://kg/{type}{?limit,offset}";

/// The URI template of the records of a type.
pub(crate) fn record_template_of(type_name: &str) -> String {
    format!("wayleave://kg/{type_name}/{{id}}")
}

/// The URI of the first page of a type.
pub(crate) fn type_uri(type_name: &str) -> String {
    format!("wayleave://kg/{type_name}")
}

/// The resource for the first page of a type.
pub(crate) fn of_type(
    service: &ReadService,
    type_name: &str,
    who: Visibility,
    live: Option<LiveOptions>,
) -> Resource {
    let (service, wanted) = (service.clone(), type_name.to_owned());
    let note = live.map_or_else(String::new, |live| format!(" {}", live.note()));
    let resource = Resource::new(type_uri(type_name), type_name, move |read| {
        let (service, wanted) = (service.clone(), wanted.clone());
        async move { page(&service, &read, &wanted).await }
    })
    .describe(format!(
        "The first {USUAL} records of type {type_name}: iri and label of each. A read costs one \
         query a connection; more by limit and offset.{note}"
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
                Some(wanted) => page(&service, &read, wanted).await,
                None => Ok(ReadReply::Missing),
            }
        }
    })?;
    Ok(template
        .describe(format!(
            "Records of a type, iri and label of each: limit 1 to {MAX_RECORDS} ({USUAL}), offset up to \
             {FARTHEST}."
        ))
        .of_type("application/json")
        .visible(who)
        .subscribable(|uri, _| {
            let whole = uri.split_once('?').map_or(uri, |(whole, _)| whole);
            Err(RpcError::query_not_subscribable(whole))
        }))
}

/// The template for the records of a type, each by its id.
pub(crate) fn records(
    service: &ReadService,
    type_name: &str,
    who: Visibility,
    live: Option<LiveOptions>,
) -> Result<ResourceTemplate, TemplateError> {
    let (service, wanted) = (service.clone(), type_name.to_owned());
    let uri_template = record_template_of(type_name);
    let template = ResourceTemplate::new(uri_template, type_name, move |read: Read| {
        let (service, wanted) = (service.clone(), wanted.clone());
        async move { record(&service, &read, &wanted).await }
    })?;
    let template = template
        .describe(format!("One {type_name} as JSON-LD, by its id."))
        .of_type("application/ld+json")
        .visible(who);
    Ok(match live {
        Some(_) => template.subscribable(|_, _| Ok(())),
        None => template,
    })
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

async fn page(service: &ReadService, read: &Read, type_name: &str) -> Result<ReadReply, RpcError> {
    let limit = number(&read.variables, "limit", USUAL, 1, MAX_RECORDS)?;
    let offset = number(&read.variables, "offset", 0, 0, FARTHEST)?;
    let package = &Access::from_caller(read.context.caller()).package;
    let call = service.call(package, PAGE_BYTES);
    let listed = list(&call, type_name, offset, limit).await;
    let listed = listed.map_err(|refusal| failed(&refusal))?;
    let Some(listed) = listed else {
        return Ok(ReadReply::Missing);
    };
    let body = json!({
        "type": type_name,
        "records": listed.records,
        "limit": limit,
        "offset": offset,
        "more": listed.more,
    });
    let text = escape::json(&body);
    Ok(ResourceContents::text(&read.uri, "application/json", text).into())
}

/// Parses a bounded number from the variables of a URI.
fn number(
    variables: &BTreeMap<String, String>,
    name: &'static str,
    usual: u32,
    least: u32,
    most: u32,
) -> Result<u32, RpcError> {
    let Some(text) = variables.get(name) else {
        return Ok(usual);
    };
    let number = text.parse().ok().filter(|it| (least..=most).contains(it));
    number.ok_or_else(|| {
        RpcError::invalid_params(format!("`{name}` is a number from {least} to {most}")).with_data(
            json!({ "field": name, "reason": "type_mismatch", "expected_datatype": "integer",
                "minimum": least, "maximum": most }),
        )
    })
}

struct ListedType {
    records: Vec<Json>,
    more: bool,
}

/// Records of a type, over all connections that hold it; `None` where none is visible.
async fn list(
    call: &CallContext<'_>,
    type_name: &str,
    offset: u32,
    limit: u32,
) -> Result<Option<ListedType>, Refusal> {
    let (mut skip, mut records, mut seen) = (offset, Vec::new(), false);
    let mut more = false;
    let enough = usize::try_from(limit).unwrap_or(usize::MAX);
    for (connection, stream) in holders(&call.view, type_name) {
        seen = true;
        let missing = limit - u32::try_from(records.len()).unwrap_or(limit).min(limit);
        let labelled = labelled(call, connection, stream, None, skip + missing).await?;
        let passed = u32::try_from(labelled.records.len())
            .unwrap_or(u32::MAX)
            .min(skip);
        let from = usize::try_from(passed).unwrap_or(usize::MAX);
        skip -= passed;
        for (id, label) in labelled.records.into_iter().skip(from) {
            records.push(json!({ "iri": url::record(type_name, &id), "label": label }));
        }
        more |= labelled.more || records.len() > enough;
        if records.len() >= enough && more {
            break;
        }
    }
    records.truncate(enough);
    Ok(seen.then_some(ListedType { records, more }))
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
        stream: stream.name().to_owned(),
        connection_id: Some(connection.connection_id.clone()),
        filter,
        sort: Vec::new(),
        fields: Some(title.iter().cloned().collect()),
        expand: Vec::new(),
        limit,
        cursor: None,
        count: CountKind::None,
        changes_since: None,
    };
    let plan = QueryPlan::new(&call.view, &request, call.seal)?;
    let read = call.rows(plan.rows(), call.max_bytes).await?;
    if read.cut {
        return Err(too_large());
    }
    let more = read.rows.len() > usize::try_from(limit).unwrap_or(usize::MAX);
    let page = plan.page_of(read.rows);
    let records = page.records().iter().map(|record| {
        let title = title.as_ref().and_then(|title| record.value(title));
        let label = title
            .and_then(Value::to_text)
            .map(|text| escape::inline(&text, LABEL))
            .filter(|text| !text.trim().is_empty());
        let label = label.unwrap_or_else(|| {
            let key = ids::readable_key(record);
            format!("{} {}", stream.type_name(), escape::inline(&key, LABEL))
        });
        (record.id(), label)
    });
    Ok(LabelledRecords {
        records: records.collect(),
        more,
    })
}

async fn record(
    service: &ReadService,
    read: &Read,
    type_name: &str,
) -> Result<ReadReply, RpcError> {
    let Some(id) = read.variables.get("id").cloned() else {
        return Ok(ReadReply::Missing);
    };
    let package: &Package = &Access::from_caller(read.context.caller()).package;
    let call = service.call(package, RECORD_BYTES);
    match document(&call, type_name, id).await {
        Ok(Some(document)) => {
            let text = escape::json(&document);
            Ok(ResourceContents::text(&read.uri, "application/ld+json", text).into())
        }
        Ok(None) => Ok(ReadReply::Missing),
        // Another type, connection or stream, a malformed id, and a record that does not exist or
        // is not granted all give the same answer.
        Err(refusal) if is_missing(refusal.code) => Ok(ReadReply::Missing),
        Err(refusal) => Err(failed(&refusal)),
    }
}

fn is_missing(code: Code) -> bool {
    matches!(
        code,
        Code::NotFound | Code::UnknownStream | Code::InvalidRequest
    )
}

async fn document(
    call: &CallContext<'_>,
    type_name: &str,
    id: String,
) -> Result<Option<Json>, Refusal> {
    let request = FetchRequest {
        id,
        connection_id: None,
        fields: None,
        expand: Vec::new(),
        offset: 0,
    };
    let plan = FetchPlan::new(&call.view, &request)?;
    if plan.view().type_name() != type_name {
        return Ok(None);
    }
    let read = call.rows(plan.rows(), call.max_bytes).await?;
    if read.cut {
        return Err(too_large());
    }
    let record = plan.record(&read.rows)?;
    Ok(Some(json_ld::document(plan.view(), plan.header(), &record)))
}

fn too_large() -> Refusal {
    Refusal::new(
        Code::ResultTooLarge,
        "this exceeds a resource; fetch reads it in pieces, and query_records fewer fields of it",
    )
}

/// The error for a read that failed, as opposed to a missing resource.
fn failed(refusal: &Refusal) -> RpcError {
    RpcError::new(RpcError::INTERNAL, refusal.message.clone()).with_data(json!({
        "code": refusal.code.as_str(), "retryable": refusal.retryable,
    }))
}
