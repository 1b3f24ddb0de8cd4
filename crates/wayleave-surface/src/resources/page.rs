//! A page of the records of a type: an array of `{iri, label}`, over all connections that hold it.

use serde_json::{Map, Value as Json, json};
use wayleave_mcp::{Read, ReadReply, ResourceContents, RpcError};
use wayleave_plan::refusal::{Call, Refusal};
use wayleave_plan::request::address;
use wayleave_plan::view::{ConnectionView, StreamView};

use super::parameter::NumberParameter;
use super::where_clause::{FilteredStream, WHERE, WhereClause};
use super::{DEFAULT_PAGE_RECORDS, MAX_OFFSET, MAX_PAGE_RECORDS, failed, holders, labelled};
use crate::access::Access;
use crate::call_context::CallContext;
use crate::escape;
use crate::service::ReadService;

/// Maximum size of the rows read for a page, in bytes.
const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Member of `_meta` that describes the page.
const META: &str = "io.wayleave/page";

const LIMIT: NumberParameter = NumberParameter {
    name: "limit",
    default: DEFAULT_PAGE_RECORDS,
    min: 1,
    max: MAX_PAGE_RECORDS,
    hint: "",
};

const OFFSET: NumberParameter = NumberParameter {
    name: "offset",
    default: 0,
    min: 0,
    max: MAX_OFFSET,
    hint: "; `query_records` reads on by cursors, however far",
};

/// Reads a page.
pub(super) async fn read(
    service: &ReadService,
    read: &Read,
    type_name: &str,
) -> Result<ReadReply, RpcError> {
    let package = &Access::from_caller(read.context.caller()).package;
    let call = service.context(package, MAX_PAGE_BYTES);
    let holders: Vec<_> = holders(&call.view, type_name).collect();
    // Before any parameter is read: a type that is not granted does not exist.
    if holders.is_empty() {
        return Ok(ReadReply::Missing);
    }
    let clause = read.variables.get(WHERE);
    let streams = match clause {
        None => whole(&holders),
        Some(clause) => WhereClause::parse(clause)?.streams(&call, &holders)?,
    };
    let limit = LIMIT.read(&read.variables)?;
    let offset = OFFSET.read(&read.variables);
    let offset = offset.map_err(|refused| match streams.first() {
        Some(first) => refused.next(&walk(first)),
        None => refused,
    })?;
    let listed = list(&call, &streams, offset, limit).await;
    let listed = listed.map_err(|refusal| failed(&refusal))?;
    let text = escape::json(&listed.records.into());
    let mut page = Map::new();
    let mut put = |name: &str, value: Json| page.insert(name.to_owned(), value);
    put("type", type_name.into());
    put("limit", limit.into());
    put("offset", offset.into());
    put("more", listed.more.into());
    if listed.more {
        let next = offset + limit;
        match streams.first().filter(|_| next > MAX_OFFSET) {
            None => put("next_offset", next.into()),
            Some(first) => {
                let call = walk(first);
                let next = json!({ "tool": call.tool, "arguments": call.arguments });
                put("next", next)
            }
        };
    }
    let meta = Map::from_iter([(META.to_owned(), Json::Object(page))]);
    let contents = ResourceContents::text(&read.uri, "application/json", text);
    Ok(contents.with_meta(meta).into())
}

fn whole<'v>(holders: &[(&'v ConnectionView, &'v StreamView)]) -> Vec<FilteredStream<'v>> {
    let streams = holders.iter();
    streams.map(|(c, stream)| (*c, *stream, None)).collect()
}

/// The call that reads a stream by cursors, however long it is.
fn walk((connection, stream, filter): &FilteredStream<'_>) -> Call {
    let mut arguments = vec![
        ("stream", Json::from(stream.name())),
        ("connection_id", connection.connection_id.clone().into()),
    ];
    if let Some(filter) = filter {
        arguments.push(("filter", Json::Object(filter.clone())));
    }
    Call::new("query_records", arguments)
}

struct ListedType {
    records: Vec<Json>,
    more: bool,
}

async fn list(
    call: &CallContext<'_>,
    streams: &[FilteredStream<'_>],
    offset: u32,
    limit: u32,
) -> Result<ListedType, Refusal> {
    let (mut skip, mut records) = (offset, Vec::new());
    let mut more = false;
    let enough = usize::try_from(limit).unwrap_or(usize::MAX);
    for (connection, stream, filter) in streams {
        let missing = limit - u32::try_from(records.len()).unwrap_or(limit).min(limit);
        let wanted = skip + missing;
        let labelled = labelled(call, connection, stream, filter.clone(), wanted).await?;
        let passed = u32::try_from(labelled.records.len())
            .unwrap_or(u32::MAX)
            .min(skip);
        let from = usize::try_from(passed).unwrap_or(usize::MAX);
        skip -= passed;
        for (id, label) in labelled.records.into_iter().skip(from) {
            let iri = address::record(stream.type_name(), &id);
            records.push(json!({ "iri": iri, "label": label }));
        }
        more |= labelled.more || records.len() > enough;
        if records.len() >= enough && more {
            break;
        }
    }
    records.truncate(enough);
    Ok(ListedType { records, more })
}
