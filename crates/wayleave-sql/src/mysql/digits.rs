//! The number of decimal digits that the server keeps.
//!
//! A decimal has at most 65 digits, of which 30 may follow the point. The server computes with
//! words of nine digits and has room for nine words; a result that takes more silently loses its
//! last digits, or becomes the greatest number that fits. So the digits of a formula are bounded
//! from the declared types of its columns. Where they may be too many, the statement fails for rows
//! whose values are too great.

use wayleave_model::expression::{Arithmetic, Formula, Literal, Node, QUOTIENT_DIGITS};
use wayleave_model::mapping::{AggregateOp, Datatype};
use wayleave_plan::evaluate::literal_value;
use wayleave_plan::plan::Column;
use wayleave_plan::value::Value;
use wayleave_store::{Detail, StoreError};

use super::types::Kind;
use crate::compile::compute::{DigitLimit, KindLookup, Magnitude};

/// Maximum number of digits of a decimal.
pub(super) const MAX_DIGITS: u16 = 65;
/// Maximum number of digits after the point: MySQL's, which is below MariaDB's.
pub(super) const MAX_SCALE: u16 = 30;
/// Number of digits after the point that a dividend is given.
pub(super) const QUOTIENT_SCALE: u16 = 24;

/// Number of digits in a word.
const WORD_DIGITS: u16 = 9;
/// Maximum number of words in a result.
const MAX_WORDS: u16 = 9;
/// Number of digits of the greatest number of rows that a sum may add up.
const MAX_ROW_COUNT_DIGITS: u16 = 12;
/// Maximum nesting of limits. Each limit writes its operand twice.
const MAX_LIMITS: u8 = 6;
/// Maximum number of digits of a quotient before the point.
const MAX_QUOTIENT_DIGITS: u16 = 50;

/// Maximum number of digits of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digits {
    /// Before the point.
    whole: u16,
    /// After it.
    scale: u16,
    /// The nesting of the limits that it is computed with.
    limits: u8,
}

impl Digits {
    /// The digits of a decimal of which nothing is known.
    pub(super) const UNKNOWN: Self = Self::new(MAX_DIGITS, MAX_SCALE);
    /// The digits of the longest integer type.
    const INTEGER: Self = Self::new(20, 0);

    const fn new(whole: u16, scale: u16) -> Self {
        Self {
            whole,
            scale,
            limits: 0,
        }
    }

    /// The digits of a column by its `COLUMN_TYPE`, such as `decimal(15,2) unsigned`.
    pub(crate) fn declared(column_type: &str) -> Self {
        let inside = column_type.split_once('(').map(|it| it.1);
        let inside = inside.and_then(|it| it.split_once(')'));
        let Some((inside, _)) = inside else {
            return Self::UNKNOWN;
        };
        let (digits, scale) = inside.split_once(',').unwrap_or((inside, "0"));
        match (digits.trim().parse::<u16>(), scale.trim().parse::<u16>()) {
            (Ok(digits), Ok(scale)) => Self::new(digits.saturating_sub(scale), scale),
            _ => Self::UNKNOWN,
        }
    }

    /// Whether a column of this length and scale, as the server reports them, has no more digits
    /// than these. The length counts a sign and a point.
    pub(super) fn holds(self, length: u32, scale: u8) -> bool {
        u16::from(scale) <= self.scale && length <= u32::from(self.whole + self.scale + 2)
    }

    /// The digits of a column in computations.
    pub(super) const fn of_kind(kind: &Kind) -> Self {
        match kind {
            Kind::Decimal(digits) => *digits,
            Kind::Integer | Kind::Year | Kind::Bit => Self::INTEGER,
            _ => Self::UNKNOWN,
        }
    }

    /// The digits of an aggregate over such values.
    pub(super) fn of_aggregate(self, op: AggregateOp) -> Self {
        match op {
            AggregateOp::Sum => Self {
                // A greater sum is detected when it is decoded.
                whole: (self.whole + MAX_ROW_COUNT_DIGITS)
                    .min(MAX_DIGITS - self.scale.min(MAX_SCALE)),
                ..self
            },
            AggregateOp::Avg => Self {
                scale: QUOTIENT_DIGITS.into(),
                whole: self.whole + 1,
                ..self
            },
            AggregateOp::Min | AggregateOp::Max => self,
            AggregateOp::Count
            | AggregateOp::CountDistinct
            | AggregateOp::GroupBy
            | AggregateOp::GroupByTime => Self::INTEGER,
        }
    }

    const fn total(self) -> u16 {
        self.whole + self.scale
    }

