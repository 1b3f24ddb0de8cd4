//! Comparisons of columns with values and with each other.

use std::borrow::Cow;

use wayleave_plan::plan::{Column, ColumnOrigin, Comparison, TextMatch};
use wayleave_plan::value::Value;
use wayleave_store::StoreError;

use super::dialect::{ComparisonSql, Dialect};
use super::formula;
use super::predicate::{FALSE, every};
use super::sql::Sql;
use super::tables::Tables;

/// Compares two columns of one datatype.
pub(super) fn compare_columns<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    left: &Column,
    comparison: Comparison,
    right: &Column,
) -> Result<Sql, StoreError> {
    let is_stored = |column: &Column| matches!(column.origin, ColumnOrigin::Stored { .. });
    if comparison == Comparison::Eq && is_stored(left) && is_stored(right) {
        let (left_name, left_native) = tables.named(dialect, left)?;
        let (right_name, right_native) = tables.named(dialect, right)?;
        let hint = dialect.join_hint(
            (left, &left_native.kind, &left_name),
            (right, &right_native.kind, &right_name),
        );
        // Unconverted columns can be hashed or looked up in an index; converted ones cannot.
        if let Some((equal, true)) = hint {
            return Ok(equal.within("(", ")"));
        }
    }
    let value = |column| formula::leaf(dialect, tables, column);
    let (datatype, left, right) = (left.datatype, value(left)?, value(right)?);
    Ok(formula::compared(
        dialect, datatype, left, comparison, right,
    ))
}

/// A value as the operand of a comparison with a computed column: integers become decimals, because
/// computed integers may exceed machine integers.
fn as_computed<'v>(column: &Column, value: &'v Value) -> Cow<'v, Value> {
    match (&column.origin, value) {
        (ColumnOrigin::Stored { .. }, _) => Cow::Borrowed(value),
        (_, Value::Integer(integer)) => Cow::Owned(Value::Decimal(integer.to_string().into())),
        _ => Cow::Borrowed(value),
    }
}

/// Compares a column with one value.
pub(crate) fn compare<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    column: &Column,
    comparison: Comparison,
    value: &Value,
) -> Result<Sql, StoreError> {
    let (name, native) = tables.named(dialect, column)?;
    let value = &as_computed(column, value);
    let compared = dialect.compare(column, &native.kind, name.clone(), comparison, value);
    Ok(written(compared, &name))
}

/// Renders a comparison. `name` is the compared column or expression.
pub(super) fn written(compared: ComparisonSql, name: &Sql) -> Sql {
    match compared {
        ComparisonSql::Never => Sql::text(FALSE),
        ComparisonSql::Always => name.clone().within("", " IS NOT NULL"),
        ComparisonSql::With {
            mut left,
            comparison,
            right,
            hint,
        } => {
            left.push(operator(comparison));
            left.add(right);
            match hint {
                Some(hint) => Sql::joined([hint, left], " AND ").within("(", ")"),
                None => left,
            }
        }
    }
}

/// `… IN (…)` or `… NOT IN (…)`; `None` unless all values compare in the same plain form.
pub(super) fn list<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    column: &Column,
    wanted: Comparison,
    values: &[Value],
) -> Result<Option<Sql>, StoreError> {
    let (name, native) = tables.named(dialect, column)?;
    let kind = &native.kind;
    let hinted = dialect
        .list_hint(column, kind, &name, values)
        .filter(|_| wanted == Comparison::Eq);
    let (mut left, mut rights) = (None, Vec::new());
    for value in values {
        let name = name.clone();
        match dialect.compare(column, kind, name, wanted, &as_computed(column, value)) {
            ComparisonSql::With {
                left: this,
                comparison,
                right,
                hint,
            } if comparison == wanted
                && (hint.is_none() || hinted.is_some())
                && left.as_ref().is_none_or(|left| *left == this) =>
            {
                left = Some(this);
                rights.push(right);
            }
            _ => return Ok(None),
        }
    }
    let test = if wanted == Comparison::Eq {
        " IN ("
    } else {
        " NOT IN ("
    };
    let rights = Sql::joined(rights, ", ").within(test, ")");
    let list = left.map(|left| Sql::joined([dialect.listed(column, left), rights], ""));
    Ok(match (hinted, list) {
        (Some(hint), Some(list)) => Some(every(vec![hint, list])),
        (_, list) => list,
    })
}

/// Compares a column with each of these values.
pub(super) fn each<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    column: &Column,
    comparison: Comparison,
    values: &[Value],
) -> Result<Vec<Sql>, StoreError> {
    values
        .iter()
        .map(|value| compare(dialect, tables, column, comparison, value))
        .collect()
}

/// Matches a text at a place. Texts with a given beginning are a range up to the first text after
/// all of them, which an index can answer and wildcards cannot confuse.
pub(super) fn like<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    column: &Column,
    text: &str,
    place: TextMatch,
    fold: bool,
) -> Result<Sql, StoreError> {
    if fold {
        let folded = dialect.folded(formula::leaf(dialect, tables, column)?);
        return Ok(dialect.like_folded(folded, text, place));
    }
    if place == TextMatch::Anywhere {
        let (name, native) = tables.named(dialect, column)?;
        return Ok(dialect.contains(column, &native.kind, name, text));
    }
    let bound = |comparison, text: String| {
        compare(
            dialect,
            tables,
            column,
            comparison,
            &Value::Text(text.into()),
        )
    };
    if place == TextMatch::Whole {
        return bound(Comparison::Eq, text.to_owned());
    }
    let from = bound(Comparison::Gte, text.to_owned())?;
    Ok(match after_prefix(text) {
        None => from,
        Some(end) => Sql::joined([from, bound(Comparison::Lt, end)?], " AND ").within("(", ")"),
    })
}

/// The least text greater than every text that begins with `prefix`; `None` if there is none.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match u32::from(last) {
            // The code points between these two are no characters.
            0xD7FF => Some('\u{E000}'),
            code => char::from_u32(code + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

pub(crate) fn operator(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Eq => " = ",
        Comparison::Ne => " <> ",
        Comparison::Gt => " > ",
        Comparison::Gte => " >= ",
        Comparison::Lt => " < ",
        Comparison::Lte => " <= ",
    }
}

#[cfg(test)]
mod tests {
    use super::after_prefix;

    #[test]
    fn the_end_of_a_prefix_is_the_next_text() {
        for (prefix, end) in [
            ("a", Some("b")),
            ("az", Some("a{")),
            ("a\u{D7FF}", Some("a\u{E000}")),
            ("a\u{10FFFF}", Some("b")),
            ("\u{10FFFF}", None),
            ("", None),
        ] {
            assert_eq!(after_prefix(prefix).as_deref(), end, "{prefix:?}");
        }
    }
}
