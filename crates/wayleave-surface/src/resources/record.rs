//! One record by its id: as JSON-LD, and one of its fields as text, window by window.

use serde_json::{Map, Value as Json, json};
use wayleave_mcp::{Read, ReadReply, ResourceContents, RpcError};
use wayleave_model::mapping::Relation;
use wayleave_plan::Record;
use wayleave_plan::fetch::FetchPlan;
use wayleave_plan::id::RecordId;
use wayleave_plan::refusal::{Code, Refusal};
use wayleave_plan::request::{FetchRequest, address};
use wayleave_plan::value::Value;
use wayleave_plan::view::{ConnectionView, StreamView, View};

use super::json_ld::{self, Link};
use super::parameter::{InvalidParameter, NumberParameter};
use super::{DEFAULT_WINDOW_CHARS, MAX_WINDOW_CHARS, failed, too_large};
use crate::access::Access;
use crate::call_context::CallContext;
use crate::escape;
use crate::service::ReadService;

/// Maximum size of a record, in bytes.
const MAX_RECORD_BYTES: usize = 1024 * 1024;
/// Maximum number of relations followed by one statement. Computed fields follow others beside them.
const MAX_RELATIONS_PER_READ: usize = 20;
/// Member of `_meta` that describes the window.
const META: &str = "io.wayleave/window";

const LIMIT: NumberParameter = NumberParameter {
    name: "limit",
    default: DEFAULT_WINDOW_CHARS,
    min: 1,
    max: MAX_WINDOW_CHARS,
    hint: "",
};

const OFFSET: NumberParameter = NumberParameter {
    name: "offset",
    default: 0,
    min: 0,
    max: u32::MAX,
    hint: "",
};

/// Reads a record as JSON-LD.
pub(super) async fn read(
    service: &ReadService,
    read: &Read,
    type_name: &str,
) -> Result<ReadReply, RpcError> {
    let Some(id) = read.variables.get("id") else {
        return Ok(ReadReply::Missing);
    };
    let package = &Access::from_caller(read.context.caller()).package;
    let call = service.context(package, MAX_RECORD_BYTES);
    let document = document(&call, type_name, id).await;
    found(document, |document| {
        let text = escape::json(&document);
        ResourceContents::text(&read.uri, "application/ld+json", text)
    })
}

/// Reads a window of a field's text.
pub(super) async fn read_window(
    service: &ReadService,
    read: &Read,
    type_name: &str,
) -> Result<ReadReply, RpcError> {
    let variable = |name: &str| read.variables.get(name);
    let (Some(id), Some(field)) = (variable("id"), variable("field")) else {
        return Ok(ReadReply::Missing);
    };
    let package = &Access::from_caller(read.context.caller()).package;
    let call = service.context(package, MAX_RECORD_BYTES);
    let text = match field_text(&call, type_name, id, field).await {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(ReadReply::Missing),
        Err(refusal) if is_missing(refusal.code) => return Ok(ReadReply::Missing),
        Err(refusal) => return Err(failed(&refusal)),
    };
    let limit = LIMIT.read(&read.variables)?;
    let offset = OFFSET.read(&read.variables)?;
    let characters = text.chars().count();
    let from = usize::try_from(offset).unwrap_or(usize::MAX);
    if from > characters {
        let message = format!("the text has {characters} characters, and `offset` is beyond them");
        let refused = InvalidParameter::new("offset", "out_of_range", message)
            .with("expected_datatype", "integer")
            .with("minimum", 0)
            .with("maximum", characters);
        return Err(refused.into());
    }
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let window: String = text.chars().skip(from).take(most).collect();
    let end = from.saturating_add(most);
    let mut meta = json!({ "offset": offset, "limit": limit, "characters": characters });
    if let (true, Json::Object(meta)) = (end < characters, &mut meta) {
        meta.insert("next_offset".to_owned(), end.into());
    }
    let meta = Map::from_iter([(META.to_owned(), meta)]);
    let contents = ResourceContents::text(&read.uri, "text/plain", window);
    Ok(contents.with_meta(meta).into())
}