    /// The maximum of both, before and after the point.
    fn widest(self, other: Self) -> Self {
        Self {
            whole: self.whole.max(other.whole),
            scale: self.scale.max(other.scale),
            limits: self.limits.max(other.limits),
        }
    }
}

/// The digits of a formula's result, once it is limited.
pub(super) fn digits(
    formula: &Formula<Column>,
    kinds: KindLookup<'_, Kind>,
) -> Result<Digits, StoreError> {
    bounded(formula, kinds).map(|(digits, _)| digits)
}

/// The limit from which on the last step of a formula would lose digits, if its values may reach
/// it.
pub(super) fn limit(
    formula: &Formula<Column>,
    kinds: KindLookup<'_, Kind>,
) -> Result<Option<DigitLimit>, StoreError> {
    bounded(formula, kinds).map(|(_, limit)| limit)
}

type DigitBound = (Digits, Option<DigitLimit>);

fn bounded(
    formula: &Formula<Column>,
    kinds: KindLookup<'_, Kind>,
) -> Result<DigitBound, StoreError> {
    match &formula.node {
        Node::Leaf(column) => Ok((Digits::of_kind(&kinds(column)?), None)),
        Node::Literal(it) => literal(formula.datatype, it),
        Node::Convert(part) => digits(part, kinds).map(|it| (it, None)),
        Node::Arithmetic { op, left, right } => {
            let (left, right) = (digits(left, kinds)?, digits(right, kinds)?);
            match op {
                Arithmetic::Add | Arithmetic::Subtract => sum(left, right),
                Arithmetic::Multiply => product(left, right),
                Arithmetic::Divide => quotient(left, right),
            }
        }
        Node::Coalesce(parts) => {
            let mut widest = Digits::new(0, 0);
            for part in parts {
                widest = widest.widest(digits(part, kinds)?);
            }
            chosen(widest)
        }
        Node::If {
            then, otherwise, ..
        } => chosen(digits(then, kinds)?.widest(digits(otherwise, kinds)?)),
        Node::Round { value, digits: to } => {
            let value = digits(value, kinds)?;
            chosen(Digits {
                whole: value.whole + 1,
                scale: (*to).into(),
                ..value
            })
        }
        Node::Concat(_)
        | Node::Compare { .. }
        | Node::All(_)
        | Node::Any(_)
        | Node::Not(_)
        | Node::IsNull(_) => Ok((Digits::UNKNOWN, None)),
    }
}

fn literal(datatype: Datatype, literal: &Literal) -> Result<DigitBound, StoreError> {
    let text = match literal_value(datatype, literal) {
        Value::Integer(integer) => integer.to_string(),
        Value::Decimal(text) => text.to_string(),
        _ => return Ok((Digits::new(0, 0), None)),
    };
    let (whole, after) = text.split_once('.').unwrap_or((&text, ""));
    let length = |text: &str| u16::try_from(text.len()).unwrap_or(u16::MAX / 2);
    let digits = Digits::new(length(whole.trim_start_matches('-')), length(after));
    if digits.scale > MAX_SCALE || digits.total() > MAX_DIGITS {
        return Err(out_of_range());
    }
    Ok((digits, None))
}

/// The digits of one value out of several.
fn chosen(digits: Digits) -> Result<DigitBound, StoreError> {
    let room = MAX_DIGITS.saturating_sub(digits.scale + 1);
    let fits = digits.total() <= MAX_DIGITS;
    limited(digits, fits, Magnitude::Value, room)
}

fn sum(left: Digits, right: Digits) -> Result<DigitBound, StoreError> {
    let widest = left.widest(right);
    let digits = Digits {
        whole: widest.whole + 1,
        ..widest
    };
    let room = MAX_DIGITS.saturating_sub(digits.scale + 1);
    let fits = digits.total() <= MAX_DIGITS;
    limited(digits, fits, Magnitude::Sum, room)
}

fn product(left: Digits, right: Digits) -> Result<DigitBound, StoreError> {
    let digits = Digits {
        whole: left.whole + right.whole,
        scale: left.scale + right.scale,
        limits: left.limits.max(right.limits),
    };
    let after = left.scale.div_ceil(WORD_DIGITS) + right.scale.div_ceil(WORD_DIGITS);
    let before = left.whole.div_ceil(WORD_DIGITS) + right.whole.div_ceil(WORD_DIGITS);
    let fits = before + after <= MAX_WORDS && digits.total() <= MAX_DIGITS;
    // Each factor may begin in the midst of a word, and has a digit more than its magnitude.
    let words = (MAX_WORDS * WORD_DIGITS).saturating_sub((after + 2) * WORD_DIGITS);
    let room = words.min(MAX_DIGITS.saturating_sub(digits.scale + 1));
    limited(digits, fits, Magnitude::Product, room)
}

