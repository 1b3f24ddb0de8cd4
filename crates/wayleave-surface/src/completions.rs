//! Completes arguments of prompts and templates as they are typed: names of datasets, types and
//! fields, values of closed lists, ids and titles of records. Bounded, and limited to what the
//! caller may read anyway.

use serde_json::{Map, Value as Json, json};
use wayleave_mcp::{Completion, CompletionCall, CompletionRef, RpcError};
use wayleave_model::mapping::Datatype;
use wayleave_plan::refusal::Refusal;
use wayleave_plan::view::{FieldView, StreamView};

use crate::access::Access;
use crate::call_context::CallContext;
use crate::service::ReadService;
use crate::{prompts, resources};

/// Maximum number of values: a client shows a hundred, and learns whether there are more.
const MAX_VALUES: u16 = 101;
/// Maximum number of records inspected in one stream where the store cannot narrow them.
const MAX_INSPECTED_RECORDS: u32 = 1_000;
/// Maximum number of streams searched for records.
const MAX_SEARCHED_STREAMS: usize = 4;
/// Maximum size of the rows read, in bytes.
const MAX_READ_BYTES: usize = 256 * 1024;

/// Completions of a prompt: `dataset` and `entity`.
pub(crate) fn for_prompt(service: &ReadService, name: &str) -> Completion {
    let service = service.clone();
    Completion::new(CompletionRef::prompt(name), move |typed| {
        let service = service.clone();
        async move { Ok(complete(&service, &typed, None).await) }
    })
}

/// Completions of the pages of types: `type`, and `where` once there is one.
pub(crate) fn for_pages(service: &ReadService) -> Completion {
    let service = service.clone();
    Completion::new(CompletionRef::template(resources::PAGE), move |typed| {
        let service = service.clone();
        async move {
            let type_name = typed.resolved.get("type").cloned();
            Ok(complete(&service, &typed, type_name.as_deref()).await)
        }
    })
}

/// Completions of a type's templates: `where`, `id` and `field`.
pub(crate) fn for_type(service: &ReadService, type_name: &str) -> [Completion; 3] {
    resources::templates_of(type_name).map(|template| {
        let (service, of) = (service.clone(), type_name.to_owned());
        Completion::new(CompletionRef::template(template), move |typed| {
            let (service, of) = (service.clone(), of.clone());
            async move { Ok::<_, RpcError>(complete(&service, &typed, Some(&of)).await) }
        })
    })
}

/// Returns no values when a store is unavailable: nobody should lose what they typed.
async fn complete(
    service: &ReadService,
    typed: &CompletionCall,
    type_name: Option<&str>,
) -> Vec<String> {
    let package = &Access::from_caller(typed.context.caller()).package;
    let call = service.context(package, MAX_READ_BYTES);
    let connections = call.view.connections().iter();
    let found = match (typed.argument.as_str(), type_name) {
        ("dataset", _) => {
            let datasets = connections.map(|it| it.connector_key.as_str());
            Ok(names(datasets, &typed.value))
        }
        ("type", _) => {
            let streams = connections.flat_map(|it| &it.streams);
            Ok(names(streams.map(StreamView::type_name), &typed.value))
        }
        ("entity", _) => entities(&call, typed).await,
        ("where", Some(type_name)) => Ok(clauses(&call, type_name, &typed.value)),
        ("field", Some(type_name)) => {
            let fields = fields(&call, type_name).map(FieldView::name);
            Ok(names(fields, &typed.value))
        }
        ("id", Some(type_name)) => ids(&call, type_name, &typed.value).await,
        _ => Ok(Vec::new()),
    };
    found.unwrap_or_default()
}

/// Names with the typed prefix, sorted, each once.
fn names<'a>(all: impl Iterator<Item = &'a str>, typed: &str) -> Vec<String> {
    let fit: std::collections::BTreeSet<&str> = all.filter(|it| it.starts_with(typed)).collect();
    fit.into_iter()
        .take(MAX_VALUES.into())
        .map(str::to_owned)
        .collect()
}

