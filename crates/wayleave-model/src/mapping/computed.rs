//! The computed parts of a mapping: fields computed from fields, measures from records.

use super::Spanned;
use crate::expression::{self, ExpressionError, Syntax};

/// The origin of a field's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A column, by its exact name in the store. Default: the field's name.
    Column(Spanned<String>),
    /// An expression over the record's other fields, and fields that its to-one relations lead to.
    Computed(Spanned<Expression>),
}

/// An expression: its text and its syntax tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    text: String,
    syntax: Syntax,
}

impl Expression {
    /// Parses an expression.
    pub fn parse(text: impl Into<String>) -> Result<Self, ExpressionError> {
        let text = text.into();
        let syntax = expression::parse(&text)?;
        Ok(Self { text, syntax })
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The syntax tree.
    pub fn syntax(&self) -> &Syntax {
        &self.syntax
    }
}

/// An entry of `[streams.<stream>.measures]`: a named expression over aggregates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedMeasure {
    /// The measure's name.
    pub name: Spanned<String>,
    /// The expression.
    pub expression: Spanned<Expression>,
}
