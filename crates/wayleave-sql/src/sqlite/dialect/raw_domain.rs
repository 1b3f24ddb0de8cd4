//! Domains of the raw values of a column, and the times they may stand for.
//!
//! A SQLite column may hold anything, so times are read by a function of ours, which no index
//! covers. But a text begins with its day, and an offset shifts it by less than a day; a number is
//! in seconds. Where all values are of one kind, a range of raw values therefore contains every
//! matching time, an index answers that range, and the function decides among the few rows left.

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, Comparison};
use wayleave_plan::value::Value;

use super::super::types::Affinity;
use super::binary;
use super::form::Form;
use crate::compile::sql::{Bind, Sql};
use crate::values::MIN_INEXACT_INTEGER;

/// The domain of all raw values of a column except NULL. Read from an index, valid for one
/// snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RawDomain {
    /// Unknown.
    #[default]
    Anything,
    /// Only texts; for a datetime, only texts that begin with a year.
    Texts,
    /// Only numbers: for a datetime, those that are times; for a number, those that a float holds
    /// exactly.
    Numbers,
    /// Only texts of one form, which sort as the times do.
    Written(Form),
}

const MICROS_PER_DAY: i64 = 86_400_000_000;
const MICROS_PER_SECOND: i64 = 1_000_000;
/// Bounds before and after every text that is a time. Neither looks like a number, so SQLite does
/// not convert them.
const BEFORE_ALL: &str = "0000-";
const AFTER_ALL: &str = "9999:";
/// Far more seconds than any four-digit year needs, and still within range in microseconds.
const MAX_SECONDS: i64 = 8_000_000_000_000;

/// Value domains that a column may have. Each carries the two predicates that no row in the domain
/// satisfies; an index answers both at its ends.
pub(crate) fn possible(
    column: &Column,
    affinity: Affinity,
    name: &Sql,
) -> Vec<(RawDomain, [Sql; 2])> {
    let is = |operator: &str, right: Sql| Sql::joined([name.clone(), right], operator);
    let text = |text: &str| Sql::text(format!("'{text}' COLLATE BINARY"));
    let mut possible = Vec::new();
    match column.datatype {
        Datatype::Datetime => {
            let outside = [is(" < ", text(BEFORE_ALL)), is(" >= ", text(AFTER_ALL))];
            possible.push((RawDomain::Texts, outside));
            if !affinity.is_text() {
                let most = |sign: &str| Sql::text(format!("{sign}{MAX_SECONDS} COLLATE BINARY"));
                let outside = [is(" < ", most("-")), is(" > ", most(""))];
                possible.push((RawDomain::Numbers, outside));
            }
        }
        Datatype::Number if affinity != Affinity::Real => {
            let most = |sign: &str| Sql::text(format!("{sign}{MIN_INEXACT_INTEGER}"));
            possible.push((
                RawDomain::Numbers,
                [is(" < ", most("-")), is(" > ", most(""))],
            ));
        }
        Datatype::String | Datatype::Iri if !affinity.is_text() => {
            let bytes = Sql::text("x'' COLLATE BINARY");
            possible.push((RawDomain::Texts, [is(" < ", text("")), is(" >= ", bytes)]));
        }
        _ => {}
    }
    possible
}

/// A condition on the raw column that holds for every time that satisfies the comparison, and for
/// others within a day or two (texts) or a second (numbers).
pub(super) fn near(
    domain: RawDomain,
    name: &Sql,
    comparison: Comparison,
    micros: i64,
) -> Option<Sql> {
    let bound = |operator: &str, right: Sql| Sql::joined([name.clone(), right], operator);
    let (from, until) = match domain {
        RawDomain::Texts => (
            bound(" >= ", binary(day(micros.saturating_sub(MICROS_PER_DAY)))),
            bound(
                " < ",
                binary(day(micros.saturating_add(2 * MICROS_PER_DAY))),
            ),
        ),
        RawDomain::Numbers => {
            let second = micros.div_euclid(MICROS_PER_SECOND);
            (
                bound(" >= ", Sql::bind(Bind::Integer(second - 1))),
                bound(" <= ", Sql::bind(Bind::Integer(second + 2))),
            )
        }
        RawDomain::Anything | RawDomain::Written(_) => return None,
    };
    match comparison {
        Comparison::Gt | Comparison::Gte => Some(from),
        Comparison::Lt | Comparison::Lte => Some(until),
        Comparison::Eq => Some(Sql::joined([from, until], " AND ")),
        Comparison::Ne => None,
    }
}

/// The first text that can stand for a time on that day or later.
fn day(micros: i64) -> String {
    // 0001-01-01 and the day after 9999-12-31, in days since 1970-01-01.
    const FIRST: i64 = -719_162;
    const END: i64 = 2_932_897;
    let days = micros.div_euclid(MICROS_PER_DAY);
    let text = match i32::try_from(days) {
        Ok(day) if (FIRST..END).contains(&days) => Value::Date(day).to_text(),
        _ => None,
    };
    text.unwrap_or_else(|| if days < FIRST { BEFORE_ALL } else { AFTER_ALL }.to_owned())
}

/// Like [`near`], for a text that SQLite would convert to a number when comparing it with a column
/// of numeric affinity: compares with texts just before and just after it, which do not look
/// numeric.
pub(super) fn near_text(name: &Sql, comparison: Comparison, text: &str) -> Option<Sql> {
    let (operator, near) = match comparison {
        Comparison::Gt | Comparison::Gte => {
            let (start, last) = text.split_at_checked(text.len().checked_sub(1)?)?;
            let before = char::from(last.bytes().next()?.checked_sub(1)?);
            (" > ", format!("{start}{before}{}", char::MAX))
        }
        Comparison::Lt | Comparison::Lte => (" < ", format!("{text}\u{1}")),
        Comparison::Eq | Comparison::Ne => return None,
    };
    (!looks_numeric(&near)).then(|| Sql::joined([name.clone(), binary(near)], operator))
}

/// Whether SQLite could convert a text to a number in a column of numeric affinity.
pub(super) fn looks_numeric(text: &str) -> bool {
    // SQLite reads a number only up to a NUL.
    let text = text.split('\0').next().unwrap_or_default();
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    let numeric = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    !text.is_empty() && text.bytes().all(numeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_the_least_text_of_its_times() {
        for (micros, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (i64::MIN, BEFORE_ALL),
            (i64::MAX, AFTER_ALL),
        ] {
            assert_eq!(day(micros), text);
        }
    }

    #[test]
    fn what_may_be_a_number_is_told_from_what_is_none() {
        for text in ["1", " 1.5", "-2e9 ", "1-2", "."] {
            for comparison in [Comparison::Gt, Comparison::Lte] {
                let near = near_text(&Sql::text("c"), comparison, text).unwrap();
                let (_, binds) = near.render(crate::compile::sql::Placeholder::Question);
                let [Bind::Text(near)] = binds.as_slice() else {
                    panic!("{binds:?}");
                };
                assert!(!looks_numeric(near), "{near:?}");
                assert_eq!(
                    near.as_str() < text,
                    comparison == Comparison::Gt,
                    "{near:?}"
                );
            }
            assert!(looks_numeric(text), "{text}");
        }
        assert!(looks_numeric("7\0x"));
        assert_eq!(near_text(&Sql::text("c"), Comparison::Gt, "7\0x"), None);
        for text in ["", "x", "123e4567-e89b-12d3", "1a", "٣"] {
            assert!(!looks_numeric(text), "{text}");
        }
    }
}
