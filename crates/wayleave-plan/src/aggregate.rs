//! `aggregate`: measures of records, by group and by calendar period.

use serde_json::{Value as Json, json};
use wayleave_model::mapping::{AggregateOp, Datatype};

use crate::calendar::Calendar;
use crate::filter;
use crate::layout::named_field;
use crate::plan::{
    AuthorizedPlan, Granularity, GroupKey, GroupOrder, Groups, Measure, Predicate, Read,
};
use crate::refusal::{Call, Code, Refusal, quoted};
use crate::request::{AggregateRequest, Metric, TimeGroup};
use crate::value::Value;
use crate::view::{ConnectionView, FieldView, StreamView, Tool, View};

/// An authorized aggregate.
#[derive(Debug, Clone)]
pub struct AggregatePlan {
    connection_id: String,
    connector_key: String,
    stream: String,
    header: Vec<String>,
    groups: AuthorizedPlan,
    limit: u32,
}

impl AggregatePlan {
    /// Plans an aggregate.
    ///
    /// The header is the fields of `group_by`, the field of `group_by_time`, then the measures by
    /// their labels. Without a `sort` groups come by period where there is one, else from the
    /// largest first measure down, then by their keys.
    pub fn new(view: &View, request: &AggregateRequest) -> Result<Self, Refusal> {
        let connection_id = request.connection_id.as_deref();
        let (connection, stream) = view.locate(Tool::Aggregate, &request.stream, connection_id)?;
        Self::build(connection, stream, request).map_err(|refusal| refusal.see(stream))
    }

    fn build(
        connection: &ConnectionView,
        stream: &StreamView,
        request: &AggregateRequest,
    ) -> Result<Self, Refusal> {
        let mut header: Vec<String> = Vec::new();
        let mut by = Vec::new();
        for name in &request.group_by {
            let field = grouping(stream, name, AggregateOp::GroupBy, "group_by")
                .map_err(|refusal| elsewhere(stream, name, request).unwrap_or(refusal))?;
            by.push(GroupKey::Column(field.column()));
            header.push(name.clone());
        }
        if let Some(time) = &request.group_by_time {
            if header.contains(&time.field) {
                let message = format!("`group_by` and `group_by_time` both name `{}`", time.field);
                return Err(invalid(message, "group_by"));
            }
            by.push(period(stream, time)?);
            header.push(time.field.clone());
        }
        let measures = request
            .metrics
            .iter()
            .map(|metric| measure(stream, metric))
            .collect::<Result<Vec<_>, _>>()?;
        header.extend(request.metrics.iter().map(Metric::label));
        let wanted = match &request.filter {
            None => Predicate::True,
            Some(filter) => filter::of_caller(stream, filter)?,
        };
        let order = order(request, &header, by.len())?;
        Ok(Self {
            connection_id: connection.connection_id.clone(),
            connector_key: connection.connector_key.clone(),
            stream: stream.name().to_owned(),
            groups: AuthorizedPlan::new(
                stream.target(),
                Read::Groups(Groups {
                    by,
                    measures,
                    predicate: Predicate::all([stream.base(), wanted]),
                    order,
                    limit: request.limit + 1,
                }),
            ),
            header,
            limit: request.limit,
        })
    }

    /// The connection that is read.
    pub fn connection_id(&self) -> &str {
        &self.connection_id
    }

    /// The dataset that is read.
    pub fn connector_key(&self) -> &str {
        &self.connector_key
    }

    /// The stream that is read.
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// The names of the answer's values, in order.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// The groups to read: up to one more than the answer holds.
    pub fn groups(&self) -> &AuthorizedPlan {
        &self.groups
    }

    /// The groups of the answer, and whether there are more.
    pub fn answer<'a>(&self, rows: &'a [Vec<Value>]) -> (&'a [Vec<Value>], bool) {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        match rows.split_at_checked(limit) {
            Some((shown, rest)) => (shown, !rest.is_empty()),
            None => (rows, false),
        }
    }
}

fn invalid(message: impl Into<String>, param: &str) -> Refusal {
    Refusal::new(Code::InvalidRequest, message).param(param)
}

