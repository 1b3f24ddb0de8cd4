//! Typed expressions.

use super::Comparison;
use crate::mapping::{AggregateOp, Datatype, ExactNumber};

/// A typed expression. Its value is null or of its datatype.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Formula<L> {
    /// The datatype of its values.
    pub datatype: Datatype,
    /// The computation.
    pub node: Node<L>,
}

/// A computation. Its value is null if an operand is null, except where a variant says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node<L> {
    /// A value that the reader of the formula supplies: a field, a column, an aggregate.
    Leaf(L),
    /// A constant of the formula's datatype.
    Literal(Literal),
    /// Converts a value: integer to decimal, integer or decimal to number, integer to string.
    Convert(Box<Formula<L>>),
    /// Arithmetic on two values of the formula's own datatype. Exact on integers and decimals,
    /// except for a quotient, which has [`QUOTIENT_DIGITS`](super::QUOTIENT_DIGITS) decimal places.
    /// Division by zero gives null.
    Arithmetic {
        /// The operation.
        op: Arithmetic,
        /// The left operand.
        left: Box<Formula<L>>,
        /// The right operand.
        right: Box<Formula<L>>,
    },
    /// Concatenated texts.
    Concat(Vec<Formula<L>>),
    /// Compares two values of one datatype. False, never null, if one is null.
    Compare {
        /// The comparison operator.
        comparison: Comparison,
        /// The left value.
        left: Box<Formula<L>>,
        /// The right value.
        right: Box<Formula<L>>,
    },
    /// All conditions hold. A condition that is null does not hold.
    All(Vec<Formula<L>>),
    /// At least one of the conditions holds.
    Any(Vec<Formula<L>>),
    /// The condition does not hold, or is null.
    Not(Box<Formula<L>>),
    /// The value is null.
    IsNull(Box<Formula<L>>),
    /// The first value that is not null.
    Coalesce(Vec<Formula<L>>),
    /// An integer or decimal, rounded half away from zero to a number of decimal places.
    Round {
        /// The value.
        value: Box<Formula<L>>,
        /// Number of decimal places.
        digits: u8,
    },
    /// `then` if the condition holds, else `otherwise`.
    If {
        /// The condition; null is false.
        condition: Box<Formula<L>>,
        /// The value if it holds.
        then: Box<Formula<L>>,
        /// The value if it does not.
        otherwise: Box<Formula<L>>,
    },
}

/// A constant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Literal {
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// An integer, a decimal or a number.
    Number(ExactNumber),
    /// A text, a date (`2026-01-31`) or a datetime (RFC 3339 in UTC).
    Text(String),
}

/// An arithmetic operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

impl Arithmetic {
    /// Its spelling in an expression.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
        }
    }
}

/// A leaf of a measure: an aggregate over a formula's values for each record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AggregateTerm<L> {
    /// The aggregate.
    pub op: AggregateOp,
    /// The aggregated formula; `None` counts records.
    pub over: Option<Formula<L>>,
}

impl<L> AggregateTerm<L> {
    /// The datatype of the result: integer for counts, decimal for the mean of integers, else the
    /// datatype of the aggregated formula.
    pub fn datatype(&self) -> Datatype {
        match (self.op, &self.over) {
            (AggregateOp::Avg, Some(over)) if over.datatype == Datatype::Integer => {
                Datatype::Decimal
            }
            (
                AggregateOp::Sum | AggregateOp::Avg | AggregateOp::Min | AggregateOp::Max,
                Some(over),
            ) => over.datatype,
            _ => Datatype::Integer,
        }
    }
}

impl<L> Formula<L> {
    /// A leaf.
    pub fn leaf(datatype: Datatype, leaf: L) -> Self {
        Self {
            datatype,
            node: Node::Leaf(leaf),
        }
    }

