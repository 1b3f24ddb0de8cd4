//! Evaluates formulas, for the interpreter and for stores without exact arithmetic of their own.

use wayleave_model::expression::{Arithmetic, Formula, Literal, Node};
use wayleave_model::mapping::Datatype;

use crate::value::{Exact, Value};

/// Evaluates a formula, given the values of its leaves. A leaf whose value is not of its datatype
/// makes the result [`Value::Malformed`].
pub fn evaluate<L>(formula: &Formula<L>, leaf: &dyn Fn(&L) -> Value) -> Value {
    match compute(formula, leaf) {
        Ok(value) => value,
        Err(Malformed) => Value::Malformed,
    }
}

/// A leaf's value is not of its datatype.
struct Malformed;

fn compute<L>(formula: &Formula<L>, leaf: &dyn Fn(&L) -> Value) -> Result<Value, Malformed> {
    let value = |part: &Formula<L>| compute(part, leaf);
    let is_true = |part: &Formula<L>| Ok(value(part)? == Value::Boolean(true));
    Ok(match &formula.node {
        Node::Leaf(one) => match leaf(one) {
            Value::Malformed => return Err(Malformed),
            held => held,
        },
        Node::Literal(it) => literal_value(formula.datatype, it),
        Node::Convert(part) => convert(value(part)?, formula.datatype),
        Node::Arithmetic { op, left, right } => arithmetic(*op, &value(left)?, &value(right)?),
        Node::Concat(parts) => concat(parts, &value)?,
        Node::Compare {
            comparison,
            left,
            right,
        } => {
            let (left, right) = (value(left)?, value(right)?);
            let known = left != Value::Null && right != Value::Null;
            Value::Boolean(known && comparison.holds(left.compare(&right)))
        }
        Node::All(parts) => {
            let mut all = true;
            for part in parts {
                all &= is_true(part)?;
            }
            Value::Boolean(all)
        }
        Node::Any(parts) => {
            let mut any = false;
            for part in parts {
                any |= is_true(part)?;
            }
            Value::Boolean(any)
        }
        Node::Not(part) => Value::Boolean(!is_true(part)?),
        Node::IsNull(part) => Value::Boolean(value(part)? == Value::Null),
        Node::Coalesce(parts) => {
            let mut first = Value::Null;
            for part in parts {
                let held = value(part)?;
                if first == Value::Null {
                    first = held;
                }
            }
            first
        }
        Node::Round {
            value: part,
            digits,
        } => match value(part)? {
            Value::Decimal(text) => text.parse::<Exact>().map_or(Value::Null, |exact| {
                Value::Decimal(exact.round(u32::from(*digits)).to_string().into())
            }),
            other => other,
        },
        Node::If {
            condition,
            then,
            otherwise,
        } => {
            // Evaluate both branches, so that every store detects the same malformed values.
            let (then, otherwise) = (value(then)?, value(otherwise)?);
            if is_true(condition)? { then } else { otherwise }
        }
    })
}

/// The value of a literal of a datatype, for stores to bind.
#[expect(
    clippy::expect_used,
    reason = "NULL in its place would change what is computed"
)]
pub fn literal_value(datatype: Datatype, literal: &Literal) -> Value {
    match literal {
        Literal::Null => Value::Null,
        Literal::Boolean(it) => Value::Boolean(*it),
        Literal::Text(text) if datatype.is_text() => Value::Text(text.as_str().into()),
        Literal::Text(text) => {
            let time = Value::from_text(datatype, text);
            time.expect("typing refuses a literal that is no date or time")
        }
        Literal::Number(number) => match datatype {
            Datatype::Integer => {
                let integer = number.to_i128();
                Value::Integer(integer.expect("typing makes any other number a decimal"))
            }
            Datatype::Number => Value::Number(number.to_f64()),
            _ => Value::Decimal(number.to_string().into()),
        },
    }
}

fn convert(value: Value, to: Datatype) -> Value {
    match (value, to) {
        (Value::Integer(it), Datatype::Decimal) => Value::Decimal(it.to_string().into()),
        (Value::Integer(it), Datatype::String) => Value::Text(it.to_string().into()),
        (Value::Integer(it), Datatype::Number) => number(&it.to_string()),
        (Value::Decimal(it), Datatype::Number) => number(&it),
        (other, _) => other,
    }
}

fn number(text: &str) -> Value {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Value::Number(number),
        _ => Value::Null,
    }
}

/// Arithmetic on two values of one datatype.
pub fn arithmetic(op: Arithmetic, left: &Value, right: &Value) -> Value {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => {
            let result = match op {
                Arithmetic::Add => a + b,
                Arithmetic::Subtract => a - b,
                Arithmetic::Multiply => a * b,
                Arithmetic::Divide => a / b,
            };
            if result.is_finite() {
                Value::Number(result + 0.0)
            } else {
                Value::Null
            }
        }
        (Value::Integer(a), Value::Integer(b)) => {
            let (a, b) = (Exact::new(*a, 0), Exact::new(*b, 0));
            exact(op, &a, &b).map_or(Value::Null, |it| {
                let text = it.to_string();
                text.parse()
                    .map_or_else(|_| Value::Decimal(text.as_str().into()), Value::Integer)
            })
        }
        (Value::Decimal(a), Value::Decimal(b)) => match (a.parse(), b.parse()) {
            (Ok(a), Ok(b)) => {
                exact(op, &a, &b).map_or(Value::Null, |it| Value::Decimal(it.to_string().into()))
            }
            _ => Value::Null,
        },
        _ => Value::Null,
    }
}

fn exact(op: Arithmetic, a: &Exact, b: &Exact) -> Option<Exact> {
    match op {
        Arithmetic::Add => Some(a.add(b)),
        Arithmetic::Subtract => Some(a.subtract(b)),
        Arithmetic::Multiply => Some(a.multiply(b)),
        Arithmetic::Divide => a.divide(b),
    }
}

fn concat<L>(
    parts: &[Formula<L>],
    value: &dyn Fn(&Formula<L>) -> Result<Value, Malformed>,
) -> Result<Value, Malformed> {
    let mut joined = String::new();
    let mut is_null = false;
    for part in parts {
        match value(part)? {
            Value::Text(text) => joined.push_str(&text),
            _ => is_null = true,
        }
    }
    Ok(if is_null {
        Value::Null
    } else {
        Value::Text(joined.into())
    })
}
