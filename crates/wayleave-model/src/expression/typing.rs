//! Infers the datatype of every node of an expression.

use std::fmt;
use std::ops::Range;

use super::coerce::{coerce, common, common_with, literal};
use super::formula::{AggregateTerm, Arithmetic, Formula, Literal, Node};
use super::{
    Comparison, ExpressionError, Function, MAX_ROUND_DIGITS, Operator, Syntax, SyntaxKind,
};
use crate::mapping::{AggregateOp, Datatype};

/// A field of a record, or of one that its to-one relations lead to: `artist.Name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path(pub Vec<String>);

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// Why a path cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPath {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// The datatypes of a stream's fields, and of the fields that its paths lead to.
pub trait FieldTypes {
    /// The datatype of the field at the end of a path.
    fn datatype(&self, path: &Path) -> Result<Datatype, UnknownPath>;
}

/// Types the expression of a computed field with the declared datatype.
pub fn type_field(
    syntax: &Syntax,
    fields: &dyn FieldTypes,
    datatype: Datatype,
) -> Result<Formula<Path>, ExpressionError> {
    let span = || syntax.span.clone();
    let formula = match TypeChecker(&RowLeaves(fields)).infer(syntax)? {
        TypedOperand::Null => {
            return Err(ExpressionError::new("this is always null", span()));
        }
        TypedOperand::Known(formula) => formula,
    };
    let mut reads = false;
    formula.for_each_leaf(&mut |_| reads = true);
    if !reads {
        let message = "the expression of a computed field must refer to at least one field";
        return Err(ExpressionError::new(message, span()));
    }
    let found = formula.datatype;
    coerce(formula, datatype).ok_or_else(|| {
        ExpressionError::new(
            format!("this is of datatype `{found}`, and the field is `{datatype}`"),
            span(),
        )
        .hint(format!("write `datatype = \"{found}\"`"))
    })
}

/// Types the expression of a measure.
pub fn type_measure(
    syntax: &Syntax,
    fields: &dyn FieldTypes,
) -> Result<Formula<AggregateTerm<Path>>, ExpressionError> {
    let constant = || {
        ExpressionError::new("a measure must contain an aggregate", syntax.span.clone())
            .hint("such as `sum(amount)` or `count()`")
    };
    let TypedOperand::Known(formula) = TypeChecker(&GroupLeaves(fields)).infer(syntax)? else {
        return Err(constant());
    };
    let mut reads = false;
    formula.for_each_leaf(&mut |_| reads = true);
    if reads { Ok(formula) } else { Err(constant()) }
}

/// Types the leaves of an expression.
trait Leaves {
    type Leaf;

    fn path(
        &self,
        path: &Path,
        span: &Range<usize>,
    ) -> Result<Formula<Self::Leaf>, ExpressionError>;

    fn aggregate(
        &self,
        op: AggregateOp,
        arguments: &[Syntax],
        span: &Range<usize>,
    ) -> Result<Formula<Self::Leaf>, ExpressionError>;
}

/// In a computed field, leaves are fields.
struct RowLeaves<'f>(&'f dyn FieldTypes);

impl Leaves for RowLeaves<'_> {
    type Leaf = Path;

    fn path(&self, path: &Path, span: &Range<usize>) -> Result<Formula<Path>, ExpressionError> {
        let datatype = self.0.datatype(path).map_err(|unknown| ExpressionError {
            message: unknown.message,
            hint: unknown.hint,
            span: span.clone(),
        })?;
        if datatype == Datatype::Json {
            let message = format!("`{path}` is `json`, and nothing is computed from that");
            return Err(ExpressionError::new(message, span.clone()));
        }
        Ok(Formula::leaf(datatype, path.clone()))
    }

    fn aggregate(
        &self,
        op: AggregateOp,
        _: &[Syntax],
        span: &Range<usize>,
    ) -> Result<Formula<Path>, ExpressionError> {
        let message = format!("`{op}` needs many records, and a field is computed from one");
        Err(ExpressionError::new(message, span.clone())
            .hint("write it under `measures`; aggregates cannot be nested"))
    }
}

/// In a measure, leaves are aggregates.
struct GroupLeaves<'f>(&'f dyn FieldTypes);

