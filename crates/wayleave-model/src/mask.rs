//! Masks: what is shown of a field to callers who may know that it exists, but not its values.
//!
//! Defines only the vocabulary; the planner applies masks to values.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::mapping::Datatype;

/// What is shown of a field in place of its values.
///
/// ```
/// use wayleave_model::mask::Mask;
///
/// for word in ["redact", "last4", "year", "bucket:100", "token", "token:project"] {
///     assert_eq!(word.parse::<Mask>()?.to_string(), word);
/// }
/// assert!("bucket:0".parse::<Mask>().is_err() && "plain".parse::<Mask>().is_err());
/// # Ok::<(), wayleave_model::mask::ParseMaskError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mask {
    /// Nothing of the value, not even whether there is one.
    Redact,
    /// The last four characters of a text or number with more than eight.
    Last4,
    /// The year of a date or datetime, in UTC.
    Year,
    /// The range of this width that contains the number.
    Bucket(NonZeroU64),
    /// A pseudonym: equal for equal values, and reveals nothing else about them.
    Token(TokenScope),
}

/// The scope within which equal values have equal tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenScope {
    /// One grant.
    Grant,
    /// Every grant of the project that uses this scope.
    Project,
}

/// The text is not a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a mask is {MASKS}")]
pub struct ParseMaskError;

/// The list of masks, for messages.
pub const MASKS: &str =
    "`redact`, `last4`, `year`, `bucket:WIDTH` with a whole number, `token` or `token:project`";
/// The pattern that every mask matches.
pub(crate) const PATTERN: &str =
    "^(redact|last4|year|bucket:[1-9][0-9]{0,17}|token|token:project)$";
/// Maximum width of a bucket.
const MAX_WIDTH: u64 = 999_999_999_999_999_999;

impl Mask {
    /// Whether the mask applies to values of a datatype.
    pub const fn fits(self, datatype: Datatype) -> bool {
        match self {
            Self::Redact => true,
            Self::Last4 => matches!(
                datatype,
                Datatype::String | Datatype::Iri | Datatype::Integer | Datatype::Decimal
            ),
            Self::Year => matches!(datatype, Datatype::Date | Datatype::Datetime),
            Self::Bucket(_) => matches!(
                datatype,
                Datatype::Integer | Datatype::Decimal | Datatype::Number
            ),
            Self::Token(_) => !matches!(datatype, Datatype::Json),
        }
    }

    /// The datatypes it applies to, in words.
    pub const fn suits(self) -> &'static str {
        match self {
            Self::Redact => "every datatype",
            Self::Last4 => "`string`, `iri`, `integer` and `decimal`",
            Self::Year => "`date` and `datetime`",
            Self::Bucket(_) => "`integer`, `decimal` and `number`",
            Self::Token(_) => "every datatype but `json`",
        }
    }

    /// What is shown, in words.
    pub fn words(self) -> String {
        match self {
            Self::Redact => "nothing of it".to_owned(),
            Self::Last4 => "its last four characters".to_owned(),
            Self::Year => "its year".to_owned(),
            Self::Bucket(width) => format!("the range of {width} it is in"),
            Self::Token(TokenScope::Grant) => "a pseudonym of the grant".to_owned(),
            Self::Token(TokenScope::Project) => "a pseudonym of the project".to_owned(),
        }
    }

    /// Whether it reveals no more than another mask: it is equal, reveals nothing, or is a token
    /// that fewer grants share.
    pub fn is_within(self, other: Self) -> bool {
        self == other
            || self == Self::Redact
            || (self == Self::Token(TokenScope::Grant) && matches!(other, Self::Token(_)))
    }

    /// Whether it is a token, which may be grouped by, counted and compared with another.
    pub const fn is_token(self) -> bool {
        matches!(self, Self::Token(_))
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redact => f.write_str("redact"),
            Self::Last4 => f.write_str("last4"),
            Self::Year => f.write_str("year"),
            Self::Bucket(width) => write!(f, "bucket:{width}"),
            Self::Token(TokenScope::Grant) => f.write_str("token"),
            Self::Token(TokenScope::Project) => f.write_str("token:project"),
        }
    }
}

