//! Requests, parsed from the arguments of tool calls.
//!
//! Checks only the shape of arguments: known names, JSON types, limits. Does not know whether the
//! streams and fields they name exist. An argument that is `null` counts as absent, because some
//! clients send every optional argument.

pub mod address;
mod arguments;
mod datasets;
mod schemas;
mod workup;

use serde_json::{Map, Value as Json};
use wayleave_model::mapping::AggregateOp;
use wayleave_model::names::NameKind;

use crate::plan::Granularity;
use crate::refusal::{Code, Refusal, quoted};
use arguments::Arguments;
pub use datasets::{DEFAULT_DATASETS, DatasetRequest, DatasetsRequest, MAX_DATASETS};
pub use workup::{
    CitationsRequest, DEFAULT_BUDGET_BYTES, MAX_BUDGET_BYTES, MAX_NOTE_BYTES, MIN_BUDGET_BYTES,
    Section, WorkupRequest,
};

/// Maximum number of rows or groups on a page.
pub const MAX_ROWS: u32 = 100;
/// Default number of rows or groups on a page.
pub const DEFAULT_ROWS: u32 = 25;
/// Default number of hits on a page of a search.
pub const DEFAULT_HITS: u32 = 10;
/// Maximum length of a search query, in characters, so that one in any script fits the index's
/// limit in bytes.
pub const MAX_QUERY_CHARS: usize = 1_024;
/// Maximum number of measures of one aggregate.
pub const MAX_METRICS: usize = 8;
/// Maximum number of fields to group by.
pub const MAX_GROUP_FIELDS: usize = 8;
/// Maximum number of sort keys.
pub const MAX_SORT_KEYS: usize = 4;
/// Maximum number of relations to expand.
pub const MAX_EXPANDED: usize = 4;
/// Maximum number of streams described at once.
pub const MAX_DESCRIBED: usize = 32;
/// Maximum offset: larger integers are not exact in JSON.
pub const MAX_OFFSET: usize = (1 << 53) - 1;
/// Maximum number of related records shown for each record of an expansion.
pub const MAX_EXPANDED_RECORDS: u32 = 10;

/// The arguments of `schema`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaRequest {
    /// One stream. Without it and `streams`, all.
    pub stream: Option<String>,
    /// Several streams.
    pub streams: Vec<String>,
    /// One connection, or all.
    pub connection_id: Option<String>,
    /// The level of detail.
    pub detail: Detail,
}

/// The level of detail of `schema`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// What a caller needs to make calls.
    #[default]
    Compact,
    /// Everything, with JSON Schema; only for one stream of one connection.
    Full,
}

/// The arguments of `query_records`.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryRequest {
    /// The stream.
    pub stream: String,
    /// The connection, if several hold the stream.
    pub connection_id: Option<String>,
    /// The records to return.
    pub filter: Option<Map<String, Json>>,
    /// The order of the records.
    pub sort: Vec<SortKey>,
    /// The fields to return; `None` for all.
    pub fields: Option<Vec<String>>,
    /// The relations to expand.
    pub expand: Vec<String>,
    /// Maximum number of records.
    pub limit: u32,
    /// The cursor of an earlier page.
    pub cursor: Option<String>,
    /// Whether to count all records that match the filter.
    pub count: CountKind,
    /// `beginning`, or the bookmark of an earlier walk.
    pub changes_since: Option<String>,
}

/// How to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CountKind {
    /// No count.
    #[default]
    None,
    /// From the store's statistics if every row of the table matches; exactly otherwise, because
    /// statistics do not reflect filters and grants.
    Estimated,
    /// Exactly.
    Exact,
}

/// One key of a sort: `field`, or `-field` for largest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortKey {
    /// The field, or in an aggregate the field or measure.
    pub name: String,
    /// Whether the largest value comes first.
    pub descending: bool,
}

/// The arguments of `aggregate`.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateRequest {
    /// The stream.
    pub stream: String,
    /// The connection, if several hold the stream.
    pub connection_id: Option<String>,
    /// The measures.
    pub metrics: Vec<Metric>,
    /// Fields to group by.
    pub group_by: Vec<String>,
    /// A time to group by.
    pub group_by_time: Option<TimeGroup>,
    /// The records to aggregate.
    pub filter: Option<Map<String, Json>>,
    /// A condition on the measures of a group.
    pub having: Option<Map<String, Json>>,
    /// The order of the groups, by group fields or by measures' [labels](Metric::label).
    pub sort: Vec<SortKey>,
    /// Maximum number of groups.
    pub limit: u32,
    /// The cursor of an earlier page.
    pub cursor: Option<String>,
    /// Whether to measure all records together too.
    pub totals: bool,
}

