//! The expressions with which the stores compute formulas and aggregates.

use wayleave_model::expression::{Arithmetic, Formula};
use wayleave_model::mapping::{AggregateOp, Datatype};
use wayleave_plan::plan::{Column, TextMatch};
use wayleave_plan::value::{Value, folded_letters};
use wayleave_store::StoreError;

use super::shape::NativeKind;
use super::sql::Sql;

/// The measured magnitude of a formula step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Magnitude {
    /// The absolute value of the result.
    Value,
    /// The sum of the absolute values of its operands.
    Sum,
    /// The product of the absolute values of its factors, each counted as at least one.
    Product,
    /// The quotient, or the dividend if that is larger.
    Quotient,
}

/// The power of ten from which on a step of a formula may lose digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DigitLimit {
    /// The magnitude that must be less.
    pub(crate) magnitude: Magnitude,
    /// The exponent.
    pub(crate) exponent: u16,
}

/// Looks up the native kinds of a formula's columns.
pub(crate) type KindLookup<'k, K> = &'k mut dyn FnMut(&Column) -> Result<K, StoreError>;

/// The arithmetic of one dialect. It computes with one form per datatype: [`Compute::operand`]
/// converts a stored column to it, and [`Compute::computed_kind`] names it.
pub(crate) trait Compute {
    /// The native kind of a column.
    type Kind: NativeKind;

    /// A numeric column as an addend.
    fn addend(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Sql;

    /// The exact sum of addends, as it is selected.
    fn sum(&self, column: &Column, addend: Sql) -> Sql;

    /// The sum as a sort key of groups.
    fn sum_order(&self, column: &Column, addend: Sql) -> Sql;

    /// The mean as a sort key of groups, rounded like the answer.
    fn mean_order(&self, column: &Column, addend: Sql) -> Sql;

    /// The native kind of computed values of a datatype.
    fn computed_kind(&self, datatype: Datatype) -> Self::Kind;

    /// The native kind of a formula's result.
    fn formula_kind(
        &self,
        formula: &Formula<Column>,
        _kinds: KindLookup<'_, Self::Kind>,
    ) -> Result<Self::Kind, StoreError> {
        Ok(self.computed_kind(formula.datatype))
    }

    /// The native kind of an aggregate over a column of that kind.
    fn aggregate_kind(
        &self,
        _op: AggregateOp,
        datatype: Datatype,
        _kind: &Self::Kind,
    ) -> Self::Kind {
        self.computed_kind(datatype)
    }

    /// The limit of the last step of a formula, if the store may silently lose digits there.
    fn digit_limit(
        &self,
        _formula: &Formula<Column>,
        _kinds: KindLookup<'_, Self::Kind>,
    ) -> Result<Option<DigitLimit>, StoreError> {
        Ok(None)
    }

    /// Guards a value: the statement fails if the magnitude of these operands is not below its
    /// limit.
    fn limited(&self, _limit: DigitLimit, _operands: [Sql; 2], value: Sql) -> Sql {
        value
    }

    /// A stored column in the form for computing.
    fn operand(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Sql;

    /// A constant in that form.
    fn constant(&self, datatype: Datatype, value: &Value) -> Sql;

    /// Converts a value to another datatype.
    fn convert(&self, from: Datatype, to: Datatype, value: Sql) -> Sql;

    /// Arithmetic on two values of a datatype. Division by zero gives NULL; an exact quotient has
    /// the number of digits after the point that plans define.
    fn arithmetic(&self, datatype: Datatype, op: Arithmetic, left: Sql, right: Sql) -> Sql;

    /// Rounds an exact number half away from zero.
    fn round(&self, value: Sql, digits: u8) -> Sql;

    /// Concatenates texts; NULL if one of them is NULL.
    fn concat(&self, parts: Vec<Sql>) -> Sql {
        Sql::joined(parts, " || ").within("(", ")")
    }

    /// The literals for true and false.
    fn truth(&self) -> (&'static str, &'static str);

    /// A whole exact formula as one expression, if the store has functions of ours for it. `part`
    /// compiles the operands that are not exact arithmetic.
    fn exact(
        &self,
        _formula: &Formula<Column>,
        _part: &mut dyn FnMut(&Formula<Column>) -> Result<Sql, StoreError>,
    ) -> Result<Option<Sql>, StoreError> {
        Ok(None)
    }

    /// A text folded to small letters by the rules of plans.
    fn folded(&self, text: Sql) -> Sql;

    /// Whether a folded text contains another at that place.
    fn like_folded(&self, folded: Sql, text: &str, place: TextMatch) -> Sql;

    /// A count in the form for computing.
    fn count_value(&self, count: Sql) -> Sql;

    /// The sum of addends in the form for computing.
    fn sum_value(&self, column: &Column, addend: Sql) -> Sql;

    /// The mean of addends in the form for computing, rounded like the answer.
    fn mean_value(&self, column: &Column, addend: Sql) -> Sql;

    /// The minimum or maximum of keys in the form for computing.
    fn extreme_value(&self, column: &Column, kind: &Self::Kind, extreme: Sql) -> Sql;
}

/// Every folded capital with its small letter, as hexadecimal digits of their UTF-8 bytes.
pub(crate) fn folded_bytes() -> impl Iterator<Item = (String, String)> {
    let digits = |c: char| {
        let mut digits = String::new();
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            digits.extend(
                [byte >> 4, byte & 0xF]
                    .map(|it| char::from_digit(it.into(), 16))
                    .iter()
                    .flatten(),
            );
        }
        digits
    };
    folded_letters().map(move |(capital, small)| (digits(capital), digits(small)))
}
