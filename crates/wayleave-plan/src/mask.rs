//! Applies masks to values. Every value of a masked field passes through [`Masking::apply`] before
//! a caller gets it. Knows nothing of requests or stores.

mod token;

use std::num::NonZeroU64;
use std::sync::Arc;

use wayleave_model::mapping::Datatype;
use wayleave_model::mask::{Mask, TokenScope};

pub use token::MaskKey;

use crate::calendar::date_of;
use crate::value::{Text, Value};
use token::TokenKey;

/// Replaces a value that is hidden completely.
pub const REDACTED: &str = "[redacted]";
/// Replaces the part that `last4` hides, whatever its length.
const HIDDEN: &str = "****";
/// Number of characters that `last4` shows.
const LAST4_CHARS: usize = 4;
/// `last4` hides shorter values completely: four characters would reveal too much of them.
const MIN_CHARACTERS: usize = 9;
/// A day in microseconds.
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A mask with its key, if it needs one. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Masking {
    mask: Mask,
    key: Option<Arc<TokenKey>>,
}

impl Masking {
    /// The mask of a field under a grant. A mask that does not fit the datatype, because a later
    /// mapping changed it, and a token mask without a key become `redact`.
    pub(crate) fn new(mask: Mask, datatype: Datatype, grant: &str, key: Option<&MaskKey>) -> Self {
        let redact = Self {
            mask: Mask::Redact,
            key: None,
        };
        match (mask, key) {
            (mask, _) if !mask.fits(datatype) => redact,
            (Mask::Token(_), None) => redact,
            (Mask::Token(scope), Some(key)) => Self {
                mask,
                key: Some(Arc::new(match scope {
                    TokenScope::Grant => key.of_grant(grant),
                    TokenScope::Project => key.of_project(),
                })),
            },
            (mask, _) => Self { mask, key: None },
        }
    }

    /// The mask.
    pub(crate) fn mask(&self) -> Mask {
        self.mask
    }

    /// Whether values are hidden completely, so that a plan need not read them.
    pub(crate) fn is_redact(&self) -> bool {
        self.mask == Mask::Redact
    }

    /// Masks a value.
    pub(crate) fn apply(&self, value: Value) -> Value {
        match value {
            _ if self.is_redact() => redacted(),
            Value::Null | Value::Malformed => value,
            Value::List(values) => {
                Value::List(values.into_iter().map(|it| self.apply(it)).collect())
            }
            one => self.shown(&one).unwrap_or_else(redacted),
        }
    }

    /// Masks a value that is not NULL; `None` if the mask does not apply to its datatype.
    fn shown(&self, value: &Value) -> Option<Value> {
        match self.mask {
            Mask::Redact => None,
            Mask::Last4 => last4(value),
            Mask::Year => year(value),
            Mask::Bucket(width) => bucket(value, width),
            Mask::Token(_) => Some(Value::Text(self.key.as_ref()?.token(value)?.into())),
        }
    }

    /// Recovers the value of a token. A token made with another key, of another datatype, or of a
    /// value too long to be encrypted gives `None`, like any other text.
    pub(crate) fn open(&self, token: &str, datatype: Datatype) -> Option<Value> {
        self.key.as_ref()?.open(token, datatype)
    }
}

fn redacted() -> Value {
    Value::Text(REDACTED.into())
}

fn last4(value: &Value) -> Option<Value> {
    let text = match value {
        Value::Text(text) | Value::Decimal(text) => text.clone(),
        Value::Integer(integer) => Text::from(integer.to_string()),
        _ => return None,
    };
    let mut shown = Text::from(HIDDEN);
    let count = text.chars().count();
    if count >= MIN_CHARACTERS {
        shown.extend(text.chars().skip(count - LAST4_CHARS));
    }
    Some(Value::Text(shown))
}

fn year(value: &Value) -> Option<Value> {
    let days = match value {
        Value::Date(days) => *days,
        Value::Datetime(micros) => i32::try_from(micros.div_euclid(MICROS_PER_DAY)).ok()?,
        _ => return None,
    };
    Some(Value::Integer(i128::from(date_of(days)?.year())))
}

/// The range that contains a number: from a multiple of the width up to the next, exclusive.
fn bucket(value: &Value, width: NonZeroU64) -> Option<Value> {
    let floor = match value {
        Value::Integer(integer) => *integer,
        Value::Decimal(text) => floor_of_decimal(text)?,
        Value::Number(number) => floor_of_number(*number)?,
        _ => return None,
    };
    let width = i128::from(width.get());
    let from = floor.div_euclid(width).checked_mul(width)?;
    let to = from.checked_add(width)?;
    Some(Value::Text(format!("[{from},{to})").into()))
}

fn floor_of_decimal(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_below = text.starts_with('-') && fraction.bytes().any(|it| it != b'0');
    whole
        .parse::<i128>()
        .ok()?
        .checked_sub(i128::from(is_below))
}

fn floor_of_number(number: f64) -> Option<i128> {
    // Formatting the integer part of a double is exact.
    let floor = number.floor();
    (floor.abs() < 1e30).then(|| format!("{floor:.0}").parse().ok())?
}

#[cfg(test)]
mod tests;
