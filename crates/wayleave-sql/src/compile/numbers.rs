//! Comparisons with numbers that a store cannot hold: what they mean for those it can.

use std::cmp::Ordering;

use wayleave_model::mapping::ExactNumber;
use wayleave_plan::plan::Comparison;

use super::dialect::ComparisonSql;
use super::sql::Sql;
use crate::values::from_single;

/// A comparison of every value of a column with one that is greater (or less) than all of them.
pub(crate) fn beyond_all(comparison: Comparison, greater: bool) -> ComparisonSql {
    let holds = match comparison {
        Comparison::Eq => false,
        Comparison::Ne => true,
        Comparison::Gt | Comparison::Gte => !greater,
        Comparison::Lt | Comparison::Lte => greater,
    };
    if holds {
        ComparisonSql::Always
    } else {
        ComparisonSql::Never
    }
}

/// A comparison with a value that the column cannot hold, given the nearest value that it can
/// (`right`), and on which side of the value that lies. No value of the column is between them.
pub(crate) fn beside(
    left: Sql,
    comparison: Comparison,
    right: Sql,
    nearest: Ordering,
) -> ComparisonSql {
    let comparison = match (comparison, nearest) {
        (comparison, Ordering::Equal) => comparison,
        (Comparison::Eq, _) => return ComparisonSql::Never,
        (Comparison::Ne, _) => return ComparisonSql::Always,
        (Comparison::Gt | Comparison::Gte, Ordering::Less) => Comparison::Gt,
        (Comparison::Lt | Comparison::Lte, Ordering::Less) => Comparison::Lte,
        (Comparison::Gt | Comparison::Gte, Ordering::Greater) => Comparison::Gte,
        (Comparison::Lt | Comparison::Lte, Ordering::Greater) => Comparison::Lt,
    };
    ComparisonSql::with(left, comparison, right)
}

/// A canonical decimal cut to `scale` digits after the point, and how the cut compares with it.
/// `None` where more than `whole` digits stand before the point.
pub(crate) fn cut(decimal: &str, whole: usize, scale: usize) -> Option<(String, Ordering)> {
    let (before, after) = decimal.split_once('.').unwrap_or((decimal, ""));
    if before.trim_start_matches('-').len() > whole {
        return None;
    }
    let Some(kept) = after.get(..scale).filter(|_| after.len() > scale) else {
        return Some((decimal.to_owned(), Ordering::Equal));
    };
    let towards_zero = if decimal.starts_with('-') {
        Ordering::Greater
    } else {
        Ordering::Less
    };
    let text = if kept.is_empty() {
        before.to_owned()
    } else {
        format!("{before}.{kept}")
    };
    Some((text, towards_zero))
}

/// The floating-point number nearest to a canonical decimal, and how the decimal which that
/// number is written as compares with it.
pub(crate) fn nearest_float(decimal: &str) -> Option<(f64, Ordering)> {
    let exact: ExactNumber = decimal.parse().ok()?;
    let float = exact.to_f64();
    let written = ExactNumber::from_f64(float)?;
    Some((float, written.cmp(&exact)))
}

/// The number of single precision nearest to another, and how the one that it stands for compares
/// with that. No other of single precision stands for one between them.
pub(crate) fn nearest_single(number: f64) -> (f64, Ordering) {
    // By its digits: 7.038531e-26 is such a number, and the float beside it is nearer to another.
    #[expect(
        clippy::expect_used,
        reason = "the standard library writes floats that it reads"
    )]
    let nearest: f32 = format!("{number:e}")
        .parse()
        .expect("a written float is a float");
    let nearest = nearest.clamp(f32::MIN, f32::MAX);
    let side = from_single(nearest).partial_cmp(&number);
    (nearest.into(), side.unwrap_or(Ordering::Equal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_decimal_says_on_which_side_it_lies() {
        for (decimal, scale, expected) in [
            ("1.25", 2, Some(("1.25", Ordering::Equal))),
            ("1.25", 1, Some(("1.2", Ordering::Less))),
            ("-1.25", 1, Some(("-1.2", Ordering::Greater))),
            ("1.25", 0, Some(("1", Ordering::Less))),
            ("1234", 0, None),
        ] {
            let expected = expected.map(|(text, side)| (text.to_owned(), side));
            assert_eq!(cut(decimal, 3, scale), expected, "{decimal}");
        }
    }

    #[test]
    fn a_decimal_no_float_is_written_as_lies_beside_one() {
        assert_eq!(nearest_float("0.1"), Some((0.1, Ordering::Equal)));
        let (float, side) = nearest_float("0.1000000000000000000001").unwrap();
        assert_eq!((float, side), (0.1, Ordering::Less));
    }

    #[test]
    fn a_number_of_single_precision_is_found_by_what_it_stands_for() {
        for single in [0.1, 0.333_333_34, 7.038_531e-26, f32::MAX, 1e-45, -0.7, 0.0] {
            let stands_for = from_single(single);
            let expected = (f64::from(single), Ordering::Equal);
            assert_eq!(nearest_single(stands_for), expected, "{stands_for}");
        }
        let widened = f64::from(0.1_f32);
        assert_eq!(nearest_single(widened), (widened, Ordering::Less));
        let greatest = f64::from(f32::MAX);
        assert_eq!(nearest_single(1e39), (greatest, Ordering::Less));
        assert_eq!(nearest_single(-1e39), (-greatest, Ordering::Greater));
    }
}
