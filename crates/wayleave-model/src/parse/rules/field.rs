//! Rules of a field: constraints that fit its datatype and one another.

use std::fmt::Display;

use super::super::value;
use super::Rules;
use crate::mapping::{Datatype, ExactNumber, Field, Scalar, Spanned, Stream};
use crate::problem::{Problem, ProblemCode, quoted};

impl<'m> Rules<'m> {
    pub(super) fn field(&mut self, stream: &'m Stream, field: &'m Field) {
        let path = format!("streams.{}.fields.{}", stream.name, field.name);
        self.computed(stream, field, &path);
        self.constraints_fit(field, &path);
        self.whole_bounds(field, &path);
        self.range(
            &path,
            "min_length",
            field.min_length.as_ref(),
            field.max_length.as_ref(),
        );
        self.range(
            &path,
            "min_value",
            field.min_value.as_ref(),
            field.max_value.as_ref(),
        );
        if field.datatype.can_be_listed() {
            self.listed_values(field, &path);
        }
        self.uses(field, &path);
        self.mask(stream, field, &path);
    }

    fn constraints_fit(&mut self, field: &'m Field, path: &str) {
        let datatype = field.datatype.value;
        let text = "`string` and `iri`";
        let numeric = "`integer`, `decimal` and `number`";
        let listed = "`string`, `iri`, `integer` and `decimal`";
        let one_of = (!field.one_of.is_empty()).then_some(&field.one_of.span);
        let constraints = [
            (
                "pattern",
                field.pattern.as_ref().map(|c| &c.span),
                datatype.is_text(),
                text,
            ),
            (
                "min_length",
                field.min_length.as_ref().map(|c| &c.span),
                datatype.is_text(),
                text,
            ),
            (
                "max_length",
                field.max_length.as_ref().map(|c| &c.span),
                datatype.is_text(),
                text,
            ),
            (
                "min_value",
                field.min_value.as_ref().map(|c| &c.span),
                datatype.is_numeric(),
                numeric,
            ),
            (
                "max_value",
                field.max_value.as_ref().map(|c| &c.span),
                datatype.is_numeric(),
                numeric,
            ),
            ("one_of", one_of, datatype.can_be_listed(), listed),
        ];
        for (name, span, fits, suits) in constraints {
            if let Some(span) = span
                && !fits
            {
                let message = format!("`{name}` does not apply to a `{datatype}` field");
                let problem = Problem::new(ProblemCode::UnfitConstraint, message)
                    .hint(format!("`{name}` is for {suits} fields"));
                self.report(&format!("{path}.{name}"), span, problem);
            }
        }
    }

    fn whole_bounds(&mut self, field: &'m Field, path: &str) {
        if field.datatype.value != Datatype::Integer {
            return;
        }
        for (name, bound) in [
            ("min_value", &field.min_value),
            ("max_value", &field.max_value),
        ] {
            if let Some(bound) = bound
                && !bound.is_whole()
            {
                let message = format!("`{name}` of an `integer` field must be a whole number");
                let problem = Problem::new(ProblemCode::InvalidNumber, message);
                self.report(&format!("{path}.{name}"), &bound.span, problem);
            }
        }
    }

    fn range<T: Ord + Display>(
        &mut self,
        path: &str,
        name: &str,
        least: Option<&Spanned<T>>,
        greatest: Option<&Spanned<T>>,
    ) {
        if let (Some(least), Some(greatest)) = (least, greatest)
            && least.value > greatest.value
        {
            let message = format!("no value lies between {least} and {greatest}");
            let problem =
                Problem::new(ProblemCode::EmptyRange, message).hint("swap the two bounds");
            self.report(&format!("{path}.{name}"), &least.span, problem);
        }
    }

    fn listed_values(&mut self, field: &'m Field, path: &str) {
        let pattern = field
            .pattern
            .as_ref()
            .and_then(|pattern| value::compile(pattern).ok());
        for listed in &field.one_of.value {
            let wrong = match (&listed.value, field.datatype.value) {
                (Scalar::Text(text), Datatype::String | Datatype::Iri) => {
                    text_problem(field, pattern.as_ref(), text)
                }
                (Scalar::Number(number), Datatype::Integer) if !number.is_whole() => {
                    Some("it is not a whole number".to_owned())
                }
                (Scalar::Number(number), Datatype::Integer | Datatype::Decimal) => {
                    number_problem(field, number)
                }
                _ => Some(format!("it is not of datatype `{}`", field.datatype)),
            };
            if let Some(wrong) = wrong {
                let message = format!(
                    "{} can never be a value: {wrong}",
                    quoted(&listed.to_string())
                );
                let problem = Problem::new(ProblemCode::UnfitValue, message);
                self.report(&format!("{path}.one_of"), &listed.span, problem);
            }
        }
    }

    fn uses(&mut self, field: &'m Field, path: &str) {
        let many = if field.many.value { "many " } else { "" };
        let what = format!("a field of {many}`{}`", field.datatype);
        for (name, flag) in [("filter", &field.filter), ("sort", &field.sort)] {
            if flag.value && !field.is_scalar() {
                let message = format!("{what} cannot be used to {name}");
                let problem = Problem::new(ProblemCode::UnfitConstraint, message)
                    .hint(format!("remove `{name}`"));
                self.report(&format!("{path}.{name}"), &flag.span, problem);
            }
        }
        let possible = Field::default_aggregate(field.datatype.value, field.many.value);
        for op in field.aggregate.iter().filter(|op| !possible.contains(op)) {
            let message = format!("{what} cannot be aggregated by `{op}`");
            let words: Vec<_> = possible.iter().map(|op| format!("`{op}`")).collect();
            let hint = if words.is_empty() {
                "remove `aggregate`".to_owned()
            } else {
                format!("possible here: {}", words.join(", "))
            };
            let problem = Problem::new(ProblemCode::UnfitAggregate, message).hint(hint);
            self.report(&format!("{path}.aggregate"), &field.aggregate.span, problem);
        }
    }
}

/// Why a text breaks the field's other constraints.
fn text_problem(field: &Field, pattern: Option<&regex::Regex>, text: &str) -> Option<String> {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    if field.datatype.value == Datatype::Iri && !value::is_iri(text) {
        Some("it is not an absolute IRI".to_owned())
    } else if field
        .min_length
        .as_ref()
        .is_some_and(|least| length < least.value)
    {
        Some("it is shorter than `min_length`".to_owned())
    } else if field
        .max_length
        .as_ref()
        .is_some_and(|greatest| length > greatest.value)
    {
        Some("it is longer than `max_length`".to_owned())
    } else if pattern.is_some_and(|pattern| !pattern.is_match(text)) {
        Some("it does not match `pattern`".to_owned())
    } else {
        None
    }
}

/// Why a number breaks the field's bounds.
fn number_problem(field: &Field, number: &ExactNumber) -> Option<String> {
    if field
        .min_value
        .as_ref()
        .is_some_and(|least| *number < least.value)
    {
        Some("it is below `min_value`".to_owned())
    } else if field
        .max_value
        .as_ref()
        .is_some_and(|greatest| *number > greatest.value)
    {
        Some("it is above `max_value`".to_owned())
    } else {
        None
    }
}
