//! `aggregate`: measures of records by group and calendar period.

mod masked;
mod metric;
mod order;

use std::sync::Arc;

use wayleave_model::mapping::{AggregateOp, Datatype};

use crate::calendar::Calendar;
use crate::filter::{self, MeasuredColumn};
use crate::layout::named_column;
use crate::mask::Masking;
use crate::plan::{AuthorizedPlan, Column, Granularity, GroupKey, Groups, Predicate, Read};
use crate::query::canonical;
use crate::read_tool::ReadTool;
use crate::refusal::{Call, Code, Refusal, quoted};
use crate::request::{AggregateRequest, Metric, SortKey, TimeGroup};
use crate::scope::{NamedColumn, PathScope};
use crate::seal::{Binding, CURSOR_HOURS, CursorPosition, Seal};
use crate::value::Value;
use crate::view::{ConnectionView, FieldView, StreamView, View};
use masked::{MAX_RANKED_GROUPS, MaskedKeys};
use metric::Aggregates;

/// An authorized aggregate.
#[derive(Debug, Clone)]
pub struct AggregatePlan {
    connection_id: String,
    connector_key: String,
    stream: String,
    header: Vec<String>,
    /// Number of keys; they come first in the header.
    key_count: usize,
    granularity: Option<Granularity>,
    groups: AuthorizedPlan,
    totals: Option<AuthorizedPlan>,
    /// The header index of each column of the order.
    order: Vec<usize>,
    limit: u32,
    /// The masked keys, if there are any.
    masked: Option<MaskedKeys>,
    binding: Binding,
}

impl AggregatePlan {
    /// Plans an aggregate.
    ///
    /// The header is the fields of `group_by`, the field of `group_by_time`, then the labels of the
    /// measures. A relation in `group_by` stands for the key and the title of its target. Without a
    /// `sort` groups are ordered by period if there is one, else by the first measure, largest
    /// first; then by their keys.
    pub fn new(view: &View, request: &AggregateRequest, seal: Seal<'_>) -> Result<Self, Refusal> {
        let connection_id = request.connection_id.as_deref();
        let (connection, stream) =
            view.locate(ReadTool::Aggregate, &request.stream, connection_id)?;
        Self::build(view, connection, stream, request, seal).map_err(|refusal| refusal.see(stream))
    }

    fn build(
        view: &View,
        connection: &ConnectionView,
        stream: &StreamView,
        request: &AggregateRequest,
        seal: Seal<'_>,
    ) -> Result<Self, Refusal> {
        let mut scope = PathScope::new(connection, stream);
        let keys = keys(&mut scope, request)?;
        let mut aggregates = Aggregates::new(keys.len());
        let mut measures = Vec::with_capacity(request.metrics.len());
        for metric in &request.metrics {
            measures.push(MeasuredColumn {
                name: metric.label(),
                column: aggregates.measure(&mut scope, metric)?,
            });
        }
        let wanted = match &request.filter {
            None => Predicate::True,
            Some(filter) => filter::parse_caller_filter(&mut scope, filter)?,
        };
        let having = match &request.having {
            None => Predicate::True,
            Some(having) => filter::parse_having(&measures, having)?,
        };
        let mut columns: Vec<Column> = Vec::with_capacity(keys.len() + measures.len());
        let mut header = Vec::with_capacity(columns.capacity());
        for (index, key) in keys.iter().enumerate() {
            columns.push(Column::of_group(index, &*key.name, key.datatype));
            header.push(key.name.clone());
        }
        for measure in measures {
            columns.push(measure.column);
            header.push(measure.name);
        }
        let masks = keys.iter().map(|key| key.masking.clone());
        let masks: Vec<Option<Masking>> = masks.collect();
        let masked = MaskedKeys::new(&masks);
        let mut sort_columns = order::sort_columns(request, &header, keys.len())?;
        if let Some(masked) = &masked {
            masked.put_last(&mut sort_columns, request, &header)?;
        }
        let groups = Groups {
            order: order::group_order(&sort_columns, &columns),
            by: keys.into_iter().map(|key| key.key).collect(),
            aggregates: aggregates.into_vec(),
            predicate: Predicate::all([stream.visible_rows(), wanted]),
            columns,
            having,
            after: None,
            limit: match &masked {
                None => request.limit + 1,
                Some(_) => MAX_RANKED_GROUPS + 1,
            },
        };
        scope.check_size()?;
        let tables = scope.into_joins();
        let totals = request.totals.then(|| {
            let totals = totals(&groups);
            AuthorizedPlan::new(stream.target(), Arc::clone(&tables), Read::Groups(totals))
        });
        let mut plan = Self {
            connection_id: connection.connection_id.clone(),
            connector_key: connection.connector_key.clone(),
            stream: stream.name().to_owned(),
            key_count: groups.by.len(),
            granularity: request.group_by_time.as_ref().map(|it| it.granularity),
            groups: AuthorizedPlan::new(stream.target(), tables, Read::Groups(groups))
                .masked(Arc::new(masks)),
            totals,
            order: sort_columns.into_iter().map(|(place, _)| place).collect(),
            header,
            limit: request.limit,
            masked,
            binding: binding(view, stream, request),
        };
        if let Some(cursor) = &request.cursor {
            plan.resume(cursor, seal)?;
        }
        Ok(plan)
    }

