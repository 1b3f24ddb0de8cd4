//! Walks of changes, in the order of change.
//!
//! A walk reads rows by (`updated`, key) up to a horizon: the greatest `updated` when the walk
//! began. Its last page gives a bookmark, where the next walk begins. Delivery is at least once,
//! and a coarse clock loses nothing: the next walk reads the bookmark's own value again, because
//! further rows may get it, unless it is a time more than a minute ago. A record changed during a
//! walk appears again in the next one. Not seen are records that leave the grant's rows, and
//! transactions that commit with an `updated` older than the bookmark.
//!
//! Deleted records appear as tombstones if the mapping has a mark of deletion. Rows without a value
//! of `updated` come at the end of a walk from the beginning.

use wayleave_model::mapping::AggregateOp;

use super::{canonical, refused_at};
use crate::filter;
use crate::layout;
use crate::plan::{
    Aggregate, AuthorizedPlan, Column, Comparison, Groups, OrderBy, Predicate, Read, Rows,
};
use crate::refusal::{Call, Code, Refusal};
use crate::request::QueryRequest;
use crate::scope::PathScope;
use crate::seal::{BOOKMARK_HOURS, Binding, CursorPosition, Seal};
use crate::value::Value;
use crate::view::{ConnectionView, StreamView, View};

/// Age in seconds at which a time counts as settled: no further row is expected to get it.
const SETTLED_SECONDS: i64 = 60;

/// A walk of changes.
#[derive(Debug, Clone)]
pub(super) struct Changes {
    updated: Column,
    /// The start of the walk; `None` for the beginning.
    from: Option<WalkStart>,
    /// The end of the walk, once it is known.
    horizon: Option<Value>,
    plan: AuthorizedPlan,
    binding: Binding,
}

#[derive(Debug, Clone, PartialEq)]
struct WalkStart {
    value: Value,
    /// Whether all rows with exactly this value were seen.
    settled: bool,
}

/// Starts or continues the walk that a request asks for, if any.
pub(super) fn begin(
    view: &View,
    connection: &ConnectionView,
    stream: &StreamView,
    request: &QueryRequest,
    seal: Seal<'_>,
) -> Result<Option<Changes>, Refusal> {
    let Some(since) = &request.changes_since else {
        return Ok(None);
    };
    let Some(updated) = stream.updated() else {
        return Err(unavailable(stream));
    };
    if !request.sort.is_empty() {
        let message = "`changes_since` cannot be combined with `sort`: changes come in the order of \
                       the stream's `updated` field";
        return Err(Refusal::new(Code::InvalidSort, message).param("sort"));
    }
    let binding = Binding::from_parts(&[
        b"wayleave bookmark 1",
        view.subject().as_bytes(),
        &view.epoch().to_be_bytes(),
        stream.mapping.digest().as_bytes(),
        stream.connection_id().as_bytes(),
        stream.name().as_bytes(),
        canonical(request.filter.as_ref()).as_bytes(),
    ]);
    let from = if since == "beginning" {
        None
    } else {
        let refusal = || refused_at(stream.name(), stream.connection_id(), "changes_since");
        let bookmark = seal
            .open(&binding, BOOKMARK_HOURS, since)
            .ok_or_else(refusal)?;
        let settled = bookmark.settled;
        bookmark
            .at
            .into_iter()
            .next()
            .map(|value| WalkStart { value, settled })
    };
    let column = updated.own_column();
    let mut scope = PathScope::new(connection, stream);
    let wanted = match &request.filter {
        None => Predicate::True,
        Some(filter) => filter::parse_caller_filter(&mut scope, filter)?,
    };
    let predicate = Predicate::all([
        stream.granted_rows(),
        wanted,
        since_predicate(&column, from.as_ref()),
    ]);
    Ok(Some(Changes {
        plan: AuthorizedPlan::new(
            stream.target(),
            scope.into_joins(),
            Read::Groups(Groups {
                by: Vec::new(),
                columns: vec![Column::of_group(0, column.label(), column.datatype)],
                aggregates: vec![Aggregate {
                    op: AggregateOp::Max,
                    column: Some(column.clone()),
                    filter: Predicate::True,
                }],
                predicate,
                having: Predicate::True,
                order: Vec::new(),
                after: None,
                limit: 1,
            }),
        ),
        updated: column,
        from,
        horizon: None,
        binding,
    }))
}

fn unavailable(stream: &StreamView) -> Refusal {
    let message = format!(
        "the changes of `{}` cannot be followed; ask without `changes_since`",
        stream.name()
    );
    Refusal::new(Code::ChangesUnavailable, message)
        .param("changes_since")
        .next(Call::new(
            "query_records",
            [
                ("stream", stream.name().into()),
                ("connection_id", stream.connection_id().into()),
            ],
        ))
}

fn since_predicate(updated: &Column, from: Option<&WalkStart>) -> Predicate {
    from.map_or(Predicate::True, |from| Predicate::Compare {
        column: updated.clone(),
        comparison: if from.settled {
            Comparison::Gt
        } else {
            Comparison::Gte
        },
        value: from.value.clone(),
    })
}

/// The order of every walk: (`updated`, key).
pub(super) fn order(stream: &StreamView) -> Vec<OrderBy> {
    let updated = stream.updated().map(|field| OrderBy {
        column: field.own_column(),
        descending: false,
        nullable: !layout::is_always_there(stream, field),
    });
    layout::total(stream, updated.into_iter().collect())
}

impl Changes {
    pub(super) fn since(&self) -> Predicate {
        since_predicate(&self.updated, self.from.as_ref())
    }

    pub(super) fn horizon_plan(&self) -> Option<&AuthorizedPlan> {
        self.horizon.is_none().then_some(&self.plan)
    }

    pub(super) fn horizon(&self) -> Option<&Value> {
        self.horizon.as_ref()
    }

    /// Limits the walk's rows to a horizon.
    pub(super) fn bound(&mut self, horizon: Option<Value>, rows: &mut Rows) {
        let Some(horizon) = horizon else {
            return;
        };
        let without = Predicate::IsNull {
            column: self.updated.clone(),
            negated: false,
        };
        let upto = match &horizon {
            // No row has a value, so only a walk from the beginning has rows.
            Value::Null => without,
            value => {
                let within = Predicate::Compare {
                    column: self.updated.clone(),
                    comparison: Comparison::Lte,
                    value: value.clone(),
                };
                match self.from {
                    Some(_) => within,
                    None => Predicate::any([within, without]),
                }
            }
        };
        let before = std::mem::replace(&mut rows.predicate, Predicate::True);
        rows.predicate = Predicate::all([before, upto]);
        self.horizon = Some(horizon);
    }

    /// The bookmark at the end of a walk.
    pub(super) fn bookmark(&self, seal: Seal<'_>) -> String {
        let from = match &self.horizon {
            Some(Value::Null) | None => self.from.clone(),
            Some(value) => {
                let settled = match value {
                    Value::Datetime(micros) => {
                        micros.div_euclid(1_000_000) + SETTLED_SECONDS < seal.now
                    }
                    _ => false,
                };
                Some(WalkStart {
                    value: value.clone(),
                    settled,
                })
            }
        };
        let position = CursorPosition {
            settled: from.as_ref().is_some_and(|from| from.settled),
            at: from.into_iter().map(|from| from.value).collect(),
            horizon: None,
        };
        seal.seal(&self.binding, BOOKMARK_HOURS, &position)
    }
}