/// The refusal of grouping by `relation.field`: the fields that lead there can be grouped by.
fn elsewhere(stream: &StreamView, name: &str, request: &AggregateRequest) -> Option<Refusal> {
    let relation = stream.relation_of(name)?;
    let ours = stream.joined_on(relation);
    let ours = ours.filter(|field| field.aggregates().contains(&AggregateOp::GroupBy));
    let ours: Vec<&str> = ours.map(FieldView::name).collect();
    // Fewer would join groups that differ there.
    if ours.len() < relation.on.len() {
        return None;
    }
    let theirs = relation.on.iter().map(|join| format!("`{}`", join.field));
    let message = format!(
        "{} is of stream `{}`; group by {}, then look those up there by {}",
        quoted(name),
        relation.to,
        ours.iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(" and "),
        theirs.collect::<Vec<_>>().join(" and "),
    );
    let sound = |metric: &&Metric| measure(stream, metric).is_ok();
    let metrics: Vec<Json> = request
        .metrics
        .iter()
        .filter(sound)
        .map(|metric| match &metric.field {
            None => json!({ "op": metric.op.to_string() }),
            Some(field) => json!({ "op": metric.op.to_string(), "field": field }),
        })
        .collect();
    let refusal = Refusal::new(Code::UnknownField, message).param("group_by");
    if metrics.is_empty() {
        return Some(refusal);
    }
    Some(refusal.next(Call::new(
        "aggregate",
        [
            ("stream", stream.name().into()),
            ("connection_id", stream.connection_id().into()),
            ("metrics", metrics.into()),
            ("group_by", ours.into()),
        ],
    )))
}

/// A field that may be grouped by.
fn grouping(
    stream: &StreamView,
    name: &str,
    op: AggregateOp,
    param: &str,
) -> Result<FieldView, Refusal> {
    let field = named_field(stream, name, param)?;
    if field.aggregates().contains(&op) {
        return Ok(field);
    }
    let fitting = stream
        .fields()
        .filter(|field| field.aggregates().contains(&op));
    Err(invalid(
        format!("records cannot be grouped by `{name}` there"),
        param,
    )
    .allowed(fitting.map(FieldView::name)))
}

fn period(stream: &StreamView, time: &TimeGroup) -> Result<GroupKey, Refusal> {
    let field = grouping(
        stream,
        &time.field,
        AggregateOp::GroupByTime,
        "group_by_time.field",
    )?;
    let short = matches!(time.granularity, Granularity::Minute | Granularity::Hour);
    if short && field.datatype() == Datatype::Date {
        let message = format!("`{}` is a date: it has no hours and minutes", time.field);
        return Err(invalid(message, "group_by_time.granularity")
            .allowed(["day", "week", "month", "quarter", "year"]));
    }
    Ok(GroupKey::Period {
        column: field.column(),
        granularity: time.granularity,
        time_zone: match &time.time_zone {
            None => "UTC".to_owned(),
            Some(name) => zone(name)?,
        },
    })
}

/// The zone's name as the IANA database spells it.
fn zone(name: &str) -> Result<String, Refusal> {
    Calendar::new(name)
        .ok()
        .and_then(|calendar| calendar.name().map(str::to_owned))
        .ok_or_else(|| {
            let message = format!(
                "{} is no IANA time zone; write one such as `Europe/Paris`",
                quoted(name)
            );
            invalid(message, "group_by_time.time_zone")
        })
}

fn measure(stream: &StreamView, metric: &Metric) -> Result<Measure, Refusal> {
    let Some(name) = &metric.field else {
        return Ok(Measure {
            op: metric.op,
            column: None,
        });
    };
    let field = named_field(stream, name, "metrics.field")?;
    if !field.aggregates().contains(&metric.op) {
        let fitting = stream
            .fields()
            .filter(|field| field.aggregates().contains(&metric.op));
        let message = format!("`{}` of `{name}` cannot be asked for", metric.op);
        return Err(invalid(message, "metrics.field").allowed(fitting.map(FieldView::name)));
    }
    Ok(Measure {
        op: metric.op,
        column: Some(field.column()),
    })
}

/// The order of groups, made total by the group keys.
fn order(
    request: &AggregateRequest,
    header: &[String],
    keys: usize,
) -> Result<Vec<GroupOrder>, Refusal> {
    let mut order: Vec<GroupOrder> = Vec::new();
    for key in &request.sort {
        let index = header.iter().position(|name| *name == key.name);
        let index = index.ok_or_else(|| {
            let message = format!(
                "{} is neither a group nor a measure here",
                quoted(&key.name)
            );
            Refusal::new(Code::InvalidSort, message)
                .param("sort")
                .allowed(header.iter().cloned())
                .near(&key.name)
        })?;
        order.push(GroupOrder {
            index,
            descending: key.descending,
        });
    }
    if request.sort.is_empty() && keys > 0 {
        order.push(match request.group_by_time {
            // The period is the last of the keys.
            Some(_) => GroupOrder {
                index: keys - 1,
                descending: false,
            },
            None => GroupOrder {
                index: keys,
                descending: true,
            },
        });
    }
    for index in 0..keys {
        if !order.iter().any(|one| one.index == index) {
            order.push(GroupOrder {
                index,
                descending: false,
            });
        }
    }
    Ok(order)
}
