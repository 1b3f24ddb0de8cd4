//! Which rows.
//!
//! Nothing here writes `NOT` over a condition: with NULL in play it would not mean the opposite.

use wayleave_plan::plan::{Column, Comparison, Predicate};
use wayleave_plan::value::Value;
use wayleave_store::StoreError;

use super::dialect::{ComparisonSql, Dialect};
use super::shape::Shape;
use super::sql::Sql;

const TRUE: &str = "1 = 1";
const FALSE: &str = "1 = 0";

/// What values that are not of their column's datatype do to a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MalformedRule {
    /// They may satisfy it.
    MayHold,
    /// They satisfy no comparison, but are there.
    NeverCompare,
    /// They satisfy nothing.
    NeverHold,
}

/// ` WHERE …`, or nothing for every row.
pub(crate) fn filter<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    predicate: &Predicate,
) -> Result<Sql, StoreError> {
    Ok(where_all(conditions(dialect, shape, predicate, &[])?))
}

/// ` WHERE …` of all these conditions.
pub(crate) fn where_all(conditions: Vec<Sql>) -> Sql {
    let conditions: Vec<Sql> = conditions.into_iter().filter(|it| !it.is(TRUE)).collect();
    if conditions.is_empty() {
        Sql::default()
    } else {
        Sql::joined(conditions, " AND ").within(" WHERE ", "")
    }
}

/// Conditions that together hold for the rows of a predicate, each safe beside `AND`.
///
/// What a grant says holds only for values of their datatype. What a caller says may hold for
/// others too, so that an index can answer it; where it does for a granted row, and would not
/// otherwise, the last condition fails the statement, or passes the row over where that is asked
/// for. So it does where one of the `measured` columns of a wanted row holds such a value.
pub(crate) fn conditions<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    predicate: &Predicate,
    measured: &[&Column],
) -> Result<Vec<Sql>, StoreError> {
    let parts = match predicate {
        Predicate::And(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let (mut wanted, mut decided, mut is_sure) = (Vec::new(), Vec::new(), true);
    for part in parts {
        if let Predicate::Granted(granted) = part {
            wanted.push(condition_where(
                dialect,
                shape,
                granted,
                MalformedRule::NeverHold,
            )?);
            continue;
        }
        let may = condition_where(dialect, shape, part, MalformedRule::MayHold)?;
        let does = condition_where(dialect, shape, part, MalformedRule::NeverCompare)?;
        if may != does {
            is_sure = false;
            decided.push(does);
        }
        wanted.push(may);
    }
    for column in measured {
        let (name, native) = shape.named(dialect, column)?;
        if let Some(fits) = dialect.well_formed(column, &native.kind, &name, None) {
            is_sure = false;
            decided.push(any(vec![name.within("", " IS NULL"), fits]));
        }
    }
    if !is_sure && dialect.skips_undecided() {
        wanted.extend(decided);
    } else if !is_sure {
        let mut flag = every(wanted.clone()).within("CASE WHEN ", " THEN CASE WHEN ");
        flag.add(every(decided));
        flag.push(" THEN 0 ELSE 1 END ELSE 0 END");
        wanted.push(dialect.fail_where(flag));
    }
    Ok(wanted)
}

/// A condition that holds for the rows of a predicate that is ours or the grant's.
pub(crate) fn condition<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    predicate: &Predicate,
) -> Result<Sql, StoreError> {
    condition_where(dialect, shape, predicate, MalformedRule::MayHold)
}

fn condition_where<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    predicate: &Predicate,
    malformed: MalformedRule,
) -> Result<Sql, StoreError> {
    let all = |parts: &[Predicate]| -> Result<Vec<Sql>, StoreError> {
        parts
            .iter()
            .map(|part| condition_where(dialect, shape, part, malformed))
            .collect()
    };
    // What holds for a value, if it is of its datatype.
    let checked = |condition: Sql, column: &Column, comparison| -> Result<Sql, StoreError> {
        if malformed == MalformedRule::MayHold {
            return Ok(condition);
        }
        let (name, native) = shape.named(dialect, column)?;
        Ok(
            match dialect.well_formed(column, &native.kind, &name, comparison) {
                Some(fits) => every(vec![condition, fits]),
                None => condition,
            },
        )
    };
    Ok(match predicate {
        Predicate::True => Sql::text(TRUE),
        Predicate::False => Sql::text(FALSE),
        Predicate::And(parts) if parts.is_empty() => Sql::text(TRUE),
        Predicate::Or(parts) if parts.is_empty() => Sql::text(FALSE),
        Predicate::And(parts) => every(all(parts)?),
        Predicate::Or(parts) => any(all(parts)?),
        Predicate::Granted(granted) => {
            condition_where(dialect, shape, granted, MalformedRule::NeverHold)?
        }
        Predicate::Compare {
            column,
            comparison,
            value,
        } => {
            let compared = compare(dialect, shape, column, *comparison, value)?;
            checked(compared, column, Some(*comparison))?
        }
        Predicate::In {
            column,
            values,
            negated,
        } => {
            let comparison = if *negated {
                Comparison::Ne
            } else {
                Comparison::Eq
            };
            let listed = list(dialect, shape, column, comparison, values)?;
            let listed = if let Some(listed) = listed {
                listed
            } else {
                let each = each(dialect, shape, column, comparison, values)?;
                if *negated { every(each) } else { any(each) }
            };
            checked(listed, column, Some(comparison))?
        }
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
        } => {
            let present = shape.name(dialect, column)?.within("", " IS NOT NULL");
            match malformed {
                MalformedRule::MayHold | MalformedRule::NeverCompare => present,
                MalformedRule::NeverHold => checked(present, column, None)?,
            }
        }
    })
}

/// All of these conditions.
fn every(conditions: Vec<Sql>) -> Sql {
    Sql::joined(conditions, " AND ").within("(", ")")
}

/// Any of these conditions.
pub(crate) fn any(conditions: Vec<Sql>) -> Sql {
    Sql::joined(conditions, " OR ").within("(", ")")
}

/// A comparison with one value.
pub(crate) fn compare<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    column: &Column,
    comparison: Comparison,
    value: &Value,
) -> Result<Sql, StoreError> {
    let (name, native) = shape.named(dialect, column)?;
    Ok(
        match dialect.compare(column, &native.kind, name, comparison, value) {
            ComparisonSql::Never => Sql::text(FALSE),
            ComparisonSql::Always => shape.name(dialect, column)?.within("", " IS NOT NULL"),
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
