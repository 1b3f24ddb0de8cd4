//! Predicates on rows and groups.

use wayleave_model::expression::Comparison;

use super::{Column, JoinedTable};
use crate::value::Value;

/// A predicate. Two-valued: a comparison with NULL is false, and so is its negation.
///
/// A store may hold values that are not of their column's datatype. Under [`Predicate::Granted`]
/// such a value satisfies no predicate. Elsewhere it satisfies none either, but a store that reads
/// such a value in a granted row, and cannot rule the row out otherwise, fails the read instead of
/// guessing.
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
    /// The restriction by a grant or the mapping. Inside it, a value that is not of its column's
    /// datatype satisfies nothing, not even a negated comparison. Appears only in a conjunction at
    /// the top of a plan's predicate, never inside another predicate.
    Granted(Box<Predicate>),
    /// A comparison with one value of the column's datatype, never NULL.
    Compare {
        /// The column.
        column: Column,
        /// The operator.
        comparison: Comparison,
        /// The value.
        value: Value,
    },
    /// Equal to one of these values, none of them NULL. Negated: not NULL and equal to none.
    In {
        /// The column.
        column: Column,
        /// The values; never empty.
        values: Vec<Value>,
        /// Whether to negate.
        negated: bool,
    },
    /// A text column that contains this text, compared by code point, without wildcards.
    Like {
        /// The column.
        column: Column,
        /// The text; in lower case if case is folded.
        text: String,
        /// Where the text must occur.
        place: TextMatch,
        /// Whether to ignore case, as [`crate::value::fold`] does.
        fold: bool,
    },
    /// A comparison of two columns of one datatype, neither of them NULL.
    CompareColumns {
        /// The left column.
        left: Column,
        /// The operator.
        comparison: Comparison,
        /// The right column.
        right: Column,
    },
    /// Some row of a related table satisfies a predicate. Negated: none does.
    Exists {
        /// The related table.
        related: Box<JoinedTable>,
        /// The tables that its to-one relations lead to.
        joins: Vec<JoinedTable>,
        /// The predicate on its rows.
        predicate: Box<Predicate>,
        /// Whether to negate.
        negated: bool,
    },
    /// The column is NULL. Negated: it is not.
    IsNull {
        /// The column.
        column: Column,
        /// Whether to negate.
        negated: bool,
    },
}

/// Where a text must occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextMatch {
    /// The whole text.
    Whole,
    /// At its beginning.
    Beginning,
    /// Anywhere in it.
    Anywhere,
}

impl Predicate {
    /// Calls `visit` for the tables of every [`Exists`](Self::Exists), nested ones included.
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

    /// Calls `visit` for every column that is compared, also inside [`Exists`](Self::Exists).
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

    /// Wraps the predicate in [`Granted`](Self::Granted).
    pub(crate) fn granted(self) -> Self {
        match self {
            Self::True | Self::False | Self::Granted(_) => self,
            other => Self::Granted(Box::new(other)),
        }
    }

    /// The simplified conjunction of these predicates.
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

    /// The simplified disjunction of these predicates.
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

/// Joins several predicates, returns one as it is, and `None` for none.
fn only(
    mut parts: Vec<Predicate>,
    join: impl FnOnce(Vec<Predicate>) -> Predicate,
) -> Option<Predicate> {
    if parts.len() > 1 {
        return Some(join(parts));
    }
    parts.pop()
}