impl FromStr for Mask {
    type Err = ParseMaskError;

    fn from_str(text: &str) -> Result<Self, ParseMaskError> {
        Ok(match text {
            "redact" => Self::Redact,
            "last4" => Self::Last4,
            "year" => Self::Year,
            "token" => Self::Token(TokenScope::Grant),
            "token:project" => Self::Token(TokenScope::Project),
            _ => {
                let width = text.strip_prefix("bucket:").ok_or(ParseMaskError)?;
                // Accept one spelling per width, so that equal masks have equal text.
                let plain = width.bytes().all(|it| it.is_ascii_digit()) && !width.starts_with('0');
                let width = width.parse().ok().filter(|it| *it <= MAX_WIDTH && plain);
                Self::Bucket(width.and_then(NonZeroU64::new).ok_or(ParseMaskError)?)
            }
        })
    }
}

impl Serialize for Mask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Mask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(text: &str) -> Mask {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_no_mask_is_not_read_as_one() {
        for text in [
            "",
            "plain",
            "none",
            "Redact",
            "last5",
            "bucket",
            "bucket:",
            "bucket:0",
            "bucket:010",
            "bucket:-1",
            "bucket:+1",
            "bucket:1.5",
            "bucket:1000000000000000000",
            "token:",
            "token:grant",
            " token",
        ] {
            assert_eq!(text.parse::<Mask>(), Err(ParseMaskError), "{text}");
            let json = serde_json::Value::from(text);
            assert!(serde_json::from_value::<Mask>(json).is_err(), "{text}");
        }
    }

    #[test]
    fn the_pattern_accepts_exactly_the_masks() {
        let pattern = regex::Regex::new(PATTERN).unwrap();
        for text in [
            "redact",
            "last4",
            "year",
            "token",
            "token:project",
            "bucket:1",
            "bucket:0",
            "bucket:999999999999999999",
            "bucket:1000000000000000000",
            "bucket:",
            "tokens",
        ] {
            assert_eq!(
                pattern.is_match(text),
                text.parse::<Mask>().is_ok(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_required_mask_gives_way_only_to_one_that_tells_no_more() {
        for (given, required, holds) in [
            ("last4", "last4", true),
            ("redact", "last4", true),
            ("token", "last4", false),
            ("last4", "redact", false),
            ("token", "token:project", true),
            ("token:project", "token", false),
            ("bucket:10", "bucket:100", false),
            ("bucket:1000", "bucket:100", false),
        ] {
            assert_eq!(
                mask(given).is_within(mask(required)),
                holds,
                "{given} {required}"
            );
        }
    }

    #[test]
    fn a_required_mask_is_printed_as_it_was_read() {
        let text = "[dataset]\nname = \"crm\"\nkind = \"sqlite\"\n\n[[connections]]\nid = \"crm\"\n\
            source = \"crm\"\n\n[streams.people]\ntype = \"Person\"\nkey = [\"id\"]\n\n\
            [streams.people.fields.id]\ndatatype = \"integer\"\n\n\
            [streams.people.fields.pay]\ndatatype = \"decimal\"\nmask = \"bucket:1000\"\n";
        let mapping = crate::parse::parse(text.as_bytes()).unwrap();
        let pay = mapping.stream("people").unwrap().field("pay").unwrap();
        assert_eq!(pay.mask.as_ref().unwrap().value, mask("bucket:1000"));
        let printed = crate::print::print(&mapping);
        assert!(printed.contains("mask = \"bucket:1000\""), "{printed}");
        assert_eq!(crate::parse::parse(printed.as_bytes()).unwrap(), mapping);
    }
}