fn found<T>(
    read: Result<Option<T>, Refusal>,
    written: impl FnOnce(T) -> ResourceContents,
) -> Result<ReadReply, RpcError> {
    match read {
        Ok(found) => Ok(found.map(written).into()),
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

/// The visible stream of a type that a record's id names.
fn located<'v>(
    view: &'v View,
    type_name: &str,
    id: &str,
) -> Option<(&'v ConnectionView, &'v StreamView)> {
    let id = RecordId::parse(id).ok()?;
    let connection = view.connection(&id.connection_id)?;
    let stream = connection.stream(&id.stream)?;
    (stream.type_name() == type_name).then_some((connection, stream))
}

async fn document(
    call: &CallContext<'_>,
    type_name: &str,
    id: &str,
) -> Result<Option<Json>, Refusal> {
    let Some((connection, stream)) = located(&call.view, type_name, id) else {
        return Ok(None);
    };
    let relations: Vec<_> = to_one(connection, stream).collect();
    let (first, rest) = relations.split_at(relations.len().min(MAX_RELATIONS_PER_READ));
    let mut fields: Vec<String> = stream.fields().map(|it| it.name().to_owned()).collect();
    fields.extend(keys(first));
    let record = fetched(call, id, fields).await?;
    let mut links: Vec<Link> = first.iter().map(|it| link(stream, it, &record)).collect();
    for some in rest.chunks(MAX_RELATIONS_PER_READ) {
        let record = fetched(call, id, keys(some).collect()).await?;
        links.extend(some.iter().map(|it| link(stream, it, &record)));
    }
    Ok(Some(json_ld::document(stream, &record, links)))
}

/// A to-one relation, and the stream it leads to.
type ToOne<'v> = (&'v Relation, &'v StreamView);

fn to_one<'v>(
    connection: &'v ConnectionView,
    stream: &'v StreamView,
) -> impl Iterator<Item = ToOne<'v>> {
    let relations = stream.relations().filter(move |it| stream.is_to_one(it));
    relations.filter_map(move |it| Some((it, connection.stream(&it.to)?)))
}

/// The paths to the keys of related records.
fn keys(relations: &[ToOne<'_>]) -> impl Iterator<Item = String> {
    relations.iter().flat_map(|(relation, target)| {
        let keys = target.key_fields().iter();
        keys.map(move |key| format!("{}.{}", relation.name, key.name()))
    })
}

/// The target of a relation of a record; none also if the target's grant hides it.
fn link(stream: &StreamView, (relation, target): &ToOne<'_>, record: &Record) -> Link {
    let keys = target.key_fields().iter();
    let key: Option<Vec<&Value>> = keys
        .map(|key| record.value(&format!("{}.{}", relation.name, key.name())))
        .map(|value| value.filter(|it| !matches!(it, Value::Null | Value::Malformed)))
        .collect();
    Link {
        predicate: stream.relation_iri(relation),
        to: key.map(|key| address::record(target.type_name(), &target.record_id(key))),
    }
}

async fn fetched(call: &CallContext<'_>, id: &str, fields: Vec<String>) -> Result<Record, Refusal> {
    let plan = FetchPlan::new(&call.view, &fetch_of(id, fields))?;
    let read = call.rows(plan.rows(), call.max_bytes).await?;
    if read.cut {
        return Err(too_large());
    }
    let record = plan.record(&read.rows)?;
    call.note_records([&record]);
    call.note_rows(1);
    Ok(record)
}

fn fetch_of(id: &str, fields: Vec<String>) -> FetchRequest {
    FetchRequest {
        id: id.to_owned(),
        connection_id: None,
        fields: Some(fields),
        expand: Vec::new(),
        offset: 0,
    }
}

/// The text of a visible field that has a value.
async fn field_text(
    call: &CallContext<'_>,
    type_name: &str,
    id: &str,
    field: &str,
) -> Result<Option<String>, Refusal> {
    let stream = located(&call.view, type_name, id).map(|(_, stream)| stream);
    // A path is not a field of the record.
    if stream.is_none_or(|it| it.field(field).is_none()) {
        return Ok(None);
    }
    let plan = FetchPlan::new(&call.view, &fetch_of(id, vec![field.to_owned()]))?;
    // One row, whatever its size: that is what windows are for.
    let read = call.rows(plan.rows(), call.max_bytes).await?;
    let record = plan.record(&read.rows)?;
    call.note_records([&record]);
    call.note_rows(1);
    Ok(record.value(field).and_then(Value::to_text))
}
