//! Rules of required masks: a field that every grant masks is not in the key, and is not searched,
//! computed with or written.

use super::Rules;
use crate::expression::{Formula, Path};
use crate::mapping::{Capability, Field, Mapping, NamedMeasure, Stream};
use crate::problem::{Problem, ProblemCode};

impl<'m> Rules<'m> {
    /// Checks that a required mask applies to its field.
    pub(super) fn mask(&mut self, stream: &'m Stream, field: &'m Field, path: &str) {
        self.computed_from_masked(stream, field, path);
        let Some(mask) = &field.mask else {
            return;
        };
        let path = format!("{path}.mask");
        if !mask.fits(field.datatype.value) {
            let message = format!("`{mask}` does not apply to a `{}` field", field.datatype);
            let problem = Problem::new(ProblemCode::UnfitConstraint, message)
                .hint(format!("`{mask}` is for {}", mask.suits()));
            self.report(&path, &mask.span, problem);
        }
        let named = |names: &[crate::mapping::Spanned<String>]| names.contains(&field.name);
        let (why, hint) = if named(&stream.key) {
            (
                "the key: ids of records hold it",
                "remove the mask, or choose another key",
            )
        } else if named(&stream.search) {
            (
                "`search`, and nobody can search it",
                "remove it from `search`, or remove the mask",
            )
        } else {
            return;
        };
        let message = format!(
            "`{}` is masked for every grant, and is in {why}",
            field.name
        );
        let problem = Problem::new(ProblemCode::UnfitField, message).hint(hint);
        self.report(&path, &mask.span, problem);
    }

    /// Refuses a field computed from one that is masked for everyone: nobody would see it.
    fn computed_from_masked(&mut self, stream: &'m Stream, field: &'m Field, path: &str) {
        let Some(written) = field.compute() else {
            return;
        };
        let Ok(Some(formula)) = self.mapping.formula(stream, field) else {
            return;
        };
        let masked = masked_leaf(self.mapping, stream, &formula);
        let masked = masked.or_else(|| masked_word(stream, field, written.text()));
        if let Some(masked) = masked {
            let problem = from_masked(&format!("`{}`", field.name), &masked);
            self.report(&format!("{path}.compute"), &written.span, problem);
        }
    }

    /// Refuses a measure of a field that is masked for everyone: nobody would see it.
    pub(super) fn measure_of_masked(&mut self, stream: &'m Stream, measure: &'m NamedMeasure) {
        let Ok(formula) = self.mapping.measure_formula(stream, measure) else {
            return;
        };
        let mut masked = None;
        formula.for_each_leaf(&mut |leaf| {
            if let Some(over) = &leaf.over {
                let found = masked_leaf(self.mapping, stream, over);
                masked = masked.take().or(found);
            }
        });
        if let Some(masked) = masked {
            let path = format!("streams.{}.measures.{}", stream.name, measure.name);
            let problem = from_masked(&format!("measure `{}`", measure.name), &masked);
            self.report(&path, &measure.expression.span, problem);
        }
    }

    /// Refuses a capability that writes a masked field: its refusals would reveal values.
    pub(super) fn writes_masked(
        &mut self,
        capability: &'m Capability,
        stream: &'m Stream,
        path: &str,
    ) {
        for name in &capability.fields {
            if stream.field(name).is_some_and(|it| it.mask.is_some()) {
                let message = format!("`{name}` is masked for every grant, and cannot be written");
                let problem = Problem::new(ProblemCode::UnwritableField, message)
                    .hint("remove it from `fields`, or remove its mask");
                self.report(path, &name.span, problem);
            }
        }
    }
}

fn from_masked(what: &str, masked: &str) -> Problem {
    let message = format!("{what} is computed from `{masked}`, which is masked for every grant");
    let hint = "nobody would see it: remove it, or the mask";
    Problem::new(ProblemCode::UnfitField, message).hint(hint)
}

/// The first masked field that a formula reads.
fn masked_leaf(mapping: &Mapping, stream: &Stream, formula: &Formula<Path>) -> Option<String> {
    let mut found = None;
    formula.for_each_leaf(&mut |path: &Path| {
        let Some((last, hops)) = path.0.split_last() else {
            return;
        };
        let mut end = Some(stream);
        for hop in hops {
            let relation = end.and_then(|it| it.relations.iter().find(|it| *it.name == *hop));
            end = relation.and_then(|it| mapping.stream(&it.to));
        }
        let field = end.and_then(|it| it.field(last));
        if found.is_none() && field.is_some_and(|it| it.mask.is_some()) {
            found = Some(path.0.join("."));
        }
    });
    found
}

/// The first masked computed field of the stream that an expression names.
fn masked_word(stream: &Stream, field: &Field, written: &str) -> Option<String> {
    let mut words = written.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let masked = |word: &&str| {
        let named = stream.field(word).filter(|it| it.name != field.name);
        named.is_some_and(|it| it.mask.is_some() && it.compute().is_some())
    };
    words.find(masked).map(str::to_owned)
}