/// One measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The kind of measure.
    pub kind: MetricKind,
    /// The records of a group to measure; `None` for all.
    pub filter: Option<Map<String, Json>>,
    /// Its name in the answer, if the caller gives one.
    pub name: Option<String>,
}

/// The kind of a measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricKind {
    /// An aggregate of a field.
    Aggregate {
        /// The operation; never a grouping.
        op: AggregateOp,
        /// The field; optional only for `count`.
        field: Option<String>,
    },
    /// A measure that the mapping defines under this name.
    Measure(String),
}

impl Metric {
    /// An aggregate of all records of a group.
    pub fn new(op: AggregateOp, field: Option<String>) -> Self {
        Self {
            kind: MetricKind::Aggregate { op, field },
            filter: None,
            name: None,
        }
    }

    /// The name of the measure in results and sorts: the caller's, the mapping's, `count`, or the op
    /// and the field, such as `sum_amount`.
    pub fn label(&self) -> String {
        match (&self.name, &self.kind) {
            (Some(name), _) | (None, MetricKind::Measure(name)) => name.clone(),
            (None, MetricKind::Aggregate { op, field: None }) => op.to_string(),
            (
                None,
                MetricKind::Aggregate {
                    op,
                    field: Some(field),
                },
            ) => format!("{op}_{field}"),
        }
    }

    /// A canonical text, equal for equal metrics.
    pub(crate) fn canonical(&self) -> String {
        let filter = crate::query::canonical(self.filter.as_ref());
        format!("{:?} {:?} {filter}", self.kind, self.name)
    }
}

/// A time to group by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeGroup {
    /// A date or datetime field.
    pub field: String,
    /// The length of a period.
    pub granularity: Granularity,
    /// The IANA time zone whose calendar applies; `None` for UTC.
    pub time_zone: Option<String>,
}

/// The arguments of `search`.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest {
    /// The query text.
    pub q: String,
    /// One connection, or all.
    pub connection_id: Option<String>,
    /// The streams to search; `None` for all searchable ones.
    pub streams: Option<Vec<String>>,
    /// The records to search.
    pub filter: Option<Map<String, Json>>,
    /// The fields to search and show; `None` for all.
    pub fields: Option<Vec<String>>,
    /// Maximum number of hits, over all connections.
    pub limit: u32,
    /// The cursor of an earlier page.
    pub cursor: Option<String>,
}

/// The arguments of `fetch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// `connection_id/stream:key`; extracted if the caller gave an address.
    pub id: String,
    /// The connection; optional, because the id contains it.
    pub connection_id: Option<String>,
    /// The fields to return; `None` for all.
    pub fields: Option<Vec<String>>,
    /// The relations to expand.
    pub expand: Vec<String>,
    /// Offset of the requested piece in the document's text, in characters.
    pub offset: usize,
}

impl SchemaRequest {
    /// Parses the arguments of a call.
    pub fn parse(arguments: &Map<String, Json>) -> Result<Self, Refusal> {
        let known = ["stream", "streams", "connection_id", "detail"];
        let given = Arguments::new("schema", arguments, &known)?;
        Ok(Self {
            stream: given.text("stream")?,
            streams: given.names("streams", MAX_DESCRIBED)?.unwrap_or_default(),
            connection_id: given.text("connection_id")?,
            detail: given
                .word(
                    "detail",
                    &[("compact", Detail::Compact), ("full", Detail::Full)],
                )?
                .unwrap_or_default(),
        })
    }
}

impl QueryRequest {
    /// Parses the arguments of a call.
    pub fn parse(arguments: &Map<String, Json>) -> Result<Self, Refusal> {
        let given = Arguments::new(
            "query_records",
            arguments,
            &[
                "stream",
                "connection_id",
                "filter",
                "sort",
                "fields",
                "expand",
                "limit",
                "cursor",
                "count",
                "changes_since",
            ],
        )?;
        Ok(Self {
            stream: given.required("stream")?,
            connection_id: given.text("connection_id")?,
            filter: given.filter()?,
            sort: given.sort()?,
            fields: given.names("fields", usize::MAX)?,
            expand: given.names("expand", MAX_EXPANDED)?.unwrap_or_default(),
            limit: given.limit()?,
            cursor: given.text("cursor")?,
            count: given
                .word(
                    "count",
                    &[
                        ("none", CountKind::None),
                        ("estimated", CountKind::Estimated),
                        ("exact", CountKind::Exact),
                    ],
                )?
                .unwrap_or_default(),
            changes_since: given.text("changes_since")?,
        })
    }
}

