//! Which rows.
//!
//! Nothing here writes `NOT` over a condition: with NULL in play it would not mean the opposite.

use wayleave_plan::plan::{Column, Comparison, Predicate};
use wayleave_plan::value::Value;
use wayleave_store::StoreError;

use super::dialect::{Compared, Dialect, Shape};
use super::sql::Sql;

const TRUE: &str = "1 = 1";
const FALSE: &str = "1 = 0";

/// ` WHERE …`, or nothing for every row.
pub(super) fn filter<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    predicate: &Predicate,
) -> Result<Sql, StoreError> {
    Ok(where_all(vec![condition(dialect, shape, predicate)?]))
}

/// ` WHERE …` of all these conditions.
pub(super) fn where_all(conditions: Vec<Sql>) -> Sql {
    let conditions: Vec<Sql> = conditions.into_iter().filter(|it| !it.is(TRUE)).collect();
    if conditions.is_empty() {
        Sql::default()
    } else {
        Sql::joined(conditions, " AND ").within(" WHERE ", "")
    }
}

/// A condition that holds for the rows of a predicate; safe beside `AND`.
pub(super) fn condition<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    predicate: &Predicate,
) -> Result<Sql, StoreError> {
    let all = |parts: &[Predicate]| -> Result<Vec<Sql>, StoreError> {
        parts
            .iter()
            .map(|part| condition(dialect, shape, part))
            .collect()
    };
    Ok(match predicate {
        Predicate::True => Sql::text(TRUE),
        Predicate::False => Sql::text(FALSE),
        Predicate::And(parts) if parts.is_empty() => Sql::text(TRUE),
        Predicate::Or(parts) if parts.is_empty() => Sql::text(FALSE),
        Predicate::And(parts) => every(all(parts)?),
        Predicate::Or(parts) => any(all(parts)?),
        Predicate::Compare {
            column,
            comparison,
            value,
        } => compare(dialect, shape, column, *comparison, value)?,
        Predicate::In {
            column,
            values,
            negated: false,
        } => match list(dialect, shape, column, Comparison::Eq, values)? {
            Some(list) => list,
            None => any(each(dialect, shape, column, Comparison::Eq, values)?),
        },
        Predicate::In {
            column,
            values,
            negated: true,
        } => match list(dialect, shape, column, Comparison::Ne, values)? {
            Some(list) => list,
            None => every(each(dialect, shape, column, Comparison::Ne, values)?),
        },
        Predicate::Like {
            column,
            text,
            prefix,
        } => like(dialect, shape, column, text, *prefix)?,
        Predicate::IsNull {
            column,
            negated: false,
        } => dialect.is_null(shape.column(column)?, shape.name(dialect, column)?),
        Predicate::IsNull {
            column,
            negated: true,
        } => shape.name(dialect, column)?.within("", " IS NOT NULL"),
    })
}

/// All of these conditions.
fn every(conditions: Vec<Sql>) -> Sql {
    Sql::joined(conditions, " AND ").within("(", ")")
}

/// Any of these conditions.
pub(super) fn any(conditions: Vec<Sql>) -> Sql {
    Sql::joined(conditions, " OR ").within("(", ")")
}

/// A comparison with one value.
pub(super) fn compare<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    column: &Column,
    comparison: Comparison,
    value: &Value,
) -> Result<Sql, StoreError> {
    let (name, native) = shape.named(dialect, column)?;
    Ok(
        match dialect.compare(column, &native.kind, name, comparison, value) {
            Compared::Never => Sql::text(FALSE),
            Compared::Always => shape.name(dialect, column)?.within("", " IS NOT NULL"),
            Compared::With {
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
        },
    )
}

/// `… IN (…)` or `… NOT IN (…)`, where each value is compared in the same plain way.
fn list<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    column: &Column,
    wanted: Comparison,
    values: &[Value],
) -> Result<Option<Sql>, StoreError> {
    let kind = &shape.column(column)?.kind;
    let name = shape.name(dialect, column)?;
    let hinted = dialect
        .list_hint(column, kind, &name, values)
        .filter(|_| wanted == Comparison::Eq);
    let (mut left, mut rights) = (None, Vec::new());
    for value in values {
        let name = name.clone();
        match dialect.compare(column, kind, name, wanted, value) {
            Compared::With {
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

fn each<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    column: &Column,
    comparison: Comparison,
    values: &[Value],
) -> Result<Vec<Sql>, StoreError> {
    values
        .iter()
        .map(|value| compare(dialect, shape, column, comparison, value))
        .collect()
}

/// A text that begins with another lies between it and the first text after all such: a range,
/// which an index can answer and wildcards cannot confuse.
fn like<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    column: &Column,
    text: &str,
    prefix: bool,
) -> Result<Sql, StoreError> {
    if !prefix {
        let name = shape.name(dialect, column)?;
        let kind = &shape.column(column)?.kind;
        return Ok(dialect.contains(column, kind, name, text));
    }
    let bound = |comparison, text: String| {
        compare(
            dialect,
            shape,
            column,
            comparison,
            &Value::Text(text.into()),
        )
    };
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

pub(super) fn operator(comparison: Comparison) -> &'static str {
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