impl Leaves for GroupLeaves<'_> {
    type Leaf = AggregateTerm<Path>;

    fn path(
        &self,
        path: &Path,
        span: &Range<usize>,
    ) -> Result<Formula<Self::Leaf>, ExpressionError> {
        let message = format!("`{path}` has a value for each record, and a measure one for all");
        Err(ExpressionError::new(message, span.clone())
            .hint(format!("aggregate it, such as `sum({path})`")))
    }

    fn aggregate(
        &self,
        op: AggregateOp,
        arguments: &[Syntax],
        span: &Range<usize>,
    ) -> Result<Formula<Self::Leaf>, ExpressionError> {
        let wrong = |message: String| Err(ExpressionError::new(message, span.clone()));
        let over = match arguments {
            [] if op == AggregateOp::Count => None,
            [one] => match TypeChecker(&RowLeaves(self.0)).infer(one)? {
                TypedOperand::Known(formula) => Some(formula),
                TypedOperand::Null => {
                    return wrong(format!("`{op}` needs a value, and this is null"));
                }
            },
            _ => return wrong(format!("`{op}` takes one value")),
        };
        let of = over.as_ref().map(|it| it.datatype);
        match of {
            None if op == AggregateOp::Count => {}
            None => return wrong(format!("`{op}` takes one value")),
            Some(of) if of.aggregates().contains(&op) => {}
            Some(of) => return wrong(format!("`{op}` does not apply to `{of}`")),
        }
        let leaf = AggregateTerm { op, over };
        Ok(Formula::leaf(leaf.datatype(), leaf))
    }
}

/// A typed formula, or `null`, which fits any datatype.
enum TypedOperand<L> {
    Null,
    Known(Formula<L>),
}

struct TypeChecker<'l, T: Leaves>(&'l T);

