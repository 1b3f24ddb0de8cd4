//! The plan of a read, which a store executes. Every name in it is the ratified mapping's own.
//!
//! The fields of [`AuthorizedPlan`] are private: only this crate builds one, and a store reads it
//! through accessors.

mod column;
mod predicate;

use std::sync::Arc;

use wayleave_model::digest::Digest;
use wayleave_model::mapping::{AggregateOp, SourceKind};

use crate::mask::Masking;
use crate::value::Value;

pub use self::column::{Column, ColumnOrigin};
pub use self::predicate::{Predicate, TextMatch};
pub use wayleave_model::expression::Comparison;

/// A read that policy has allowed; cheap to clone. Nothing outside this crate can build or change
/// one:
///
/// ```compile_fail,E0451
/// use std::sync::Arc;
/// use wayleave_plan::plan::{AuthorizedPlan, Read, Target};
///
/// fn forge(target: Arc<Target>, read: Arc<Read>) -> AuthorizedPlan {
///     AuthorizedPlan { target, read }
/// }
/// ```
///
/// ```compile_fail,E0616
/// use std::sync::Arc;
/// use wayleave_plan::plan::{AuthorizedPlan, Read};
///
/// fn widen(plan: &mut AuthorizedPlan, read: Arc<Read>) {
///     plan.read = read;
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorizedPlan {
    target: Arc<Target>,
    joins: Arc<Vec<JoinedTable>>,
    read: Arc<Read>,
    /// The mask of each column of the answer; empty if no column is masked.
    masks: Arc<Vec<Option<Masking>>>,
}

impl AuthorizedPlan {
    pub(crate) fn new(target: Arc<Target>, joins: Arc<Vec<JoinedTable>>, read: Read) -> Self {
        Self {
            target,
            joins,
            read: Arc::new(read),
            masks: Arc::default(),
        }
    }

    /// Masks the columns of the answer. Keeps no masks if none of them is set.
    pub(crate) fn masked(mut self, masks: Arc<Vec<Option<Masking>>>) -> Self {
        let is_masked = masks.iter().any(Option::is_some);
        self.masks = if is_masked { masks } else { Arc::default() };
        self
    }

    /// Whether [`mask`](Self::mask) changes the answer's rows.
    pub fn is_masked(&self) -> bool {
        !self.masks.is_empty()
    }

    /// Masks a row of the answer, as the store read it. Must run before any other use of the row,
    /// so that neither its values nor their size reach a caller.
    pub fn mask(&self, row: &mut [Value]) {
        for (value, masking) in row.iter_mut().zip(self.masks.iter()) {
            if let Some(masking) = masking {
                *value = masking.apply(std::mem::replace(value, Value::Null));
            }
        }
    }

    pub(crate) fn read_mut(&mut self) -> &mut Read {
        Arc::make_mut(&mut self.read)
    }

    /// The table that is read.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The tables that to-one relations lead to, each joined to the target or to an earlier join.
    /// They add columns only: every row of the target stays, exactly once, whether or not it has a
    /// related row.
    pub fn joins(&self) -> &[JoinedTable] {
        &self.joins
    }

    /// The operation: rows, groups or a count.
    pub fn read(&self) -> &Read {
        &self.read
    }

    /// The first suspended stream among those the plan reads, directly or through relations. A
    /// suspended stream no longer fits its source, and no store answers such a plan.
    pub fn suspended_stream(&self) -> Option<&Arc<str>> {
        let joined = self.joins.iter().find_map(|it| it.suspended.as_ref());
        let direct = self.target.suspended.as_ref().or(joined);
        if direct.is_some() {
            return direct;
        }
        let mut found = None;
        let joins = self.joins.iter().map(|it| &it.rows);
        for predicate in joins {
            find_suspended(predicate, &mut found);
        }
        self.read
            .for_each_predicate(&mut |predicate| find_suspended(predicate, &mut found));
        found
    }
}

/// Finds the first suspended stream that a predicate reads.
fn find_suspended<'p>(predicate: &'p Predicate, found: &mut Option<&'p Arc<str>>) {
    predicate.for_each_exists(&mut |related, joins| {
        let mut tables = std::iter::once(related).chain(joins);
        let suspended = tables.find_map(|it| it.suspended.as_ref());
        *found = found.or(suspended);
    });
}

