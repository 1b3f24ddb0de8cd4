//! Conditions on rows and groups.

use wayleave_model::expression::Comparison;

use super::{Column, JoinedTable};
use crate::value::Value;

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
    /// A text column that holds this text: by code points, no wildcards.
    Like {
        /// The column.
        column: Column,
        /// The text; lower-case where case is folded.
        text: String,
        /// Where.
        place: TextPlace,
        /// Whether letters that differ only in case are one: see [`crate::value::fold`].
        fold: bool,
    },
    /// A comparison of two columns of one datatype, neither of them NULL.
    CompareColumns {
        /// The left column.
        left: Column,
        /// How.
        comparison: Comparison,
        /// The right column.
        right: Column,
    },
    /// Some row of a related table satisfies a predicate; `negated`: none does.
    Exists {
        /// The table.
        related: Box<JoinedTable>,
        /// What its to-one relations lead to.
        joins: Vec<JoinedTable>,
        /// Which of its rows.
        predicate: Box<Predicate>,
        /// No row does.
        negated: bool,
    },
    /// NULL or not.
    IsNull {
        /// The column.
        column: Column,
        /// Holds when the column is not NULL.
        negated: bool,
    },
}

/// Where a text is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextPlace {
    /// The whole text.
    Whole,
    /// At its beginning.
    Beginning,
    /// Anywhere in it.
    Anywhere,
}

impl Predicate {
    /// Calls `visit` for the tables of every condition on related rows, those inside others too.
    pub fn for_each_exists<'p>(
        &'p self,
        visit: &mut dyn FnMut(&'p JoinedTable, &'p [JoinedTable]),
    ) {
        match self {
            Self::And(parts) | Self::Or(parts) => {
                for part in parts {
                    part.for_each_exists(visit);
                }
            }
            Self::Granted(inner) => inner.for_each_exists(visit),
            Self::Exists {
                related,
                joins,
                predicate,
                ..
            } => {
                visit(related, joins);
                predicate.for_each_exists(visit);
            }
            _ => {}
        }
    }

    /// Calls `visit` for every column that is compared, those inside conditions on related rows
    /// included.
    pub fn for_each_column<'p>(&'p self, visit: &mut dyn FnMut(&'p Column)) {
        match self {
            Self::True | Self::False => {}
            Self::And(parts) | Self::Or(parts) => {
                for part in parts {
                    part.for_each_column(visit);
                }
            }
            Self::Granted(inner) => inner.for_each_column(visit),
            Self::CompareColumns { left, right, .. } => {
                visit(left);
                visit(right);
            }
            Self::Compare { column, .. }
            | Self::In { column, .. }
            | Self::Like { column, .. }
            | Self::IsNull { column, .. } => visit(column),
            Self::Exists {
                related,
                joins,
                predicate,
                ..
            } => {
                for table in std::iter::once(&**related).chain(joins) {
                    for (ours, theirs) in &table.on {
                        visit(ours);
                        visit(theirs);
                    }
                    table.rows.for_each_column(visit);
                }
                predicate.for_each_column(visit);
            }
        }
    }

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