    /// Continues from a cursor.
    fn resume(&mut self, cursor: &str, seal: Seal<'_>) -> Result<(), Refusal> {
        let opened = seal.open(&self.binding, CURSOR_HOURS, cursor);
        let at = opened.map(|position| position.at);
        let at = at.filter(|at| at.len() == self.order.len() && self.key_count > 0);
        match (at, &mut self.masked, self.groups.read_mut()) {
            (Some(at), Some(masked), _) => {
                masked.after = Some(at);
                return Ok(());
            }
            (Some(at), None, Read::Groups(groups)) => {
                groups.after = Some(at);
                return Ok(());
            }
            _ => {}
        }
        let message = "`cursor` does not continue this call: it belongs to another call, has expired, or the data's mapping has changed; repeat the call without it";
        Err(Refusal::new(Code::InvalidCursor, message)
            .param("cursor")
            .retry_with("cursor")
            .next(Call::new(
                "aggregate",
                [
                    ("stream", self.stream.as_str().into()),
                    ("connection_id", self.connection_id.as_str().into()),
                    ("metrics", serde_json::json!(["count"])),
                ],
            )))
    }

    /// The connection of the stream.
    pub fn connection_id(&self) -> &str {
        &self.connection_id
    }

    /// The dataset of the stream.
    pub fn connector_key(&self) -> &str {
        &self.connector_key
    }

    /// The stream.
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// The names of the columns of the answer.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Number of key columns; they come first in the header.
    pub fn key_count(&self) -> usize {
        self.key_count
    }

    /// The granularity of the last key, if it is a calendar period.
    pub fn granularity(&self) -> Option<Granularity> {
        self.granularity
    }

    /// The groups to read: one more than the answer holds, to know whether more follow; if a key is
    /// masked, as many as can be ranked by token.
    pub fn groups(&self) -> &AuthorizedPlan {
        &self.groups
    }

    /// The same measures over all records, if requested: a single row.
    pub fn totals(&self) -> Option<&AuthorizedPlan> {
        self.totals.as_ref()
    }

    /// Whether all groups must be read before any is shown. True if a key is masked, because the
    /// store's order by plain values would reveal how they compare.
    pub fn is_ranked_by_tokens(&self) -> bool {
        self.masked.is_some()
    }

