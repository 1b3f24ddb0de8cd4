//! What a mapping computes: fields from fields, measures from records.

use super::Spanned;
use crate::expression::{self, ExpressionError, Syntax};

/// Where a field's values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A column, exactly as the store has it. Default: of the field's name.
    Column(Spanned<String>),
    /// The record's other fields, and those its to-one relations lead to.
    Computed(Spanned<Expression>),
}

/// An expression: its text, and what the text says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    text: String,
    syntax: Syntax,
}

impl Expression {
    /// Reads an expression.
    pub fn parse(text: impl Into<String>) -> Result<Self, ExpressionError> {
        let text = text.into();
        let syntax = expression::parse(&text)?;
        Ok(Self { text, syntax })
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it says.
    pub fn syntax(&self) -> &Syntax {
        &self.syntax
    }
}

/// An entry of `[streams.<stream>.measures]`: something to measure, under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedMeasure {
    /// The measure's name.
    pub name: Spanned<String>,
    /// What is measured.
    pub expression: Spanned<Expression>,
}
