//! What a store is asked to read. Every name in it is the ratified mapping's own.
//!
//! Fields are private: a plan is built by this crate's `authorize` functions alone, and a store
//! reads it through accessors.

mod column;
mod predicate;

use std::sync::Arc;

use wayleave_model::digest::Digest;
use wayleave_model::mapping::{AggregateOp, SourceKind};

use crate::mask::Masking;
use crate::value::Value;

pub use self::column::{Column, ColumnOrigin};
pub use self::predicate::{Predicate, TextPlace};
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
    /// How each column of the answer is masked; empty where none is.
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

    /// The same with the columns of its answer masked so, as far as there are masks.
    pub(crate) fn masked(mut self, masks: Arc<Vec<Option<Masking>>>) -> Self {
        let is_masked = masks.iter().any(Option::is_some);
        self.masks = if is_masked { masks } else { Arc::default() };
        self
    }

    /// Whether the answer's rows are to be masked.
    pub fn is_masked(&self) -> bool {
        !self.masks.is_empty()
    }

    /// Masks a row of the answer, as the store read it. Rows are masked before anything else is done
    /// with them, so that neither their values nor their size reach a caller.
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

    /// Where to read.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The records that to-one relations lead to, each reached from the target or from one before
    /// it. They add columns: every row of the target stays, once, whether or not it leads anywhere.
    pub fn joins(&self) -> &[JoinedTable] {
        &self.joins
    }

    /// What to read.
    pub fn read(&self) -> &Read {
        &self.read
    }

    /// A stream that the plan reads, itself or along a relation, and that is suspended because it no
    /// longer fits its source. No store answers such a plan.
    pub fn suspended(&self) -> Option<&Arc<str>> {
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

/// The first suspended stream that a predicate looks at.
fn find_suspended<'p>(predicate: &'p Predicate, found: &mut Option<&'p Arc<str>>) {
    predicate.for_each_exists(&mut |related, joins| {
        let mut tables = std::iter::once(related).chain(joins);
        let suspended = tables.find_map(|it| it.suspended.as_ref());
        *found = found.or(suspended);
    });
}

/// Where a plan reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The connection.
    pub connection_id: String,
    /// The operator's source the connection is bound to.
    pub source: String,
    /// The kind of store.
    pub kind: SourceKind,
    /// The schema, where the store has such a notion.
    pub schema: Option<String>,
    /// The table, exactly as the store has it.
    pub table: String,
    /// The digest of the mapping the plan was made from.
    pub mapping: Digest,
    /// The stream's name, where it is suspended: it no longer fits its source.
    pub suspended: Option<Arc<str>>,
}

/// A table of the target's source that a relation leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinedTable {
    /// The number its columns name it by. The target's own table is [`TARGET`].
    pub table: u16,
    /// The schema, where the store has such a notion.
    pub schema: Option<String>,
    /// The table, exactly as the store has it.
    pub name: String,
    /// The stream's name, where it is suspended: it no longer fits its source.
    pub suspended: Option<Arc<str>>,
    /// What joins it: a column of a table named before it, and one of its own. A value that is NULL
    /// or not of its datatype joins nothing.
    pub on: Vec<(Column, Column)>,
    /// Which of its rows there are: those its own grant and mapping let be seen. The others are
    /// absent, and so is whatever they would lead to.
    pub rows: Predicate,
    /// Which row is joined where several meet although their mapping says that at most one does: the
    /// first by these columns, NULL and values of other datatypes last. Empty where several are meant.
    pub first_by: Vec<Column>,
}

/// The number of the target's own table.
pub const TARGET: u16 = 0;

/// What to read.
#[derive(Debug, Clone, PartialEq)]
pub enum Read {
    /// Rows in order.
    Rows(Rows),
    /// Groups and their measures.
    Groups(Groups),
    /// How many rows satisfy a predicate.
    Count {
        /// The predicate.
        predicate: Predicate,
        /// Exactly, or as the store's statistics say (only with [`Predicate::True`]).
        exact: bool,
    },
}