fn quotient(left: Digits, right: Digits) -> Result<DigitBound, StoreError> {
    if left.scale > QUOTIENT_SCALE {
        return Err(out_of_range());
    }
    let digits = Digits {
        whole: left.whole + right.scale,
        scale: QUOTIENT_DIGITS.into(),
        limits: left.limits.max(right.limits),
    };
    let fits = left.whole <= MAX_DIGITS - QUOTIENT_SCALE && digits.whole <= MAX_QUOTIENT_DIGITS;
    limited(digits, fits, Magnitude::Quotient, MAX_QUOTIENT_DIGITS)
}

/// Digits that fit, or that are limited to `room` before the point.
fn limited(
    digits: Digits,
    fits: bool,
    magnitude: Magnitude,
    room: u16,
) -> Result<DigitBound, StoreError> {
    if digits.scale > MAX_SCALE {
        return Err(out_of_range());
    }
    if fits {
        return Ok((digits, None));
    }
    if room == 0 || digits.limits == MAX_LIMITS {
        return Err(out_of_range());
    }
    let digits = Digits {
        whole: digits.whole.min(room),
        limits: digits.limits + 1,
        ..digits
    };
    let limit = DigitLimit {
        magnitude,
        exponent: room,
    };
    Ok((digits, Some(limit)))
}

/// Whether a text is a decimal of [`MAX_DIGITS`] nines, which the server returns for any greater
/// sum.
pub(super) fn is_greatest(text: &str) -> bool {
    let nines = text.bytes().filter(|it| *it == b'9').count();
    nines == usize::from(MAX_DIGITS) && text.bytes().all(|it| matches!(it, b'9' | b'.' | b'-'))
}

/// The error for a value with more digits than the server keeps.
pub(super) fn out_of_range() -> StoreError {
    StoreError::OutOfRange {
        detail: Detail::from_static("a decimal has more digits than the server can store"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money() -> Digits {
        Digits::declared("decimal(15,2)")
    }

    #[test]
    fn a_declared_type_says_how_many_digits() {
        assert_eq!(money(), Digits::new(13, 2));
        assert_eq!(Digits::declared("decimal(9,0) unsigned"), Digits::new(9, 0));
        assert_eq!(Digits::declared("decimal"), Digits::UNKNOWN);
    }

    #[test]
    fn ordinary_money_is_not_limited() {
        let (rate, limit) = sum(Digits::new(1, 0), money()).unwrap();
        assert_eq!((rate, limit), (Digits::new(14, 2), None));
        let (discounted, limit) = product(money(), rate).unwrap();
        assert_eq!((discounted, limit), (Digits::new(27, 4), None));
        let (charge, limit) = product(discounted, rate).unwrap();
        assert_eq!((charge, limit), (Digits::new(41, 6), None));
        let summed = charge.of_aggregate(AggregateOp::Sum);
        assert_eq!(summed, Digits::new(53, 6));
    }

    #[test]
    fn a_step_that_may_lose_digits_is_limited_and_one_that_must_fails() {
        let wide = Digits::declared("decimal(40,10)");
        let (product_of, limit) = product(wide, wide).unwrap();
        let limit = limit.unwrap();
        assert_eq!(limit.magnitude, Magnitude::Product);
        assert!(product_of.total() <= MAX_DIGITS, "{product_of:?}");
        // Too many digits after the point.
        assert!(product(product_of, wide).is_ok());
        assert!(product(product_of, product_of).is_err());
        let long = Digits::declared("decimal(65,0)");
        let (_, limit) = sum(long, money()).unwrap();
        assert_eq!(limit.unwrap().magnitude, Magnitude::Sum);
        let (_, limit) = quotient(long, money()).unwrap();
        assert_eq!(limit.unwrap().magnitude, Magnitude::Quotient);
        assert!(quotient(Digits::declared("decimal(40,25)"), money()).is_err());
    }

    #[test]
    fn limits_one_inside_the_other_are_few() {
        let mut digits = Digits::declared("decimal(65,0)");
        let mut steps = 0;
        while let Ok((next, _)) = product(digits, digits) {
            digits = next;
            steps += 1;
        }
        assert_eq!(steps, MAX_LIMITS);
    }

    #[test]
    fn the_greatest_number_stands_for_a_greater_one() {
        let nines = "9".repeat(63);
        assert!(is_greatest(&format!("-{nines}.99")));
        assert!(!is_greatest(&nines));
        assert!(!is_greatest(&format!("{nines}.98")));
    }
}