/// The table that a plan reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The connection.
    pub connection_id: String,
    /// The operator's source the connection is bound to.
    pub source: String,
    /// The kind of store.
    pub kind: SourceKind,
    /// The schema, if the store has schemas.
    pub schema: Option<String>,
    /// The table, exactly as the store has it.
    pub table: String,
    /// The digest of the mapping the plan was made from.
    pub mapping: Digest,
    /// The name of the stream, if it is suspended because it no longer fits its source.
    pub suspended: Option<Arc<str>>,
}

/// A table of the target's source, joined along a relation.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinedTable {
    /// The number by which columns refer to it. The target's own table is [`TARGET`].
    pub table: u16,
    /// The schema, if the store has schemas.
    pub schema: Option<String>,
    /// The table, exactly as the store has it.
    pub name: String,
    /// The name of the stream, if it is suspended because it no longer fits its source.
    pub suspended: Option<Arc<str>>,
    /// Pairs of joined columns: one of an earlier table, and one of this table. A value that is
    /// NULL or not of its datatype joins nothing.
    pub on: Vec<(Column, Column)>,
    /// The rows visible under the grant and the mapping of this table's stream. Other rows count as
    /// absent, and so does everything joined through them.
    pub rows: Predicate,
    /// Picks the row to join where several match although the mapping declares at most one: the
    /// first by these columns, NULL and values of other datatypes last. Empty where all matching
    /// rows count.
    pub first_by: Vec<Column>,
}

/// The number of the target's own table.
pub const TARGET: u16 = 0;

/// The operation of a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Read {
    /// Rows in order.
    Rows(Rows),
    /// Groups and their aggregates.
    Groups(Groups),
    /// The number of rows that satisfy a predicate.
    Count {
        /// The predicate.
        predicate: Predicate,
        /// Whether to count exactly, rather than use the store's statistics (only with
        /// [`Predicate::True`]).
        exact: bool,
    },
}

impl Read {
    /// Number of values in each row of the answer. A count has one.
    pub fn width(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.columns.len(),
            Self::Groups(groups) => groups.columns.len(),
            Self::Count { .. } => 1,
        }
    }
}

/// Rows in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The columns to return, in this order.
    pub columns: Arc<Vec<Column>>,
    /// The rows to return.
    pub predicate: Predicate,
    /// The order. It ends with the key, so it is total.
    pub order: Vec<OrderBy>,
    /// Start after the row with these values of the `order` columns. They may be NULL, which sorts
    /// last.
    pub after: Option<Vec<Value>>,
    /// Limits the rows of each parent; only set when a relation is followed.
    pub per_parent: Option<PartitionLimit>,
    /// Maximum number of rows.
    pub limit: u32,
    /// Whether the store may return a [`Value::Preview`] for a text too long for any page, in
    /// columns that the rows are not ordered by.
    pub previews: bool,
}

/// The first rows, in the order of the plan, for each distinct value of some columns: the rows with
/// `row_number() over (partition by … order by …) <= limit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionLimit {
    /// The partition columns. None of their values is NULL under the plan's predicate.
    pub by: Vec<Column>,
    /// Maximum number of rows for each distinct value.
    pub limit: u32,
}

/// One column of an order. NULLs come last in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderBy {
    /// The column.
    pub column: Column,
    /// Whether the largest value comes first.
    pub descending: bool,
    /// Whether the column may hold NULL (a key column never does).
    pub nullable: bool,
}

/// Groups and their aggregates, in order.
///
/// Without `by` there is exactly one group, even over no rows; with `by` there is one for each key
/// that has rows. The columns of the answer, of `order` and of `having` have origin
/// [`ColumnOrigin::Group`], or are computed from such columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// What to group by; empty for one group of everything.
    pub by: Vec<GroupKey>,
    /// What to aggregate in each group.
    pub aggregates: Vec<Aggregate>,
    /// The rows to group.
    pub predicate: Predicate,
    /// The columns of the answer.
    pub columns: Vec<Column>,
    /// The groups to return.
    pub having: Predicate,
    /// The order of groups, made total by the group keys. Compares values as they are in the
    /// answer: aggregates after rounding.
    pub order: Vec<OrderBy>,
    /// Start after the group with these values of the `order` columns.
    pub after: Option<Vec<Value>>,
    /// Maximum number of groups.
    pub limit: u32,
}

