//! The inventory as resources: `wayleave://schema`, `wayleave://kg/types` and `wayleave://stats`,
//! each under the caller's package.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use wayleave_mcp::{Read, ReadReply, Resource, ResourceContents, RpcError, Visibility};
use wayleave_plan::query::QueryPlan;
use wayleave_plan::request::{CountKind, QueryRequest};
use wayleave_plan::view::{ConnectionView, StreamView};

use super::{query_of, schema, type_uri};
use crate::access::Access;
use crate::call_context::CallContext;
use crate::escape;
use crate::service::ReadService;

/// Maximum number of streams whose records are counted by one read.
const MAX_COUNTED: usize = 64;
/// Maximum time of one count. Beyond it, counting is not cheap, and the count is left out.
const COUNT_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum size of a body, in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// A resource that summarizes everything a caller may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuiltIn {
    Schema,
    Types,
    Stats,
}

impl BuiltIn {
    pub(crate) const ALL: [Self; 3] = [Self::Schema, Self::Types, Self::Stats];

    pub(crate) const fn uri(self) -> &'static str {
        match self {
            Self::Schema => "wayleave://schema",
            Self::Types => "wayleave://kg/types",
            Self::Stats => "wayleave://stats",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Types => "types",
            Self::Stats => "stats",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Schema => "Every stream that can be read: its type, fields and relations.",
            Self::Types => {
                "Every type with the address of its records, and their number where counting is cheap."
            }
            Self::Stats => {
                "How many datasets, connections, streams, types, fields and relations can be read, \
                 and records where counting is cheap."
            }
        }
    }

    /// The resource, for callers that see any dataset.
    pub(crate) fn resource(self, service: &ReadService, who: Visibility) -> Resource {
        let service = service.clone();
        Resource::new(self.uri(), self.name(), move |read: Read| {
            let service = service.clone();
            async move { Ok::<_, RpcError>(self.read(&service, &read).await) }
        })
        .describe(self.description())
        .of_type("application/json")
        .visible(who)
    }

    async fn read(self, service: &ReadService, read: &Read) -> ReadReply {
        let package = &Access::from_caller(read.context.caller()).package;
        let call = service.context(package, MAX_BODY_BYTES);
        let body = match self {
            Self::Schema => schema::body(&call),
            Self::Types => types(&call).await,
            Self::Stats => stats(&call).await,
        };
        ResourceContents::text(&read.uri, "application/json", escape::json(&body)).into()
    }
}

/// A number of records.
#[derive(Clone, Copy)]
struct RecordCount {
    value: u64,
    is_exact: bool,
}

impl RecordCount {
    fn to_json(self) -> Json {
        let kind = if self.is_exact { "exact" } else { "estimated" };
        json!({ "value": self.value, "kind": kind })
    }
}

/// Counts records, as long as that is cheap.
struct Counter<'a> {
    call: &'a CallContext<'a>,
    left: usize,
}

impl<'a> Counter<'a> {
    fn new(call: &'a CallContext<'a>) -> Self {
        Self {
            call,
            left: MAX_COUNTED,
        }
    }

    /// The records of all these streams; `None` where one of them was not counted.
    async fn sum(&mut self, streams: &[(&ConnectionView, &StreamView)]) -> Option<RecordCount> {
        let mut sum = RecordCount {
            value: 0,
            is_exact: true,
        };
        for (connection, stream) in streams {
            let one = self.count(connection, stream).await?;
            sum.value = sum.value.saturating_add(one.value);
            sum.is_exact &= one.is_exact;
        }
        Some(sum)
    }

    async fn count(
        &mut self,
        connection: &ConnectionView,
        stream: &StreamView,
    ) -> Option<RecordCount> {
        self.left = self.left.checked_sub(1)?;
        if !self.call.has_time() {
            return None;
        }
        let request = QueryRequest {
            count: CountKind::Estimated,
            ..query_of(connection, stream, None, 1)
        };
        let plan = QueryPlan::new(&self.call.view, &request, self.call.seal).ok()?;
        let counted = self.call.count(plan.count()?);
        let counted = tokio::time::timeout(COUNT_TIMEOUT, counted).await;
        let (value, is_exact) = counted.ok()?.ok()?;
        Some(RecordCount { value, is_exact })
    }
}

/// Every visible stream with its connection.
fn streams<'v>(
    call: &'v CallContext<'_>,
) -> impl Iterator<Item = (&'v ConnectionView, &'v StreamView)> {
    let connections = call.view.connections().iter();
    connections.flat_map(|it| it.streams.iter().map(move |stream| (it, stream)))
}

async fn types(call: &CallContext<'_>) -> Json {
    let mut by_type: BTreeMap<&str, Vec<(&ConnectionView, &StreamView)>> = BTreeMap::new();
    for (connection, stream) in streams(call) {
        let held = by_type.entry(stream.type_name()).or_default();
        held.push((connection, stream));
    }
    let mut counter = Counter::new(call);
    let mut types = Vec::with_capacity(by_type.len());
    for (name, held) in by_type {
        let count = counter.sum(&held).await;
        let iris: BTreeSet<String> = held.iter().map(|(_, it)| it.type_iri()).collect();
        let mut one = Map::new();
        let mut put = |name: &str, value: Json| one.insert(name.to_owned(), value);
        put("type", name.into());
        put("uri", type_uri(name).into());
        put("iris", json!(iris));
        put("streams", held.len().into());
        if let Some(count) = count {
            put("count", count.to_json());
        }
        types.push(Json::Object(one));
    }
    types.into()
}

async fn stats(call: &CallContext<'_>) -> Json {
    let connections = call.view.connections();
    let datasets: BTreeSet<&str> = connections
        .iter()
        .map(|it| it.connector_key.as_str())
        .collect();
    let streams: Vec<_> = streams(call).collect();
    let types: BTreeSet<&str> = streams.iter().map(|(_, it)| it.type_name()).collect();
    let [mut fields, mut relations, mut measures] = [0; 3];
    for (_, stream) in &streams {
        fields += stream.fields().count();
        relations += stream.relations().count();
        measures += stream.measures().len();
    }
    let mut stats = json!({
        "datasets": datasets.len(),
        "connections": connections.len(),
        "streams": streams.len(),
        "types": types.len(),
        "fields": fields,
        "relations": relations,
        "measures": measures,
    });
    let records = Counter::new(call).sum(&streams).await;
    if let (Some(records), Json::Object(stats)) = (records, &mut stats) {
        stats.insert("records".to_owned(), records.to_json());
    }
    stats
}
