//! Rules of computed fields and measures: expressions that can be typed, and keys that apply to
//! them.

use std::collections::BTreeSet;

use super::super::value::within_text;
use super::Rules;
use crate::expression::{ExpressionError, Formula, MAX_FOLLOWED_RELATIONS, Path};
use crate::mapping::{AggregateOp, Expression, Field, NamedMeasure, Spanned, Stream};
use crate::problem::{Problem, ProblemCode};

impl<'m> Rules<'m> {
    /// Checks a computed field and its expression.
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
                let message = format!("`{key}` applies to columns, and this field is computed");
                let problem =
                    Problem::new(ProblemCode::NeedlessKey, message).hint(format!("remove `{key}`"));
                self.report(&format!("{path}.{key}"), &flag.span, problem);
            }
        }
        if let Err(error) = self.mapping.formula(stream, field) {
            self.expression(&format!("{path}.compute"), expression, error);
        }
    }

    /// Checks a measure's name and expression.
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

    /// Limits the relations that a stream's computed fields and measures follow, so that each of
    /// them can be read, and all of the fields at once.
    pub(super) fn followed_relations(&mut self, stream: &'m Stream) {
        let mut followed: BTreeSet<Vec<String>> = BTreeSet::new();
        for field in &stream.fields {
            let Some(written) = field.compute() else {
                continue;
            };
            if let Ok(Some(formula)) = self.mapping.formula(stream, field) {
                follow(&formula, &mut followed);
            }
            if followed.len() > MAX_FOLLOWED_RELATIONS {
                let path = format!("streams.{}.fields.{}.compute", stream.name, field.name);
                return self.follows_too_many(stream, &path, written);
            }
        }
        for measure in &stream.measures {
            if let Ok(formula) = self.mapping.measure_formula(stream, measure) {
                formula.for_each_leaf(&mut |leaf| {
                    if let Some(over) = &leaf.over {
                        follow(over, &mut followed);
                    }
                });
            }
            if followed.len() > MAX_FOLLOWED_RELATIONS {
                let path = format!("streams.{}.measures.{}", stream.name, measure.name);
                return self.follows_too_many(stream, &path, &measure.expression);
            }
        }
    }

    fn follows_too_many(&mut self, stream: &Stream, path: &str, written: &Spanned<Expression>) {
        let message = format!(
            "with this, what is computed in `{}` follows more than {MAX_FOLLOWED_RELATIONS} relations",
            stream.name
        );
        let error = ExpressionError::new(message, written.syntax().span.clone())
            .hint("compute less from other streams");
        self.expression(path, written, error);
    }

    /// Reports an error in an expression, unless a broken entry may have caused it.
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

/// Adds the relations that a formula follows, each by the path to it.
fn follow(formula: &Formula<Path>, followed: &mut BTreeSet<Vec<String>>) {
    formula.for_each_leaf(&mut |path: &Path| {
        for hops in 1..path.0.len() {
            followed.extend(path.0.get(..hops).map(<[String]>::to_vec));
        }
    });
}
