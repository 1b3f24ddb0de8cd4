//! Expressions over one column, and the operands they are compared with.

use wayleave_plan::plan::Comparison;

use super::super::types::Affinity;
use super::functions;
use super::raw_domain::near_text;
use crate::compile::dialect::ComparisonSql;
use crate::compile::numbers::{beyond_all, compare_nearest, nearest_float};
use crate::compile::sql::{Bind, Sql};

pub(super) fn call(function: &str, argument: Sql) -> Sql {
    argument.within(&format!("{function}("), ")")
}

/// Calls a function of a column that returns `instead` for a value that is not of the datatype.
pub(super) fn call_or(function: &str, argument: Sql, instead: Sql) -> Sql {
    call(function, Sql::joined([argument, instead], ", "))
}

/// The replacement for a value that is not of the datatype, chosen so that it satisfies the
/// comparison: the operand itself, or a bound beyond every value on the side that the comparison
/// accepts.
pub(super) fn satisfying(
    comparison: Comparison,
    operand: &Sql,
    least: &str,
    greatest: &str,
) -> Sql {
    match comparison {
        Comparison::Eq | Comparison::Gte | Comparison::Lte => operand.clone(),
        Comparison::Gt | Comparison::Ne => Sql::text(greatest),
        Comparison::Lt => Sql::text(least),
    }
}

/// Like [`satisfying`], but NULL for `=`: in a column that stores numbers as such, a malformed
/// value equals no number either.
pub(super) fn differing(comparison: Comparison, operand: &Sql, least: &str, greatest: &str) -> Sql {
    match comparison {
        Comparison::Eq => Sql::text("NULL"),
        _ => satisfying(comparison, operand, least, greatest),
    }
}

/// The column itself where it holds that SQLite type, else the result of a function of it.
pub(super) fn unless_typed(held: &str, function: &str, name: Sql) -> Sql {
    let mut sql = name
        .clone()
        .within("CASE WHEN typeof(", &format!(") = '{held}' THEN "));
    sql.add(name.clone());
    sql.add(call(function, name).within(" ELSE ", " END"));
    sql
}

pub(super) fn as_real(name: Sql) -> Sql {
    name.within("CAST(", " AS REAL)")
}

/// A text that compares by code point, whatever the column's collation.
pub(super) fn binary(text: String) -> Sql {
    Sql::bind(Bind::Text(text)).within("", " COLLATE BINARY")
}

pub(super) fn compare_text(
    kind: Affinity,
    raw: bool,
    name: &Sql,
    left: Sql,
    comparison: Comparison,
    text: &str,
) -> ComparisonSql {
    let right = binary(text.to_owned());
    // Equal text forms are equal values, except for bytes, which are not text, and for numbers in a
    // column that does not convert a text to a number.
    let indexed = comparison == Comparison::Eq
        && !text.starts_with('\\')
        && match kind {
            Affinity::Text | Affinity::TextFolded => false,
            Affinity::Blob => text.parse::<f64>().is_err(),
            _ => true,
        };
    let hint = if kind == Affinity::TextFolded && comparison == Comparison::Eq {
        // Texts that are equal letter by letter are equal when case is folded.
        let folded = Sql::bind(Bind::Text(text.to_owned())).within("", " COLLATE NOCASE");
        Some(Sql::joined([name.clone(), folded], " = "))
    } else if left == *name {
        None
    } else if indexed {
        Some(Sql::joined([name.clone(), right.clone()], " = "))
    } else {
        raw.then(|| near_text(name, comparison, text)).flatten()
    };
    ComparisonSql::With {
        left,
        comparison,
        right,
        hint,
    }
}

/// Compares decimals. Numbers are stored as integers or floats, and a float stands for the decimal
/// it is written as; texts are compared by our own sort key.
pub(super) fn compare_decimal(
    kind: Affinity,
    name: Sql,
    comparison: Comparison,
    text: &str,
) -> ComparisonSql {
    if !kind.holds_numbers() {
        let right = call(functions::DECIMAL, Sql::bind(Bind::Text(text.to_owned())));
        let instead = differing(comparison, &right, "x''", "x'03'");
        let left = call_or(functions::DECIMAL, name, instead);
        return ComparisonSql::with(left, comparison, right);
    }
    let left = name;
    if let Ok(integer) = text.parse::<i64>() {
        return ComparisonSql::with(left, comparison, Sql::bind(Bind::Integer(integer)));
    }
    match nearest_float(text) {
        Some((float, side)) => {
            compare_nearest(left, comparison, Sql::bind(Bind::Real(float)), side)
        }
        None => beyond_all(comparison, !text.starts_with('-')),
    }
}
