//! Conversions between datatypes, and the common datatype of several formulas.

use super::formula::{Formula, Literal, Node};
use super::literal::is_time;
use crate::mapping::Datatype;

/// A constant of that datatype.
pub(super) fn literal<L>(datatype: Datatype, literal: Literal) -> Formula<L> {
    Formula {
        datatype,
        node: Node::Literal(literal),
    }
}

/// The datatype in which both formulas can be compared.
pub(super) fn common<L>(one: &Formula<L>, other: &Formula<L>) -> Option<Datatype> {
    if matches!(one.node, Node::Literal(_)) {
        common_with(other.datatype, one)
    } else {
        common_with(one.datatype, other)
    }
}

/// The common datatype of `datatype` and a formula.
pub(super) fn common_with<L>(datatype: Datatype, formula: &Formula<L>) -> Option<Datatype> {
    let is_time = |text: &str| is_time(datatype, text);
    datatype
        .common_with(formula.datatype)
        .or_else(|| match &formula.node {
            Node::Literal(Literal::Text(text)) if is_time(text) => Some(datatype),
            _ => None,
        })
}

/// Converts a formula to another datatype; `None` if that is impossible.
pub(super) fn coerce<L>(formula: Formula<L>, to: Datatype) -> Option<Formula<L>> {
    let from = formula.datatype;
    if from == to {
        return Some(formula);
    }
    match (&formula.node, to) {
        (Node::Literal(Literal::Null), _) => return Some(literal(to, Literal::Null)),
        (Node::Literal(Literal::Number(number)), Datatype::Decimal | Datatype::Number) => {
            return Some(literal(to, Literal::Number(number.clone())));
        }
        (Node::Literal(Literal::Number(number)), Datatype::String) if number.is_whole() => {
            return Some(literal(to, Literal::Text(number.to_string())));
        }
        (Node::Literal(Literal::Text(text)), Datatype::Date | Datatype::Datetime) => {
            return is_time(to, text).then(|| literal(to, Literal::Text(text.clone())));
        }
        _ => {}
    }
    let converts = match (from, to) {
        // Every IRI is a text, but not every text is an IRI.
        (Datatype::Iri, Datatype::String) => {
            return Some(Formula {
                datatype: to,
                node: formula.node,
            });
        }
        (Datatype::Integer, Datatype::Decimal | Datatype::String | Datatype::Number)
        | (Datatype::Decimal, Datatype::Number) => true,
        _ => false,
    };
    converts.then(|| Formula {
        datatype: to,
        node: Node::Convert(Box::new(formula)),
    })
}