/// One part of a group's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupKey {
    /// A column's value; NULL is a group of its own.
    Column(Column),
    /// The calendar period of a time; NULL is a group of its own.
    ///
    /// The value is the start of the period. For [`Granularity::Day`] and longer it is a
    /// [`Value::Date`] in the calendar of the zone. For an hour or a minute, which only datetime
    /// columns have, it is the [`Value::Datetime`] at which the zone's clock began that hour or
    /// minute: the instant minus the minutes and seconds of its local time, so that an hour
    /// repeated when clocks go back is two groups.
    Period {
        /// A date or datetime column.
        column: Column,
        /// The length of a period.
        granularity: Granularity,
        /// The IANA time zone whose calendar applies; dates ignore it.
        time_zone: String,
    },
}

/// The length of a calendar period. Weeks begin on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// A minute.
    Minute,
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// An ISO week.
    Week,
    /// A month.
    Month,
    /// A quarter.
    Quarter,
    /// A year.
    Year,
}

impl Granularity {
    /// Every granularity, the shortest first.
    pub const ALL: &'static [Self] = &[
        Self::Minute,
        Self::Hour,
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Quarter,
        Self::Year,
    ];

    /// The word for it, on the wire and in the functions of stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Year => "year",
        }
    }

    /// The granularity with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.as_str() == word)
    }
}

/// One aggregate of a group.
///
/// All but a `count` without a column skip NULLs. Over no values `count` and `count_distinct` are 0
/// and the others NULL. The same data must give the same bytes on every store, so the results are
/// defined exactly:
///
/// | op | over | result |
/// | --- | --- | --- |
/// | `count`, `count_distinct` | any | `Integer`; text is distinct by its code points |
/// | `sum` | integer | `Integer`, exact, wider than 64 bits if need be |
/// | `sum` | decimal | `Decimal`, exact |
/// | `avg` | integer, decimal | `Decimal`: the exact sum divided by the count, rounded half away from zero to 6 digits after the point, then canonical. [`crate::value::average`] does it |
/// | `sum`, `avg` | number | `Number`, rounded to 12 significant digits by [`crate::value::rounded`]; the order of addition is the store's, so equal answers are not promised and its `Capabilities` say so |
/// | `min`, `max` | any ordered | a value of the column's datatype; text by code point |
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// The operation: `count`, `count_distinct`, `sum`, `avg`, `min` or `max`.
    pub op: AggregateOp,
    /// The aggregated column; `None` counts rows.
    pub column: Option<Column>,
    /// The rows of the group to aggregate. If none of them matches, the result is that over no
    /// values.
    pub filter: Predicate,
}

impl JoinedTable {
    /// Whether the mapping declares that at most one of its rows matches a row.
    pub fn is_to_one(&self) -> bool {
        !self.first_by.is_empty()
    }

    /// The joined tables that a predicate reads, and those they are joined through.
    pub(crate) fn needed(joins: &Arc<Vec<Self>>, predicate: &Predicate) -> Arc<Vec<Self>> {
        if joins.is_empty() {
            return Arc::clone(joins);
        }
        let mut tables = Vec::new();
        predicate.for_each_column(&mut |column| tables.extend(column.tables()));
        // Each table is joined to an earlier one.
        for join in joins.iter().rev() {
            if tables.contains(&join.table) {
                let ours = join.on.iter().map(|(ours, _)| ours);
                tables.extend(ours.flat_map(Column::tables));
            }
        }
        let needed = joins.iter().filter(|it| tables.contains(&it.table));
        Arc::new(needed.cloned().collect())
    }
}

impl Read {
    /// Calls `visit` for every predicate over rows.
    pub fn for_each_predicate<'r>(&'r self, visit: &mut dyn FnMut(&'r Predicate)) {
        match self {
            Self::Rows(rows) => visit(&rows.predicate),
            Self::Groups(groups) => {
                visit(&groups.predicate);
                for aggregate in &groups.aggregates {
                    visit(&aggregate.filter);
                }
            }
            Self::Count { predicate, .. } => visit(predicate),
        }
    }
}
