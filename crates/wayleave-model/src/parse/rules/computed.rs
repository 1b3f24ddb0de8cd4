//! Rules of what is computed: expressions that can be typed, and keys that fit them.

use super::super::value::within_text;
use super::Rules;
use crate::expression::ExpressionError;
use crate::mapping::{AggregateOp, Expression, Field, NamedMeasure, Spanned, Stream};
use crate::problem::{Problem, ProblemCode};

impl<'m> Rules<'m> {
    /// Holds a computed field to its expression.
    pub(super) fn computed(&mut self, stream: &'m Stream, field: &'m Field, path: &str) {
        let Some(expression) = field.compute() else {
            return;
        };
        for (key, flag) in [
            ("required", &field.required),
            ("many", &field.many),
            ("generated", &field.generated),
        ] {
            if flag.value {
                let message = format!("`{key}` is said of columns, and this field is computed");
                let problem =
                    Problem::new(ProblemCode::NeedlessKey, message).hint(format!("remove `{key}`"));
                self.report(&format!("{path}.{key}"), &flag.span, problem);
            }
        }
        if let Err(error) = self.mapping.formula(stream, field) {
            self.expression(&format!("{path}.compute"), expression, error);
        }
    }

    /// Holds a measure to its expression.
    pub(super) fn measure(&mut self, stream: &'m Stream, measure: &'m NamedMeasure) {
        let path = format!("streams.{}.measures.{}", stream.name, measure.name);
        if AggregateOp::from_word(&measure.name).is_some() {
            let message = format!("`{}` is an aggregate already", measure.name);
            let problem =
                Problem::new(ProblemCode::ReservedName, message).hint("choose another name");
            self.report(&path, &measure.name.span, problem);
        }
        if let Err(error) = self.mapping.measure_formula(stream, measure) {
            self.expression(&path, &measure.expression, error);
        }
    }

    /// Reports what is wrong with an expression, unless it may come from an entry that is wrong
    /// itself.
    fn expression(&mut self, path: &str, written: &Spanned<Expression>, error: ExpressionError) {
        let broken = self.broken;
        let mut relations = self.mapping.streams.iter().flat_map(|it| &it.relations);
        if !broken.streams.is_empty()
            || !broken.fields.is_empty()
            || !broken.relations.is_empty()
            || relations.any(|it| self.mapping.stream(&it.to).is_none())
        {
            return;
        }
        let span = within_text(self.source, written.text(), &written.span, &error.span);
        let mut problem = Problem::new(ProblemCode::InvalidExpression, error.message);
        problem.hint = error.hint;
        self.report(path, &span, problem);
    }
}
