//! The value of a field, in one form for all stores.
//!
//! Parsing, writing, ordering and adding values are implemented only here, so that stores cannot
//! differ. Knows nothing of mappings or requests.

mod arithmetic;
mod exact;
mod fold;
mod order;
mod read;
mod write;

pub use arithmetic::{average, mean, rounded, sum};
pub use exact::{Exact, ParseExactError};
pub use fold::{fold, fold_char, folded_letters, is_folded};
pub use read::{NotAValue, date_from_text, datetime_from_text, decimal_from_text};

pub(crate) use write::sorted_object;
pub use write::{JsonForm, date_text, datetime_text};

use serde_json::Value as Json;

/// The text of a value. Short texts, which most are, are stored inline without an allocation.
pub use compact_str::CompactString as Text;

/// One value. Stores read into this, plans bind it, results are written from it.
///
/// The canonical forms make answers of different stores byte-identical:
///
/// | datatype | held as | written as |
/// | --- | --- | --- |
/// | string, iri | `Text` | JSON string |
/// | integer | `Integer` | JSON number within ±(2^53 − 1), beyond it a string |
/// | decimal | `Decimal`, canonical: no exponent, no trailing zeros, `-0` is `0` | JSON string |
/// | number | `Number`, finite | JSON number, shortest form that reads back |
/// | boolean | `Boolean` | JSON boolean |
/// | date | `Date`, days since 1970-01-01 | `"YYYY-MM-DD"` |
/// | datetime | `Datetime`, microseconds since 1970-01-01T00:00:00Z | RFC 3339 in UTC, `Z`, fraction only when not zero, without trailing zeros |
/// | json | `Json` | JSON, object keys sorted |
/// | many | `List` | JSON array |
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// Text, compared by code point.
    Text(Text),
    /// A whole number.
    Integer(i128),
    /// An exact decimal in canonical form.
    Decimal(Text),
    /// A finite floating-point number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Datetime(i64),
    /// Any JSON; boxed to keep the other variants small.
    Json(Box<Json>),
    /// Several values.
    List(Vec<Value>),
    /// A stored value that is not of its column's datatype. Only in answers of reads that request
    /// such values to be marked; never bound, compared or shown.
    Malformed,
    /// The beginning of a text of any datatype that is too long to be shown.
    Preview(Box<Preview>),
}

/// Texts larger than this may be returned as a [`Preview`], because no page has room for them.
pub const MAX_WHOLE_BYTES: u32 = 64 * 1024;
/// Number of characters in a preview.
pub const PREVIEW_CHARACTERS: u32 = 1_000;

/// The beginning of a long text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// Its first [`PREVIEW_CHARACTERS`].
    pub start: Text,
    /// Number of characters in the whole text.
    pub characters: u64,
}

impl Value {
    /// Approximate size in bytes of its text, and of its memory on the heap: the one measure of row
    /// sizes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Decimal(text) => text.len(),
            Self::Json(json) => json_bytes(json),
            Self::List(values) => values.iter().map(Self::bytes).sum(),
            Self::Preview(preview) => preview.start.len(),
            _ => 8,
        }
    }
}

fn json_bytes(json: &Json) -> usize {
    match json {
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(json_bytes).sum(),
        Json::Object(members) => members
            .iter()
            .map(|(name, value)| name.len() + json_bytes(value))
            .sum(),
        _ => 8,
    }
}