impl Read {
    /// How many values each row of the answer has; a count has one.
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
    /// Which rows.
    pub predicate: Predicate,
    /// The order. It ends with the key, so it is total.
    pub order: Vec<OrderBy>,
    /// Begin after the row with these values of the `order` columns (NULLs among them, last).
    pub after: Option<Vec<Value>>,
    /// At most so many rows of each parent; only where a relation is followed.
    pub each: Option<Each>,
    /// At most so many rows.
    pub limit: u32,
    /// Whether a column that the rows are not ordered by may be answered by the beginning of a text
    /// that no page shows whole: a [`Value::Preview`].
    pub previews: bool,
}

/// The first rows, in the order of the plan, of each distinct value of some columns: what
/// `row_number() over (partition by … order by …) <= limit` keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Each {
    /// The columns; none of their values is NULL under the plan's predicate.
    pub by: Vec<Column>,
    /// At most so many rows of each.
    pub limit: u32,
}

/// One column of an order. NULLs come last in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderBy {
    /// The column.
    pub column: Column,
    /// From the largest down.
    pub descending: bool,
    /// Whether the column may hold NULL (a key column never does).
    pub nullable: bool,
}

/// Groups and what is measured of them, in order.
///
/// Without `by` there is exactly one group, even over no rows; with `by` there is one for each key
/// that has rows. What is answered of a group, ordered by and compared in `having` are columns of
/// origin [`ColumnOrigin::Group`], or computed from such.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// What to group by; empty for one group of everything.
    pub by: Vec<GroupKey>,
    /// What to aggregate in each group.
    pub aggregates: Vec<Aggregate>,
    /// Which rows.
    pub predicate: Predicate,
    /// What is answered of each group, in this order.
    pub columns: Vec<Column>,
    /// Which groups.
    pub having: Predicate,
    /// The order of groups, made total by the group keys: by the values as they are in the answer,
    /// aggregates after rounding.
    pub order: Vec<OrderBy>,
    /// Begin after the group with these values of the `order` columns.
    pub after: Option<Vec<Value>>,
    /// At most so many groups.
    pub limit: u32,
}

/// One part of a group's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupKey {
    /// A column's value; NULL is a group of its own.
    Column(Column),
    /// The calendar period a time falls in; NULL is a group of its own.
    ///
    /// The value is the period's beginning. For [`Granularity::Day`] and longer it is a
    /// [`Value::Date`] in the calendar of the zone. For an hour or a minute, which only datetime
    /// columns have, it is the [`Value::Datetime`] at which the zone's clock began that hour or
    /// minute: the instant less the minutes and seconds its own local time shows, so that an hour
    /// repeated when clocks go back is two groups.
    Period {
        /// A date or datetime column.
        column: Column,
        /// How long a period is.
        granularity: Granularity,
        /// The IANA time zone whose calendar decides; dates ignore it.
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

/// One aggregate of a group.
///
/// NULLs are skipped, by all but a `count` without a column. Over no values `count` and
/// `count_distinct` are 0 and the others NULL. The same data gives the same bytes on every store,
/// so the results are defined exactly:
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
    /// What is computed: `count`, `count_distinct`, `sum`, `avg`, `min` or `max`.
    pub op: AggregateOp,
    /// Over which column; `None` counts rows.
    pub column: Option<Column>,
    /// Over which of the group's rows. Without any, it is what it is over no values.
    pub filter: Predicate,
}

impl JoinedTable {
    /// Whether the mapping says that at most one of its rows meets a row.
    pub fn is_to_one(&self) -> bool {
        !self.first_by.is_empty()
    }

    /// Those of the joined tables that a predicate looks at, and those that lead to them.
    pub(crate) fn needed(joins: &Arc<Vec<Self>>, predicate: &Predicate) -> Arc<Vec<Self>> {
        if joins.is_empty() {
            return Arc::clone(joins);
        }
        let mut tables = Vec::new();
        predicate.for_each_column(&mut |column| tables.extend(column.tables()));
        // Each is joined to one before it.
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