impl AggregateRequest {
    /// Parses the arguments of a call.
    pub fn parse(arguments: &Map<String, Json>) -> Result<Self, Refusal> {
        let given = Arguments::new(
            "aggregate",
            arguments,
            &[
                "stream",
                "connection_id",
                "metrics",
                "group_by",
                "group_by_time",
                "filter",
                "having",
                "sort",
                "limit",
                "cursor",
                "totals",
            ],
        )?;
        Ok(Self {
            stream: given.required("stream")?,
            connection_id: given.text("connection_id")?,
            metrics: given.metrics()?,
            group_by: given
                .names("group_by", MAX_GROUP_FIELDS)?
                .unwrap_or_default(),
            group_by_time: given.time_group()?,
            filter: given.filter()?,
            having: given.object("having", "measures, such as {\"count\": {\"gte\": 2}}")?,
            sort: given.sort()?,
            limit: given.limit()?,
            cursor: given.text("cursor")?,
            totals: given.flag("totals")?,
        })
    }
}

impl SearchRequest {
    /// Parses the arguments of a call.
    pub fn parse(arguments: &Map<String, Json>) -> Result<Self, Refusal> {
        let given = Arguments::new(
            "search",
            arguments,
            &[
                "q",
                "connection_id",
                "streams",
                "filter",
                "fields",
                "limit",
                "cursor",
            ],
        )?;
        Ok(Self {
            q: given.short("q", MAX_QUERY_CHARS)?,
            connection_id: given.text("connection_id")?,
            streams: given.names("streams", usize::MAX)?,
            filter: given.filter()?,
            fields: given.names("fields", usize::MAX)?,
            limit: given.limit_or(DEFAULT_HITS)?,
            cursor: given.text("cursor")?,
        })
    }
}

impl FetchRequest {
    /// Parses the arguments of a call.
    pub fn parse(arguments: &Map<String, Json>) -> Result<Self, Refusal> {
        let given = Arguments::new(
            "fetch",
            arguments,
            &["id", "connection_id", "fields", "expand", "offset"],
        )?;
        Ok(Self {
            id: given
                .required("id")
                .map(|id| address::id(&id).unwrap_or(id))?,
            connection_id: given.text("connection_id")?,
            fields: given.names("fields", usize::MAX)?,
            expand: given.names("expand", MAX_EXPANDED)?.unwrap_or_default(),
            offset: given.whole("offset", 0, MAX_OFFSET)?.unwrap_or(0),
        })
    }
}

impl SortKey {
    fn parse(text: &str) -> Result<Self, Refusal> {
        let (name, descending) = match text.strip_prefix('-') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let refuse = |message: String| Refusal::new(Code::InvalidSort, message).param("sort");
        if name.is_empty() {
            return Err(refuse(format!("{} names no field", quoted(text))));
        }
        if let Some(meant) = elsewhere(name) {
            let message = format!(
                "{} is not a sort key; write `field`, or `-field` for largest first",
                quoted(text)
            );
            let mut refusal = refuse(message).retry_with("sort");
            refusal.did_you_mean = Some(meant);
            return Err(refusal);
        }
        Ok(Self {
            name: name.to_owned(),
            descending,
        })
    }
}

/// Translates a sort key in the notation of other languages: `name desc`, `name:asc`, `+name`.
fn elsewhere(text: &str) -> Option<String> {
    let plain = text.strip_prefix('+').unwrap_or(text);
    let mut words = plain.split([' ', ':', ',']).filter(|word| !word.is_empty());
    let name = words.next().filter(|name| NameKind::Field.matches(name))?;
    let order = words.next().map(str::to_ascii_lowercase);
    match (order.as_deref(), words.next()) {
        (Some("desc" | "descending"), None) => Some(format!("-{name}")),
        (Some("asc" | "ascending"), None) => Some(name.to_owned()),
        (None, None) if plain != text => Some(name.to_owned()),
        _ => None,
    }
}

impl std::fmt::Display for SortKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.descending { "-" } else { "" }, self.name)
    }
}