/// The visible fields of a type's streams.
fn fields<'v>(
    call: &'v CallContext<'_>,
    type_name: &'v str,
) -> impl Iterator<Item = &'v FieldView> {
    resources::holders(&call.view, type_name).flat_map(|(_, stream)| stream.fields())
}

/// Beginnings of clauses with the typed prefix: first the fields, then the values of a field whose
/// values are known.
fn clauses(call: &CallContext<'_>, type_name: &str, typed: &str) -> Vec<String> {
    let fields = fields(call, type_name).filter(|it| it.can_filter());
    let clauses: Vec<String> = match typed.split_once('=') {
        None => fields.map(|it| format!("{}=", it.name())).collect(),
        Some((name, _)) => {
            let fields = fields.filter(|it| it.name() == name);
            let values = fields.flat_map(listed_values);
            let values = values.filter(|it| !it.contains(resources::is_forbidden));
            values.map(|it| format!("{name}={it}")).collect()
        }
    };
    names(clauses.iter().map(String::as_str), typed)
}

/// Every value of a field, where the mapping lists them.
fn listed_values(field: &FieldView) -> Vec<String> {
    if field.is_masked() {
        return Vec::new();
    }
    if field.datatype() == Datatype::Boolean {
        return ["false", "true"].map(str::to_owned).to_vec();
    }
    field.one_of().iter().map(ToString::to_string).collect()
}

/// Titles of the dataset's records with the typed prefix.
async fn entities(call: &CallContext<'_>, typed: &CompletionCall) -> Result<Vec<String>, Refusal> {
    let Some(dataset) = typed.resolved.get("dataset") else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    let mut left = MAX_SEARCHED_STREAMS;
    for connection in call.view.connections() {
        if connection.connector_key != *dataset {
            continue;
        }
        for stream in &connection.streams {
            let title = stream.title().filter(|it| can_begin(it));
            let Some(title) = title.filter(|_| left > 0) else {
                continue;
            };
            left -= 1;
            let filter = begins(title.name(), &typed.value);
            let limit = MAX_VALUES.into();
            let labelled = resources::labelled(call, connection, stream, filter, limit).await?;
            found.extend(labelled.records.into_iter().map(|(_, label)| label));
        }
    }
    found.dedup();
    found.truncate(MAX_VALUES.into());
    Ok(found)
}

/// Ids of the type's records with the typed prefix.
async fn ids(call: &CallContext<'_>, type_name: &str, typed: &str) -> Result<Vec<String>, Refusal> {
    let mut found = Vec::new();
    let holders = resources::holders(&call.view, type_name).filter(|(connection, stream)| {
        let prefix = format!("{}/{}:", connection.connection_id, stream.name());
        prefix.starts_with(typed) || typed.starts_with(&prefix)
    });
    for (connection, stream) in holders.take(MAX_SEARCHED_STREAMS) {
        let prefix = format!("{}/{}:", connection.connection_id, stream.name());
        let key = typed.strip_prefix(&prefix).unwrap_or_default();
        // The store can narrow a key of a single text field; for any other key the first records
        // are inspected.
        let narrowed = match stream.key_fields() {
            [only] if can_begin(only) => begins(only.name(), key),
            _ => None,
        };
        let labelled =
            resources::labelled(call, connection, stream, narrowed, MAX_INSPECTED_RECORDS).await?;
        let fit = labelled.records.into_iter().map(|(id, _)| id);
        found.extend(fit.filter(|id| id.starts_with(typed)));
        if found.len() >= usize::from(MAX_VALUES) {
            break;
        }
    }
    found.truncate(MAX_VALUES.into());
    Ok(found)
}

fn can_begin(field: &FieldView) -> bool {
    field.datatype() == Datatype::String && field.can_filter() && !field.is_masked()
}

fn begins(field: &str, with: &str) -> Option<Map<String, Json>> {
    let filter = (field.to_owned(), json!({ "starts_with": with }));
    (!with.is_empty()).then(|| Map::from_iter([filter]))
}

/// Prompts with arguments to complete.
pub(crate) const PROMPTS: [&str; 2] = [prompts::EXPLORE, prompts::WORKUP];
