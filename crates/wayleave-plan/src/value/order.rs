//! The order of values, the same for all stores.

use std::cmp::Ordering;

use wayleave_model::mapping::ExactNumber;

use super::Value;

impl Value {
    /// Compares two values of one datatype: text by code point, numbers by value, `false` before
    /// `true`, NULL last. Values of different datatypes, which no column mixes, are ordered by
    /// datatype so that the order is total.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Decimal(a), Self::Decimal(b)) => decimals(a, b),
            (Self::Integer(a), Self::Decimal(b)) => decimals(&a.to_string(), b),
            (Self::Decimal(a), Self::Integer(b)) => decimals(a, &b.to_string()),
            // `-0` equals `0`; numbers are finite, so `total_cmp` has no other special case to
            // decide.
            (Self::Number(a), Self::Number(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::Date(a), Self::Date(b)) => a.cmp(b),
            (Self::Datetime(a), Self::Datetime(b)) => a.cmp(b),
            (Self::Json(_), Self::Json(_)) | (Self::List(_), Self::List(_)) => {
                self.to_json().to_string().cmp(&other.to_json().to_string())
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// Compares two values to order rows: NULLs come last in either direction.
    pub fn compare_directed(&self, other: &Self, descending: bool) -> Ordering {
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Greater,
            (_, Self::Null) => Ordering::Less,
            _ if descending => other.compare(self),
            _ => self.compare(other),
        }
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Text(_) => 0,
            Self::Integer(_) => 1,
            Self::Decimal(_) => 2,
            Self::Number(_) => 3,
            Self::Boolean(_) => 4,
            Self::Date(_) => 5,
            Self::Datetime(_) => 6,
            Self::Json(_) => 7,
            Self::List(_) => 8,
            Self::Preview(_) => 9,
            Self::Null => 10,
            Self::Malformed => 11,
        }
    }
}

fn decimals(a: &str, b: &str) -> Ordering {
    match (a.parse::<ExactNumber>(), b.parse::<ExactNumber>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.cmp(b),
    }
}
