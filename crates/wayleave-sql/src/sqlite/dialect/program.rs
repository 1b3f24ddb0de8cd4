//! Exact arithmetic as one call of a SQL function of ours.
//!
//! SQLite has no exact decimals, so a formula of them is computed by a program: words in reverse
//! Polish notation, which a function parses once per statement. `0`, `1`, … push an argument,
//! `=12.5` a constant; `+`, `-`, `*` and `/` take two values; `r2` rounds one.

use wayleave_model::expression::{Arithmetic, Formula, Literal, Node};
use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::Column;
use wayleave_plan::value::Exact;
use wayleave_store::StoreError;

use super::expression::call;
use super::functions;
use crate::compile::sql::{Bind, Sql};

/// A program under construction.
#[derive(Default)]
pub(super) struct Program {
    words: Vec<String>,
    arguments: Vec<Sql>,
}

impl Program {
    /// Adds a formula; `part` compiles operands that are not exact arithmetic.
    pub(super) fn add(
        &mut self,
        formula: &Formula<Column>,
        part: &mut dyn FnMut(&Formula<Column>) -> Result<Sql, StoreError>,
    ) -> Result<(), StoreError> {
        match &formula.node {
            Node::Literal(Literal::Number(number)) => self.words.push(format!("={number}")),
            Node::Arithmetic { op, left, right } => {
                self.add(left, part)?;
                self.add(right, part)?;
                self.words.push(op.symbol().to_owned());
            }
            Node::Round { value, digits } => {
                self.add(value, part)?;
                self.words.push(format!("r{digits}"));
            }
            // An integer is a decimal already.
            Node::Convert(inner) if inner.datatype == Datatype::Integer => self.add(inner, part)?,
            _ => {
                let argument = part(formula)?;
                let known = self.arguments.iter().position(|it| *it == argument);
                let place = known.unwrap_or_else(|| {
                    self.arguments.push(argument);
                    self.arguments.len() - 1
                });
                self.words.push(place.to_string());
            }
        }
        Ok(())
    }

    /// The call that runs it.
    pub(super) fn call(self) -> Sql {
        let program = Sql::bind(Bind::Text(self.words.join(" ")));
        let arguments = std::iter::once(program).chain(self.arguments);
        call(functions::COMPUTE, Sql::joined(arguments, ", "))
    }
}

/// A parsed program.
#[derive(Debug)]
pub(crate) struct ExactProgram(Vec<Step>);

#[derive(Debug)]
enum Step {
    Argument(usize),
    Constant(Exact),
    Arithmetic(Arithmetic),
    Round(u32),
}

impl ExactProgram {
    /// Parses a program; `None` if it is not one.
    pub(crate) fn read(program: &str) -> Option<Self> {
        let step = |word: &str| {
            Some(match word {
                "+" => Step::Arithmetic(Arithmetic::Add),
                "-" => Step::Arithmetic(Arithmetic::Subtract),
                "*" => Step::Arithmetic(Arithmetic::Multiply),
                "/" => Step::Arithmetic(Arithmetic::Divide),
                _ => match (word.strip_prefix('='), word.strip_prefix('r')) {
                    (Some(constant), _) => Step::Constant(constant.parse().ok()?),
                    (_, Some(digits)) => Step::Round(digits.parse().ok()?),
                    _ => Step::Argument(word.parse().ok()?),
                },
            })
        };
        let steps: Option<Vec<Step>> = program.split(' ').map(step).collect();
        steps.map(Self)
    }

    /// Runs the program. The result is `None` if an argument is NULL or a divisor is zero; an error
    /// comes from an argument.
    pub(crate) fn run<E>(
        &self,
        argument: impl Fn(usize) -> Result<Option<Exact>, E>,
    ) -> Result<Option<Exact>, E> {
        let mut stack: Vec<Option<Exact>> = Vec::with_capacity(self.0.len());
        for step in &self.0 {
            let value = match step {
                Step::Argument(place) => argument(*place)?,
                Step::Constant(constant) => Some(constant.clone()),
                Step::Round(digits) => stack.pop().flatten().map(|it| it.round(*digits)),
                Step::Arithmetic(op) => {
                    let right = stack.pop().flatten();
                    let left = stack.pop().flatten();
                    match (left, right) {
                        (Some(left), Some(right)) => match op {
                            Arithmetic::Add => Some(left.add(&right)),
                            Arithmetic::Subtract => Some(left.subtract(&right)),
                            Arithmetic::Multiply => Some(left.multiply(&right)),
                            Arithmetic::Divide => left.divide(&right),
                        },
                        _ => None,
                    }
                }
            };
            stack.push(value);
        }
        Ok(stack.pop().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_run_as_it_is_written() {
        let run = |program: &str, given: &[Option<&str>]| {
            let steps = ExactProgram::read(program).unwrap();
            let argument = |place: usize| {
                let text = given.get(place).copied().flatten();
                Ok::<_, ()>(text.map(|text| text.parse().unwrap()))
            };
            steps.run(argument).unwrap().map(|it| it.to_string())
        };
        let given = [Some("2.50"), Some("4"), None];
        assert_eq!(run("0 1 * =1 -", &given).as_deref(), Some("9"));
        assert_eq!(run("0 =3 / r2", &given).as_deref(), Some("0.83"));
        assert_eq!(run("0 2 +", &given), None);
        assert_eq!(run("0 =0 /", &given), None);
        assert!(ExactProgram::read("0 ? 1").is_none());
    }
}