    /// Ranks the groups, and returns those from the start of the page on and whether more follow
    /// them. `cut` means that the store had more groups than were read.
    pub fn ranked(
        &self,
        rows: Vec<Vec<Value>>,
        cut: bool,
    ) -> Result<(Vec<Vec<Value>>, bool), Refusal> {
        match &self.masked {
            None => Ok((rows, cut)),
            Some(masked) => masked.ranked(rows, cut, &self.order, self.limit()),
        }
    }

    /// The groups of the page, and whether more follow.
    pub fn answer<'a>(&self, rows: &'a [Vec<Value>]) -> (&'a [Vec<Value>], bool) {
        match rows.split_at_checked(self.limit()) {
            Some((shown, rest)) => (shown, !rest.is_empty()),
            None => (rows, false),
        }
    }

    /// Whether the page ends inside a tie: the groups are ordered by a measure first, and the next
    /// group has the same value as the last one shown.
    pub fn cuts_tie(&self, rows: &[Vec<Value>]) -> bool {
        let Some(place) = self
            .order
            .first()
            .copied()
            .filter(|it| *it >= self.key_count)
        else {
            return false;
        };
        let next = rows.get(self.limit());
        let last = self.limit().checked_sub(1).and_then(|last| rows.get(last));
        match (last, next) {
            (Some(last), Some(next)) => last.get(place) == next.get(place),
            _ => false,
        }
    }

    /// The cursor that continues after a group.
    pub fn cursor(&self, last: &[Value], seal: Seal<'_>) -> Option<String> {
        let at = self.order.iter().map(|place| last.get(*place).cloned());
        let position = CursorPosition {
            at: at.collect::<Option<Vec<_>>>()?,
            horizon: None,
            settled: false,
        };
        Some(seal.seal(&self.binding, CURSOR_HOURS, &position))
    }

    fn limit(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }
}

fn invalid(message: impl Into<String>, param: &str) -> Refusal {
    Refusal::new(Code::InvalidRequest, message).param(param)
}

/// The same aggregates over all records as one group.
fn totals(groups: &Groups) -> Groups {
    let keys = groups.by.len();
    let moved = |column: &Column| column.without_keys(keys);
    Groups {
        by: Vec::new(),
        aggregates: groups.aggregates.clone(),
        predicate: groups.predicate.clone(),
        columns: groups.columns.iter().skip(keys).map(moved).collect(),
        having: Predicate::True,
        order: Vec::new(),
        after: None,
        limit: 1,
    }
}

/// A key of the groups.
struct NamedKey {
    name: String,
    datatype: Datatype,
    key: GroupKey,
    masking: Option<Masking>,
}

fn keys(scope: &mut PathScope<'_>, request: &AggregateRequest) -> Result<Vec<NamedKey>, Refusal> {
    let mut keys = Vec::new();
    for name in &request.group_by {
        for named in grouped_by(scope, name)? {
            if keys.iter().any(|it: &NamedKey| it.name == named.name) {
                let message = format!("`group_by` names `{}` twice", named.name);
                return Err(invalid(message, "group_by"));
            }
            keys.push(NamedKey {
                name: named.name,
                datatype: named.column.datatype,
                key: GroupKey::Column(named.column),
                masking: named.field.masking().cloned(),
            });
        }
    }
    if let Some(time) = &request.group_by_time {
        if keys.iter().any(|it| it.name == time.field) {
            let message = format!("`group_by` and `group_by_time` both name `{}`", time.field);
            return Err(invalid(message, "group_by"));
        }
        keys.push(period(scope, time)?);
    }
    Ok(keys)
}

