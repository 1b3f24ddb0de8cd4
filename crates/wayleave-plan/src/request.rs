//! What a caller asks, read from the arguments of a tool call.
//!
//! Here arguments get their shapes: known names, right JSON types, bounds. Whether the streams
//! and fields they name exist is not known here. An argument that is `null` counts as absent,
//! because some clients send every optional argument.

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
    CitationsRequest, DEFAULT_BUDGET, LEAST_BUDGET, MAX_BUDGET, MAX_NOTE, Section, WorkupRequest,
};

/// The most rows or groups a page holds.
pub const MAX_ROWS: u32 = 100;
/// How many rows or groups a page holds when the caller does not say.
pub const DEFAULT_ROWS: u32 = 25;
/// How many hits a page of a search holds when the caller does not say.
pub const DEFAULT_HITS: u32 = 10;
/// The most characters of what is searched for: as much as may be read of it in any script.
pub const MAX_QUERY: usize = 1_024;
/// The most measures of one aggregate.
pub const MAX_METRICS: usize = 8;
/// The most fields to group by.
pub const MAX_GROUP_FIELDS: usize = 8;
/// The most keys of a sort.
pub const MAX_SORT_KEYS: usize = 4;
/// The most relations to expand.
pub const MAX_EXPANDED: usize = 4;
/// The most streams that are described at once.
pub const MAX_DESCRIBED: usize = 32;
/// The largest offset: whole numbers beyond it are not exact in JSON.
pub const MAX_OFFSET: usize = (1 << 53) - 1;
/// How many related records of each record an expansion shows.
pub const EXPANDED_ROWS: u32 = 10;

/// What `schema` was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaRequest {
    /// One stream; without one, and without `streams`, all.
    pub stream: Option<String>,
    /// Several streams.
    pub streams: Vec<String>,
    /// One connection, or all.
    pub connection_id: Option<String>,
    /// How much to tell.
    pub detail: Detail,
}

/// How much `schema` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// What is needed to make calls.
    #[default]
    Compact,
    /// Everything, with JSON Schema; of one stream of one connection.
    Full,
}

/// What `query_records` was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryRequest {
    /// The stream.
    pub stream: String,
    /// The connection, where several hold the stream.
    pub connection_id: Option<String>,
    /// Which records.
    pub filter: Option<Map<String, Json>>,
    /// In which order.
    pub sort: Vec<SortKey>,
    /// Which fields; `None` for all.
    pub fields: Option<Vec<String>>,
    /// Which relations to follow.
    pub expand: Vec<String>,
    /// At most so many records.
    pub limit: u32,
    /// Where an earlier page ended.
    pub cursor: Option<String>,
    /// Whether to count all records of the filter.
    pub count: CountKind,
    /// `beginning`, or the bookmark of an earlier walk.
    pub changes_since: Option<String>,
}

/// Whether to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CountKind {
    /// No count.
    #[default]
    None,
    /// From the store's statistics, where every row of the table is asked for; exactly
    /// otherwise, because statistics know nothing of filters and grants.
    Estimated,
    /// Exactly.
    Exact,
}

/// One key of a sort: `field`, or `-field` from the largest down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortKey {
    /// The field, or in an aggregate the field or measure.
    pub name: String,
    /// From the largest down.
    pub descending: bool,
}

/// What `aggregate` was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateRequest {
    /// The stream.
    pub stream: String,
    /// The connection, where several hold the stream.
    pub connection_id: Option<String>,
    /// What to measure.
    pub metrics: Vec<Metric>,
    /// Fields to group by.
    pub group_by: Vec<String>,
    /// A time to group by.
    pub group_by_time: Option<TimeGroup>,
    /// Which records.
    pub filter: Option<Map<String, Json>>,
    /// Which groups, by what is measured of them.
    pub having: Option<Map<String, Json>>,
    /// In which order: group fields, or measures by their [label](Metric::label).
    pub sort: Vec<SortKey>,
    /// At most so many groups.
    pub limit: u32,
    /// Where an earlier page ended.
    pub cursor: Option<String>,
    /// Whether to measure all records together too.
    pub totals: bool,
}

/// One measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// What is measured.
    pub kind: MetricKind,
    /// Of which records of a group; `None` for all.
    pub filter: Option<Map<String, Json>>,
    /// What it is called in the answer, if the caller says so.
    pub name: Option<String>,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricKind {
    /// An aggregate of a field.
    Aggregate {
        /// What is computed; never a grouping.
        op: AggregateOp,
        /// Over which field; only `count` may do without.
        field: Option<String>,
    },
    /// What the mapping measures under this name.
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

    /// All of it as one text, to tell whether two are the same.
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
    /// How long a period is.
    pub granularity: Granularity,
    /// The IANA zone whose calendar decides; `None` for UTC.
    pub time_zone: Option<String>,
}

/// What `search` was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest {
    /// What to look for.
    pub q: String,
    /// One connection, or all.
    pub connection_id: Option<String>,
    /// These streams; `None` for all that can be searched.
    pub streams: Option<Vec<String>>,
    /// Which records.
    pub filter: Option<Map<String, Json>>,
    /// Which fields to look in and to show; `None` for all.
    pub fields: Option<Vec<String>>,
    /// At most so many hits, of all connections together.
    pub limit: u32,
    /// Where an earlier page ended.
    pub cursor: Option<String>,
}

/// What `fetch` was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// `connection_id/stream:key`; of an address that was given, the id in it.
    pub id: String,
    /// The connection again, if the caller wishes.
    pub connection_id: Option<String>,
    /// Which fields; `None` for all.
    pub fields: Option<Vec<String>>,
    /// Which relations to follow.
    pub expand: Vec<String>,
    /// How many characters of the document's text come before the piece that is asked for.
    pub offset: usize,
}

impl SchemaRequest {
    /// Reads the arguments of a call.
    pub fn read(arguments: &Map<String, Json>) -> Result<Self, Refusal> {
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
    /// Reads the arguments of a call.
    pub fn read(arguments: &Map<String, Json>) -> Result<Self, Refusal> {
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
    /// Reads the arguments of a call.
    pub fn read(arguments: &Map<String, Json>) -> Result<Self, Refusal> {
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
    /// Reads the arguments of a call.
    pub fn read(arguments: &Map<String, Json>) -> Result<Self, Refusal> {
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
            q: given.short("q", MAX_QUERY)?,
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
    /// Reads the arguments of a call.
    pub fn read(arguments: &Map<String, Json>) -> Result<Self, Refusal> {
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
    fn read(text: &str) -> Result<Self, Refusal> {
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
                "{} is no sort: a field, or `-` and the field from the largest down",
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

/// What a key of a sort is here that is written as elsewhere: `name desc`, `name:asc`, `+name`.
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