    /// Calls `visit` for every leaf, in the order of the text.
    pub fn for_each_leaf<'f>(&'f self, visit: &mut dyn FnMut(&'f L)) {
        match &self.node {
            Node::Leaf(leaf) => visit(leaf),
            Node::Literal(_) => {}
            Node::Convert(part) | Node::Not(part) | Node::IsNull(part) => {
                part.for_each_leaf(visit);
            }
            Node::Round { value, .. } => value.for_each_leaf(visit),
            Node::Arithmetic { left, right, .. } | Node::Compare { left, right, .. } => {
                left.for_each_leaf(visit);
                right.for_each_leaf(visit);
            }
            Node::Concat(parts) | Node::All(parts) | Node::Any(parts) | Node::Coalesce(parts) => {
                for part in parts {
                    part.for_each_leaf(visit);
                }
            }
            Node::If {
                condition,
                then,
                otherwise,
            } => {
                condition.for_each_leaf(visit);
                then.for_each_leaf(visit);
                otherwise.for_each_leaf(visit);
            }
        }
    }

    /// The nesting depth.
    pub(super) fn depth(&self) -> usize {
        let most = |parts: &[Self]| parts.iter().map(Self::depth).max().unwrap_or(0);
        let inner = match &self.node {
            Node::Leaf(_) | Node::Literal(_) => 0,
            Node::Convert(part)
            | Node::Not(part)
            | Node::IsNull(part)
            | Node::Round { value: part, .. } => part.depth(),
            Node::Arithmetic { left, right, .. } | Node::Compare { left, right, .. } => {
                left.depth().max(right.depth())
            }
            Node::Concat(parts) | Node::All(parts) | Node::Any(parts) | Node::Coalesce(parts) => {
                most(parts)
            }
            Node::If {
                condition,
                then,
                otherwise,
            } => condition.depth().max(then.depth()).max(otherwise.depth()),
        };
        inner + 1
    }

    /// Replaces every leaf by another of the same datatype.
    pub fn map<M>(&self, leaf: &mut impl FnMut(&L) -> M) -> Formula<M> {
        let replaced = self.try_map(&mut |datatype, one: &L| {
            Ok::<_, std::convert::Infallible>(Formula::leaf(datatype, leaf(one)))
        });
        match replaced {
            Ok(formula) => formula,
            Err(never) => match never {},
        }
    }

    /// Replaces every leaf by a formula of the same datatype.
    pub fn try_replace<M, E>(
        &self,
        replace: &mut impl FnMut(&L) -> Result<Formula<M>, E>,
    ) -> Result<Formula<M>, E> {
        self.try_map(&mut |_, leaf: &L| replace(leaf))
    }

    fn try_map<M, E>(
        &self,
        replace: &mut impl FnMut(Datatype, &L) -> Result<Formula<M>, E>,
    ) -> Result<Formula<M>, E> {
        let mut one = |part: &Self| part.try_map(replace).map(Box::new);
        let node = match &self.node {
            Node::Leaf(leaf) => return replace(self.datatype, leaf),
            Node::Literal(literal) => Node::Literal(literal.clone()),
            Node::Convert(part) => Node::Convert(one(part)?),
            Node::Not(part) => Node::Not(one(part)?),
            Node::IsNull(part) => Node::IsNull(one(part)?),
            Node::Round { value, digits } => Node::Round {
                value: one(value)?,
                digits: *digits,
            },
            Node::Arithmetic { op, left, right } => Node::Arithmetic {
                op: *op,
                left: one(left)?,
                right: one(right)?,
            },
            Node::Compare {
                comparison,
                left,
                right,
            } => Node::Compare {
                comparison: *comparison,
                left: one(left)?,
                right: one(right)?,
            },
            Node::If {
                condition,
                then,
                otherwise,
            } => Node::If {
                condition: one(condition)?,
                then: one(then)?,
                otherwise: one(otherwise)?,
            },
            Node::Concat(parts) => Node::Concat(Self::each(parts, replace)?),
            Node::All(parts) => Node::All(Self::each(parts, replace)?),
            Node::Any(parts) => Node::Any(Self::each(parts, replace)?),
            Node::Coalesce(parts) => Node::Coalesce(Self::each(parts, replace)?),
        };
        Ok(Formula {
            datatype: self.datatype,
            node,
        })
    }

    fn each<M, E>(
        parts: &[Self],
        replace: &mut impl FnMut(Datatype, &L) -> Result<Formula<M>, E>,
    ) -> Result<Vec<Formula<M>>, E> {
        parts.iter().map(|part| part.try_map(replace)).collect()
    }
}
