//! Bytes, and texts that are not UTF-8. Both are shown as `\x` and hexadecimal digits, and filters
//! and cursors match them by that form.

use wayleave_plan::plan::Comparison;

use super::{binary, call, functions};
use crate::compile::dialect::ComparisonSql;
use crate::compile::sql::{Bind, Sql};

/// The bytes that a text spells, if bytes can be shown as that text.
pub(crate) fn spelled(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    if digits.len() % 2 != 0 {
        return None;
    }
    let pairs = digits.chunks_exact(2).map(|pair| match pair {
        [high, low] => Some(value(*high)? << 4 | value(*low)?),
        _ => None,
    });
    pairs.collect()
}

/// A stored value that is shown in hexadecimal form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NonTextValue {
    /// Bytes.
    Bytes(Vec<u8>),
    /// A text that is not valid UTF-8.
    Text(Vec<u8>),
}

impl NonTextValue {
    pub(super) fn bound(&self) -> Sql {
        match self {
            Self::Bytes(bytes) => Sql::bind(Bind::Bytes(bytes.clone())),
            Self::Text(bytes) => Sql::bind(Bind::Bytes(bytes.clone())).within("CAST(", " AS TEXT)"),
        }
    }
}

/// Compares a column with every value that is shown as this text: the text itself, and the values
/// that it spells. An index finds all of them.
pub(super) fn compare(
    name: &Sql,
    comparison: Comparison,
    text: &str,
    spelled: Vec<u8>,
) -> ComparisonSql {
    let hint = (comparison == Comparison::Eq).then(|| {
        let letters = Sql::bind(Bind::Text(text.to_owned()));
        let odd = [
            NonTextValue::Bytes(spelled.clone()),
            NonTextValue::Text(spelled),
        ];
        let any = std::iter::once(letters).chain(odd.iter().map(NonTextValue::bound));
        let list = Sql::joined(any, ", ").within(" IN (", ")");
        Sql::joined([name.clone(), list], "")
    });
    ComparisonSql::With {
        left: call(functions::TEXT, name.clone()),
        comparison,
        right: binary(text.to_owned()),
        hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_could_be_shown_spells_bytes() {
        assert_eq!(spelled("\\x00ff"), Some(vec![0, 255]));
        assert_eq!(spelled("\\x"), Some(Vec::new()));
        for text in [
            "", "x00", "\\x0", "\\x00FF", "\\xé", "\\x0g", "\\X00", "\\x+1",
        ] {
            assert_eq!(spelled(text), None, "{text}");
        }
    }
}
