//! What a store is asked to read. Every name in it is the ratified mapping's own.
//!
//! Fields are private: a plan is built by this crate's `authorize` functions alone, and a store
//! reads it through accessors.

use std::sync::Arc;

use wayleave_model::{
    digest::Digest,
    mapping::{AggregateOp, Datatype, SourceKind},
};

use crate::value::Value;

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
    read: Arc<Read>,
}

impl AuthorizedPlan {
    pub(crate) fn new(target: Arc<Target>, read: Read) -> Self {
        Self {
            target,
            read: Arc::new(read),
        }
    }

    pub(crate) fn read_mut(&mut self) -> &mut Read {
        Arc::make_mut(&mut self.read)
    }

    /// Where to read.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What to read.
    pub fn read(&self) -> &Read {
        &self.read
    }
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
}

/// A column and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Column {
    /// Its name, exactly as the store has it.
    pub name: String,
    /// What it holds.
    pub datatype: Datatype,
    /// Whether it holds many values.
    pub many: bool,
}

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
            Self::Groups(groups) => groups.by.len() + groups.measures.len(),
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

/// Groups and their measures, in order.
///
/// A row of the answer holds the values of `by`, then those of `measures`. Without `by` there is
/// exactly one row, even over no rows; with `by` there is one a group that has rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// What to group by; empty for one group of everything.
    pub by: Vec<GroupKey>,
    /// What to measure in each group.
    pub measures: Vec<Measure>,
    /// Which rows.
    pub predicate: Predicate,
    /// The order of groups, made total by the group keys: by the values as they are in the answer,
    /// measures after rounding. NULLs come last in either direction.
    pub order: Vec<GroupOrder>,
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

/// One measure of a group.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// What is computed: `count`, `count_distinct`, `sum`, `avg`, `min` or `max`.
    pub op: AggregateOp,
    /// Over which column; `None` counts rows.
    pub column: Option<Column>,
}

/// One key of the order of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupOrder {
    /// An index into `by` followed by `measures`.
    pub index: usize,
    /// From the largest down.
    pub descending: bool,
}

/// Which rows. Two-valued: a comparison with NULL is false, and so is its opposite.
///
/// A store may hold values that are not of their column's datatype. Under [`Predicate::Granted`]
/// such a value satisfies nothing. Elsewhere it never satisfies anything either, but a store that
/// meets one among the granted rows, and cannot tell that the row is not wanted, fails the read
/// instead of guessing.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// Every row.
    True,
    /// No row.
    False,
    /// All of these.
    And(Vec<Predicate>),
    /// Any of these.
    Or(Vec<Predicate>),
    /// What a grant, or the mapping, lets be seen at all. A value that is not of its column's
    /// datatype satisfies nothing in here, negated comparisons included. Stands only in a
    /// conjunction at the top of a plan's predicate, and never inside another one.
    Granted(Box<Predicate>),
    /// A comparison with one value of the column's datatype, never NULL.
    Compare {
        /// The column.
        column: Column,
        /// How.
        comparison: Comparison,
        /// With what.
        value: Value,
    },
    /// Equal to one of these values, none of them NULL; `negated`: not NULL and equal to none.
    In {
        /// The column.
        column: Column,
        /// With what; never empty.
        values: Vec<Value>,
        /// Equal to none of them.
        negated: bool,
    },
    /// A text column that holds, or begins with, this text: exact code points, no wildcards.
    Like {
        /// The column.
        column: Column,
        /// The text.
        text: String,
        /// Only at the beginning.
        prefix: bool,
    },
    /// NULL or not.
    IsNull {
        /// The column.
        column: Column,
        /// Holds when the column is not NULL.
        negated: bool,
    },
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Not equal (and not NULL).
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Gte,
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
}

impl Predicate {
    /// This, as a grant says it.
    pub(crate) fn granted(self) -> Self {
        match self {
            Self::True | Self::False | Self::Granted(_) => self,
            other => Self::Granted(Box::new(other)),
        }
    }

    /// All of these, with what is needless left out.
    pub(crate) fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Self::True => {}
                Self::False => return Self::False,
                Self::And(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        only(kept, Self::And).unwrap_or(Self::True)
    }

    /// Any of these, with what is needless left out.
    pub(crate) fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Self::False => {}
                Self::True => return Self::True,
                Self::Or(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        only(kept, Self::Or).unwrap_or(Self::False)
    }
}

/// The one part there is, or several joined; `None` of none.
fn only(
    mut parts: Vec<Predicate>,
    join: impl FnOnce(Vec<Predicate>) -> Predicate,
) -> Option<Predicate> {
    if parts.len() > 1 {
        return Some(join(parts));
    }
    parts.pop()
}