/// Resolves a name in `group_by`: a field, or a relation, which stands for the key and the title of
/// its target.
fn grouped_by(scope: &mut PathScope<'_>, name: &str) -> Result<Vec<NamedColumn>, Refusal> {
    let op = AggregateOp::GroupBy;
    // Fields and relations of a stream share one namespace.
    let Some((target, relation)) = scope.relation(name) else {
        return grouping(scope, name, op, "group_by").map(|one| vec![one]);
    };
    if !scope.leads_to_one(name) {
        let message = format!(
            "`{name}` leads to many `{}`; group by fields, or by a relation that leads to one",
            relation.to
        );
        return Err(invalid(message, "group_by"));
    }
    let key = target.key_fields().iter();
    let title = target.title().filter(|it| it.can_aggregate(op));
    let title = title.filter(|title| !target.key_fields().contains(title));
    let paths = key
        .chain(title)
        .map(|field| format!("{name}.{}", field.name()));
    let paths: Vec<String> = paths.collect();
    paths
        .iter()
        .map(|path| named_column(scope, path, "group_by"))
        .collect()
}

/// Resolves a field that may be grouped by.
fn grouping(
    scope: &mut PathScope<'_>,
    name: &str,
    op: AggregateOp,
    param: &str,
) -> Result<NamedColumn, Refusal> {
    let named = named_column(scope, name, param)?;
    if named.field.can_aggregate(op) {
        return Ok(named);
    }
    let fields = scope.stream().fields();
    let fitting = fields.filter(|field| field.can_aggregate(op));
    Err(invalid(
        format!("records cannot be grouped by `{name}` there"),
        param,
    )
    .allowed(fitting.map(FieldView::name)))
}

fn period(scope: &mut PathScope<'_>, time: &TimeGroup) -> Result<NamedKey, Refusal> {
    let op = AggregateOp::GroupByTime;
    let named = grouping(scope, &time.field, op, "group_by_time.field")?;
    let short = matches!(time.granularity, Granularity::Minute | Granularity::Hour);
    if short && named.column.datatype == Datatype::Date {
        let message = format!("`{}` is a date: it has no hours and minutes", time.field);
        return Err(invalid(message, "group_by_time.granularity")
            .allowed(["day", "week", "month", "quarter", "year"]));
    }
    Ok(NamedKey {
        name: named.name,
        datatype: if short {
            Datatype::Datetime
        } else {
            Datatype::Date
        },
        key: GroupKey::Period {
            column: named.column,
            granularity: time.granularity,
            time_zone: match &time.time_zone {
                None => "UTC".to_owned(),
                Some(name) => zone(name)?,
            },
        },
        // Masked fields cannot be grouped by period.
        masking: None,
    })
}

/// Normalizes a time zone to its spelling in the IANA database.
fn zone(name: &str) -> Result<String, Refusal> {
    Calendar::new(name)
        .ok()
        .and_then(|calendar| calendar.name().map(str::to_owned))
        .ok_or_else(|| {
            let message = format!(
                "{} is not an IANA time zone; write one such as `Europe/Paris`",
                quoted(name)
            );
            invalid(message, "group_by_time.time_zone")
        })
}

/// Binds a cursor to the caller, its grants, the mapping, and the aggregate except for its limit.
fn binding(view: &View, stream: &StreamView, request: &AggregateRequest) -> Binding {
    let sort: Vec<String> = request.sort.iter().map(SortKey::to_string).collect();
    let metrics: Vec<String> = request.metrics.iter().map(Metric::canonical).collect();
    let time = request.group_by_time.as_ref();
    let time = time.map_or_else(String::new, |it| {
        let zone = it.time_zone.as_deref().unwrap_or("UTC");
        format!("{}/{:?}/{zone}", it.field, it.granularity)
    });
    Binding::from_parts(&[
        b"wayleave groups 1",
        view.subject().as_bytes(),
        &view.epoch().to_be_bytes(),
        stream.mapping.digest().as_bytes(),
        stream.connection_id().as_bytes(),
        stream.name().as_bytes(),
        canonical(request.filter.as_ref()).as_bytes(),
        canonical(request.having.as_ref()).as_bytes(),
        metrics.join("\n").as_bytes(),
        request.group_by.join(",").as_bytes(),
        time.as_bytes(),
        sort.join(",").as_bytes(),
    ])
}
