//! How the stores compute what formulas say.

use wayleave_model::expression::{Arithmetic, Formula};
use wayleave_model::mapping::{AggregateOp, Datatype};
use wayleave_plan::plan::{Column, TextPlace};
use wayleave_plan::value::{Value, folded_letters};
use wayleave_store::StoreError;

use super::shape::NativeKind;
use super::sql::Sql;

/// What of a step of a formula is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Magnitude {
    /// What it gives.
    Value,
    /// The sum of what it adds or subtracts, without signs.
    Sum,
    /// The product of its factors, of which none counts as less than one.
    Product,
    /// The quotient, or what is divided where that is more.
    Quotient,
}

/// A power of ten from which on a step of a formula may lose digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DigitLimit {
    /// What must be less.
    pub(crate) magnitude: Magnitude,
    /// The exponent.
    pub(crate) exponent: u16,
}

/// What the columns of a formula hold.
pub(crate) type Kinds<'k, K> = &'k mut dyn FnMut(&Column) -> Result<K, StoreError>;

/// What one dialect computes. It computes with one form of each datatype: [`Compute::operand`] makes it
/// of a stored column, and [`Compute::computed_kind`] names it.
pub(crate) trait Compute {
    /// What the store says a column holds.
    type Kind: NativeKind;

    /// A numeric column as it is added up.
    fn addend(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Sql;

    /// The exact sum of addends, as it is selected.
    fn sum(&self, column: &Column, addend: Sql) -> Sql;

    /// The sum, as groups are sorted by it.
    fn sum_order(&self, column: &Column, addend: Sql) -> Sql;

    /// The mean, rounded as the answer is, as groups are sorted by it.
    fn mean_order(&self, column: &Column, addend: Sql) -> Sql;

    /// The kind of column that what is computed of a datatype would be.
    fn computed_kind(&self, datatype: Datatype) -> Self::Kind;

    /// The kind of column that what a formula gives would be.
    fn formula_kind(
        &self,
        formula: &Formula<Column>,
        _kinds: Kinds<'_, Self::Kind>,
    ) -> Result<Self::Kind, StoreError> {
        Ok(self.computed_kind(formula.datatype))
    }

    /// The kind of column that an aggregate of a column of that kind would be.
    fn aggregate_kind(
        &self,
        _op: AggregateOp,
        datatype: Datatype,
        _kind: &Self::Kind,
    ) -> Self::Kind {
        self.computed_kind(datatype)
    }

    /// The limit of the last step of a formula, where the store may silently lose digits of it.
    fn digit_limit(
        &self,
        _formula: &Formula<Column>,
        _kinds: Kinds<'_, Self::Kind>,
    ) -> Result<Option<DigitLimit>, StoreError> {
        Ok(None)
    }

    /// A value that fails the statement where a magnitude of these operands is not below its limit.
    fn limited(&self, _limit: DigitLimit, _operands: [Sql; 2], value: Sql) -> Sql {
        value
    }

    /// A stored column in the form that is computed with.
    fn operand(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Sql;

    /// A constant in that form.
    fn constant(&self, datatype: Datatype, value: &Value) -> Sql;

    /// A value as another datatype.
    fn convert(&self, from: Datatype, to: Datatype, value: Sql) -> Sql;

    /// Arithmetic on two values of a datatype. A quotient by zero is NULL; an exact one has as many
    /// digits after the point as a plan says.
    fn arithmetic(&self, datatype: Datatype, op: Arithmetic, left: Sql, right: Sql) -> Sql;

    /// An exact number rounded half away from zero.
    fn round(&self, value: Sql, digits: u8) -> Sql;

    /// Texts one after the other; NULL where one is.
    fn concat(&self, parts: Vec<Sql>) -> Sql {
        Sql::joined(parts, " || ").within("(", ")")
    }

    /// True and false.
    fn truth(&self) -> (&'static str, &'static str);

    /// All of an exact formula at once, where the store has functions of ours for that. `part` writes
    /// what is inside it and is not exact arithmetic.
    fn exact(
        &self,
        _formula: &Formula<Column>,
        _part: &mut dyn FnMut(&Formula<Column>) -> Result<Sql, StoreError>,
    ) -> Result<Option<Sql>, StoreError> {
        Ok(None)
    }

    /// A text with the letters that plans fold as small ones.
    fn folded(&self, text: Sql) -> Sql;

    /// Whether a folded text holds another.
    fn like_folded(&self, folded: Sql, text: &str, place: TextPlace) -> Sql;

    /// A count, as it is computed with.
    fn count_value(&self, count: Sql) -> Sql;

    /// The sum of addends, as it is computed with.
    fn sum_value(&self, column: &Column, addend: Sql) -> Sql;

    /// The mean of addends, rounded as the answer is, as it is computed with.
    fn mean_value(&self, column: &Column, addend: Sql) -> Sql;

    /// The least or greatest of keys, as it is computed with.
    fn extreme_value(&self, column: &Column, kind: &Self::Kind, extreme: Sql) -> Sql;
}

/// Every capital that is folded, with its small letter: the bytes of UTF-8, in hexadecimal digits.
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
