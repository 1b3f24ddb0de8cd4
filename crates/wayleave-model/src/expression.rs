//! The language of computed fields and measures: small, closed and typed.
//!
//! ```text
//! FirstName || ' ' || LastName
//! UnitPrice * Quantity * (1 - Discount)
//! if(receipt > commit, 'late', 'on time')
//! sum(amount) / count_distinct(order_id)
//! ```
//!
//! [`parse`] turns a text into [`Syntax`], whose nodes carry their spans. [`Formula`] is the typed
//! form: every node has a datatype, every conversion is explicit, and the type of leaves is a
//! parameter: the path of a field here, a column of a store in a plan.

mod coerce;
mod formula;
mod lex;
mod literal;
mod parse;
mod resolve;
mod typing;

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

pub use formula::{AggregateTerm, Arithmetic, Formula, Literal, Node};
pub use parse::parse;
pub use typing::{FieldTypes, Path, UnknownPath, type_field, type_measure};

use crate::mapping::{AggregateOp, ExactNumber};

/// Maximum length of an expression, in characters.
pub const MAX_EXPRESSION_CHARS: usize = 1_000;
/// Maximum nesting depth of an expression.
pub const MAX_NESTING: usize = 32;
/// Decimal places of a quotient, which is rounded half away from zero.
pub const QUOTIENT_DIGITS: u8 = 6;
/// Maximum number of decimal places that `round` takes.
pub const MAX_ROUND_DIGITS: u8 = 12;
/// Maximum number of field references in an expression, including those in the computed fields it
/// uses.
pub(crate) const MAX_LEAVES: usize = 128;
/// Maximum length of a chain of computed fields, each computed from the next.
pub(crate) const MAX_CHAIN: usize = 32;
/// Maximum depth of a formula after its computed fields are expanded. Readers of formulas, and some
/// stores, recurse to that depth.
pub(crate) const MAX_DEPTH: usize = 256;
/// Maximum number of relations in a path.
pub const MAX_HOPS: usize = 4;
/// Maximum number of relations that the computed fields and measures of one stream follow together.
/// A plan joins a table for each, in addition to those of the caller's own paths.
pub const MAX_FOLLOWED_RELATIONS: usize = 24;

/// Why a text is not a valid expression, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The byte range in the text.
    pub span: Range<usize>,
}

impl ExpressionError {
    pub(crate) fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            span,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A node of the syntax tree of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Syntax {
    /// The kind of node.
    pub kind: SyntaxKind,
    /// Its byte range in the text.
    pub span: Range<usize>,
}

/// The kind of a syntax node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyntaxKind {
    /// `'text'`
    Text(String),
    /// `12`, `1.50`
    Number(ExactNumber),
    /// `true`, `false`
    Boolean(bool),
    /// `null`
    Null,
    /// `Name`, `album.artist.Name`
    Path(Vec<String>),
    /// `-x`
    Negate(Box<Syntax>),
    /// `not x`
    Not(Box<Syntax>),
    /// `x is null`, `x is not null`
    IsNull {
        /// The operand.
        value: Box<Syntax>,
        /// Whether it is `is not null`.
        negated: bool,
    },
    /// `a + b`
    Binary {
        /// The operator.
        operator: Operator,
        /// The left operand.
        left: Box<Syntax>,
        /// The right operand.
        right: Box<Syntax>,
    },
    /// `round(x, 2)`
    Call {
        /// The function.
        function: Function,
        /// The arguments.
        arguments: Vec<Syntax>,
    },
}

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `+ - * /`
    Arithmetic(Arithmetic),
    /// `||`
    Concat,
    /// `= != < <= > >=`
    Compare(Comparison),
    /// `and`
    And,
    /// `or`
    Or,
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arithmetic(arithmetic) => arithmetic.symbol(),
            Self::Concat => "||",
            Self::Compare(comparison) => comparison.symbol(),
            Self::And => "and",
            Self::Or => "or",
        })
    }
}

/// A comparison operator. A comparison with null is false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Not equal, and neither is null.
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

impl Comparison {
    /// Its spelling in an expression.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Ne => "!=",
            Self::Gt => ">",
            Self::Gte => ">=",
            Self::Lt => "<",
            Self::Lte => "<=",
        }
    }

    /// Whether it holds for two values in this order.
    pub const fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::Ne => ordering.is_ne(),
            Self::Gt => ordering.is_gt(),
            Self::Gte => ordering.is_ge(),
            Self::Lt => ordering.is_lt(),
            Self::Lte => ordering.is_le(),
        }
    }
}

/// A function that an expression may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// `coalesce(a, b, …)`: the first value that is not null.
    Coalesce,
    /// `round(x, digits)`: half away from zero.
    Round,
    /// `if(condition, a, b)`.
    If,
    /// An aggregate, in a measure only.
    Aggregate(AggregateOp),
}

impl Function {
    const ALL: &'static [Self] = &[
        Self::Coalesce,
        Self::Round,
        Self::If,
        Self::Aggregate(AggregateOp::Sum),
        Self::Aggregate(AggregateOp::Avg),
        Self::Aggregate(AggregateOp::Min),
        Self::Aggregate(AggregateOp::Max),
        Self::Aggregate(AggregateOp::Count),
        Self::Aggregate(AggregateOp::CountDistinct),
    ];

    /// Its name in an expression.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coalesce => "coalesce",
            Self::Round => "round",
            Self::If => "if",
            Self::Aggregate(op) => op.as_str(),
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.name() == name)
    }
}

#[cfg(test)]
mod tests;
