//! Encodes a position in as few bytes as possible.

use crate::value::Value;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// The position of a cursor or bookmark in a walk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CursorPosition {
    /// The values of the order's columns in the last row; for a bookmark, its value.
    pub(crate) at: Vec<Value>,
    /// The horizon of a walk of changes.
    pub(crate) horizon: Option<Value>,
    /// For a bookmark: whether all records with its own value have been seen.
    pub(crate) settled: bool,
}

pub(super) fn write(expires: i64, position: &CursorPosition) -> Vec<u8> {
    let mut out = Vec::new();
    signed(&mut out, i128::from(expires));
    let flags = u8::from(position.settled) | u8::from(position.horizon.is_some()) << 1;
    out.push(flags);
    for value in position.horizon.iter().chain(&position.at) {
        write_value(&mut out, value);
    }
    out
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Text(text) => {
            out.push(1);
            bytes(out, text);
        }
        Value::Integer(integer) => {
            out.push(2);
            signed(out, *integer);
        }
        Value::Decimal(text) => {
            out.push(3);
            bytes(out, text);
        }
        Value::Number(number) => {
            out.push(4);
            out.extend_from_slice(&number.to_bits().to_be_bytes());
        }
        Value::Boolean(boolean) => out.push(if *boolean { 5 } else { 6 }),
        Value::Date(days) => {
            out.push(7);
            signed(out, i128::from(*days));
        }
        Value::Datetime(micros) if micros % MICROS_PER_SECOND == 0 => {
            out.push(8);
            signed(out, i128::from(micros / MICROS_PER_SECOND));
        }
        Value::Datetime(micros) => {
            out.push(9);
            signed(out, i128::from(*micros));
        }
        // Of these, only NULL can be part of an order.
        Value::Null | Value::Json(_) | Value::List(_) | Value::Preview(_) | Value::Malformed => {
            out.push(0);
        }
    }
}

fn bytes(out: &mut Vec<u8>, text: &str) {
    unsigned(out, text.len() as u128);
    out.extend_from_slice(text.as_bytes());
}

fn signed(out: &mut Vec<u8>, value: i128) {
    // Zigzag encoding keeps small numbers of either sign short.
    unsigned(out, ((value << 1) ^ (value >> 127)).cast_unsigned());
}

fn unsigned(out: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        out.push(lowest_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(lowest_byte(value));
}

fn lowest_byte(value: u128) -> u8 {
    let [lowest, ..] = value.to_le_bytes();
    lowest
}

/// Decodes what [`write()`] encoded. The bytes are authenticated, yet nothing here trusts them.
pub(super) fn read(bytes: &[u8]) -> Option<(i64, CursorPosition)> {
    let mut input = Input(bytes);
    let expires = i64::try_from(input.signed()?).ok()?;
    let flags = input.byte()?;
    let horizon = if flags & 2 == 0 {
        None
    } else {
        Some(input.value()?)
    };
    let mut at = Vec::new();
    while !input.0.is_empty() {
        at.push(input.value()?);
    }
    let position = CursorPosition {
        at,
        horizon,
        settled: flags & 1 == 1,
    };
    Some((expires, position))
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn unsigned(&mut self) -> Option<u128> {
        let mut value = 0_u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            value |= u128::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i128> {
        let zigzag = self.unsigned()?;
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.unsigned()?).ok()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn value(&mut self) -> Option<Value> {
        Some(match self.byte()? {
            0 => Value::Null,
            1 => Value::Text(self.text()?.into()),
            2 => Value::Integer(self.signed()?),
            3 => Value::Decimal(self.text()?.into()),
            4 => Value::Number(f64::from_bits(u64::from_be_bytes(
                self.take(8)?.try_into().ok()?,
            ))),
            5 => Value::Boolean(true),
            6 => Value::Boolean(false),
            7 => Value::Date(i32::try_from(self.signed()?).ok()?),
            8 => Value::Datetime(
                i64::try_from(self.signed()?)
                    .ok()?
                    .checked_mul(MICROS_PER_SECOND)?,
            ),
            9 => Value::Datetime(i64::try_from(self.signed()?).ok()?),
            _ => return None,
        })
    }
}