impl<T: Leaves> TypeChecker<'_, T> {
    fn infer(&self, syntax: &Syntax) -> Result<TypedOperand<T::Leaf>, ExpressionError> {
        let span = &syntax.span;
        let formula = match &syntax.kind {
            SyntaxKind::Null => return Ok(TypedOperand::Null),
            SyntaxKind::Text(text) => literal(Datatype::String, Literal::Text(text.clone())),
            SyntaxKind::Boolean(value) => literal(Datatype::Boolean, Literal::Boolean(*value)),
            SyntaxKind::Number(number) => {
                // Integers have at most 128 bits; a greater literal is a decimal.
                let datatype = match number.to_i128() {
                    Some(_) => Datatype::Integer,
                    None => Datatype::Decimal,
                };
                literal(datatype, Literal::Number(number.clone()))
            }
            SyntaxKind::Path(path) => self.0.path(&Path(path.clone()), span)?,
            SyntaxKind::Negate(part) => self.negate(part)?,
            SyntaxKind::Not(part) => Formula {
                datatype: Datatype::Boolean,
                node: Node::Not(Box::new(self.condition(part)?)),
            },
            SyntaxKind::IsNull { value, negated } => {
                let is_null = Formula {
                    datatype: Datatype::Boolean,
                    node: Node::IsNull(Box::new(self.value(value)?)),
                };
                if *negated {
                    Formula {
                        datatype: Datatype::Boolean,
                        node: Node::Not(Box::new(is_null)),
                    }
                } else {
                    is_null
                }
            }
            SyntaxKind::Binary {
                operator,
                left,
                right,
            } => self.binary(*operator, left, right, span)?,
            SyntaxKind::Call {
                function: Function::Aggregate(op),
                arguments,
            } => self.0.aggregate(*op, arguments, span)?,
            SyntaxKind::Call {
                function,
                arguments,
            } => return self.call(*function, arguments, span),
        };
        Ok(TypedOperand::Known(formula))
    }

    /// Types an operand, and refuses a bare `null`.
    fn value(&self, syntax: &Syntax) -> Result<Formula<T::Leaf>, ExpressionError> {
        match self.infer(syntax)? {
            TypedOperand::Known(formula) => Ok(formula),
            TypedOperand::Null => Err(ExpressionError::new(
                "null alone has no datatype",
                syntax.span.clone(),
            )
            .hint("test it with `is null`")),
        }
    }

    fn condition(&self, syntax: &Syntax) -> Result<Formula<T::Leaf>, ExpressionError> {
        let formula = self.value(syntax)?;
        if formula.datatype == Datatype::Boolean {
            return Ok(formula);
        }
        let message = format!("expected a condition, found `{}`", formula.datatype);
        Err(ExpressionError::new(message, syntax.span.clone()).hint("compare it with something"))
    }

    fn negate(&self, part: &Syntax) -> Result<Formula<T::Leaf>, ExpressionError> {
        let right = self.numeric(part)?;
        let datatype = right.datatype;
        let zero = literal(datatype, Literal::Number(0.into()));
        Ok(Formula {
            datatype,
            node: Node::Arithmetic {
                op: Arithmetic::Subtract,
                left: Box::new(zero),
                right: Box::new(right),
            },
        })
    }

    fn numeric(&self, syntax: &Syntax) -> Result<Formula<T::Leaf>, ExpressionError> {
        let formula = self.value(syntax)?;
        if formula.datatype.is_numeric() {
            return Ok(formula);
        }
        let message = format!("expected a number, found `{}`", formula.datatype);
        let error = ExpressionError::new(message, syntax.span.clone());
        Err(if formula.datatype.is_text() {
            error.hint("texts are joined with `||`")
        } else {
            error
        })
    }

    fn binary(
        &self,
        operator: Operator,
        left: &Syntax,
        right: &Syntax,
        span: &Range<usize>,
    ) -> Result<Formula<T::Leaf>, ExpressionError> {
        match operator {
            Operator::And | Operator::Or => {
                let parts = vec![self.condition(left)?, self.condition(right)?];
                Ok(Formula {
                    datatype: Datatype::Boolean,
                    node: if operator == Operator::And {
                        Node::All(parts)
                    } else {
                        Node::Any(parts)
                    },
                })
            }
            Operator::Concat => Ok(Formula {
                datatype: Datatype::String,
                node: Node::Concat(vec![self.text(left)?, self.text(right)?]),
            }),
            Operator::Arithmetic(op) => {
                let (left, right) = (self.numeric(left)?, self.numeric(right)?);
                let mut datatype = left.datatype.common_with(right.datatype);
                if op == Arithmetic::Divide && datatype == Some(Datatype::Integer) {
                    datatype = Some(Datatype::Decimal);
                }
                let operand = |it| coerce(it, datatype?).map(Box::new);
                match (datatype, operand(left), operand(right)) {
                    (Some(datatype), Some(left), Some(right)) => Ok(Formula {
                        datatype,
                        node: Node::Arithmetic { op, left, right },
                    }),
                    _ => Err(ExpressionError::new("these are not numbers", span.clone())),
                }
            }
            Operator::Compare(comparison) => self.compare(comparison, left, right, span),
        }
    }

    fn text(&self, syntax: &Syntax) -> Result<Formula<T::Leaf>, ExpressionError> {
        let formula = self.value(syntax)?;
        let found = formula.datatype;
        coerce(formula, Datatype::String).ok_or_else(|| {
            let message = format!("`||` joins texts and whole numbers, and this is `{found}`");
            ExpressionError::new(message, syntax.span.clone())
        })
    }

    fn compare(
        &self,
        comparison: Comparison,
        left: &Syntax,
        right: &Syntax,
        span: &Range<usize>,
    ) -> Result<Formula<T::Leaf>, ExpressionError> {
        let (one, other) = (self.value(left)?, self.value(right)?);
        let (from, to) = (one.datatype, other.datatype);
        let is_order = !matches!(comparison, Comparison::Eq | Comparison::Ne);
        let pair = common(&one, &other).and_then(|datatype| {
            let left = coerce(one, datatype)?;
            let right = coerce(other, datatype)?;
            (!(is_order && datatype == Datatype::Boolean)).then_some((left, right))
        });
        let Some((left, right)) = pair else {
            let message = format!(
                "`{from}` cannot be compared with `{to}` by `{}`",
                comparison.symbol()
            );
            return Err(ExpressionError::new(message, span.clone()));
        };
        Ok(Formula {
            datatype: Datatype::Boolean,
            node: Node::Compare {
                comparison,
                left: Box::new(left),
                right: Box::new(right),
            },
        })
    }

    fn call(
        &self,
        function: Function,
        arguments: &[Syntax],
        span: &Range<usize>,
    ) -> Result<TypedOperand<T::Leaf>, ExpressionError> {
        let wrong = |message: &str| Err(ExpressionError::new(message, span.clone()));
        match (function, arguments) {
            (Function::Round, [value, rest @ ..]) if rest.len() < 2 => {
                self.round(value, rest.first()).map(TypedOperand::Known)
            }
            (Function::Round, _) => wrong("`round` takes a number and how many digits to keep"),
            (Function::If, [condition, then, otherwise]) => {
                let condition = Box::new(self.condition(condition)?);
                let Some((datatype, branches)) = self.unified(&[then, otherwise], span)? else {
                    return wrong("both results are null");
                };
                let mut branches = branches.into_iter().map(Box::new);
                match (branches.next(), branches.next()) {
                    (Some(then), Some(otherwise)) => Ok(TypedOperand::Known(Formula {
                        datatype,
                        node: Node::If {
                            condition,
                            then,
                            otherwise,
                        },
                    })),
                    _ => wrong("`if` takes a condition and two results"),
                }
            }
            (Function::If, _) => wrong("`if` takes a condition and two results"),
            (_, [_, _, ..]) => {
                let arguments: Vec<&Syntax> = arguments.iter().collect();
                match self.unified(&arguments, span)? {
                    None => wrong("all of these are null"),
                    Some((datatype, parts)) => Ok(TypedOperand::Known(Formula {
                        datatype,
                        node: Node::Coalesce(parts),
                    })),
                }
            }
            _ => wrong("`coalesce` takes two values or more"),
        }
    }

    fn round(
        &self,
        value: &Syntax,
        digits: Option<&Syntax>,
    ) -> Result<Formula<T::Leaf>, ExpressionError> {
        let formula = self.numeric(value)?;
        if formula.datatype == Datatype::Number {
            let message = "stores round floating-point numbers in different ways";
            return Err(ExpressionError::new(message, value.span.clone())
                .hint("map the field as `decimal`"));
        }
        let digits = match digits {
            None => 0,
            Some(digits) => match &digits.kind {
                SyntaxKind::Number(number) => number.to_i64().and_then(|it| u8::try_from(it).ok()),
                _ => None,
            }
            .filter(|it| *it <= MAX_ROUND_DIGITS)
            .ok_or_else(|| {
                let message = format!("the digits to keep are 0 to {MAX_ROUND_DIGITS}");
                ExpressionError::new(message, digits.span.clone())
            })?,
        };
        Ok(Formula {
            datatype: formula.datatype,
            node: Node::Round {
                value: Box::new(formula),
                digits,
            },
        })
    }

    /// Converts operands to their common datatype; `None` if all are null.
    #[expect(clippy::type_complexity, reason = "a datatype and the parts in it")]
    fn unified(
        &self,
        parts: &[&Syntax],
        span: &Range<usize>,
    ) -> Result<Option<(Datatype, Vec<Formula<T::Leaf>>)>, ExpressionError> {
        let parts: Vec<TypedOperand<T::Leaf>> = parts
            .iter()
            .map(|part| self.infer(part))
            .collect::<Result<_, _>>()?;
        let mut datatype: Option<Datatype> = None;
        // Operands that are not literals come first: they decide whether a text is a date.
        for want_literals in [false, true] {
            for part in &parts {
                let TypedOperand::Known(part) = part else {
                    continue;
                };
                let is_literal = matches!(part.node, Node::Literal(_));
                if is_literal != want_literals {
                    continue;
                }
                let together = match datatype {
                    None => Some(part.datatype),
                    Some(so_far) => common_with(so_far, part),
                };
                let Some(together) = together else {
                    let message = format!(
                        "`{}` and `{}` have no datatype in common",
                        datatype.unwrap_or(part.datatype),
                        part.datatype
                    );
                    return Err(ExpressionError::new(message, span.clone()));
                };
                datatype = Some(together);
            }
        }
        let Some(datatype) = datatype else {
            return Ok(None);
        };
        let parts = parts.into_iter().map(|part| match part {
            TypedOperand::Null => Some(literal(datatype, Literal::Null)),
            TypedOperand::Known(part) => coerce(part, datatype),
        });
        let parts = parts.collect::<Option<Vec<_>>>();
        parts.map(|parts| Some((datatype, parts))).ok_or_else(|| {
            let message = format!("not all of these are `{datatype}`");
            ExpressionError::new(message, span.clone())
        })
    }
}
