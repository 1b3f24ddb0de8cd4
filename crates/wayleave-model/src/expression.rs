//! The language of computed fields and measures: small, closed and typed.
//!
//! ```text
//! FirstName || ' ' || LastName
//! UnitPrice * Quantity * (1 - Discount)
//! if(receipt > commit, 'late', 'on time')
//! sum(amount) / count_distinct(order_id)
//! ```
//!
//! [`parse`] reads a text into [`Syntax`], which knows where each part stands. [`Formula`] is the
//! same after typing: every part has a datatype, every conversion is written out, and a leaf is
//! whatever the reader puts there: the path of a field here, a column of a store in a plan.

mod coerce;
mod formula;
mod lex;
mod literal;
mod parse;
mod resolve;
mod typing;

use std::fmt;
use std::ops::Range;

pub use formula::{Aggregated, Arithmetic, Formula, Literal, Node};
pub use parse::parse;
pub use typing::{FieldTypes, Path, UnknownPath, type_field, type_measure};

use crate::mapping::{AggregateOp, ExactNumber};

/// The most characters of an expression.
pub const MAX_EXPRESSION: usize = 1_000;
/// How deep parts of an expression may be nested.
pub const MAX_NESTING: usize = 32;
/// How many digits after the point a quotient keeps, rounded half away from zero.
pub const QUOTIENT_DIGITS: u8 = 6;
/// The most digits after the point that `round` takes.
pub const MAX_ROUND_DIGITS: u8 = 12;
/// The most fields an expression may be computed from, those that are computed themselves included.
pub(crate) const MAX_LEAVES: usize = 128;
/// How many computed fields may be computed one from the other.
pub(crate) const MAX_CHAIN: usize = 32;
/// How deep a formula may be once every computed field in it is replaced. Whoever reads one, and some
/// stores, take stack for it.
pub(crate) const MAX_DEPTH: usize = 256;
/// The most relations a path follows.
pub const MAX_HOPS: usize = 4;
/// The most relations that the computed fields and measures of one stream follow together. A plan joins
/// a table for each, and a caller's own paths come on top.
pub const MAX_FOLLOWED_RELATIONS: usize = 24;

/// Why a text is no expression, and which bytes of it say so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The bytes of the text.
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

/// A part of an expression as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Syntax {
    /// What it is.
    pub kind: SyntaxKind,
    /// Its bytes in the text.
    pub span: Range<usize>,
}

/// What a part of an expression is.
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
        /// What is looked at.
        value: Box<Syntax>,
        /// `is not null`.
        negated: bool,
    },
    /// `a + b`
    Binary {
        /// What joins the two.
        operator: Operator,
        /// The left part.
        left: Box<Syntax>,
        /// The right part.
        right: Box<Syntax>,
    },
    /// `round(x, 2)`
    Call {
        /// What is called.
        function: Function,
        /// The parts it is given.
        arguments: Vec<Syntax>,
    },
}

/// What joins two parts of an expression.
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

/// How two values are compared. A comparison with null is false.
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
    /// How an expression writes it.
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
}

/// What an expression may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// `coalesce(a, b, …)`: the first that is not null.
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
