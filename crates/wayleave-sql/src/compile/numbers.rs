//! Compiles comparisons with numbers that a store cannot hold into comparisons with numbers it can.

use std::cmp::Ordering;

use wayleave_model::mapping::ExactNumber;
use wayleave_plan::plan::Comparison;

use super::dialect::ComparisonSql;
use super::sql::Sql;
use crate::values::from_single;

/// Compares every value of a column with an operand that is greater (or less) than all of them.
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

/// Compares a column with an operand that it cannot hold, given the nearest value that it can
/// (`right`) and the side of the operand on which that value lies. The column holds no value
/// between the two.
pub(crate) fn compare_nearest(
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

/// Cuts a canonical decimal to `scale` digits after the point, and tells how the result compares
/// with the decimal. `None` where more than `whole` digits precede the point.
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

/// The floating-point number nearest to a canonical decimal, and how the decimal that this number
/// is written as compares with the given one.
pub(crate) fn nearest_float(decimal: &str) -> Option<(f64, Ordering)> {
    let exact: ExactNumber = decimal.parse().ok()?;
    let float = exact.to_f64();
    let written = ExactNumber::from_f64(float)?;
    Some((float, written.cmp(&exact)))
}

/// The single-precision number nearest to `number`, and how the decimal it stands for compares with
/// `number`. No other single-precision number stands for a decimal between the two.
pub(crate) fn nearest_single(number: f64) -> (f64, Ordering) {
    // Parse the digits instead of casting: 7.038531e-26 is a single-precision number whose nearest
    // `f64` is nearer to another one.
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
