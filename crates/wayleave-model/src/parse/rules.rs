//! Rules between the entries of a mapping.

mod capability;
mod computed;
mod field;
mod mask;
mod relation;
mod stream;

use std::collections::BTreeSet;
use std::ops::Range;

use super::UnreadableEntries;
use crate::mapping::{Field, Mapping, Spanned, Stream};
use crate::names::NameKind;
use crate::nearest::nearest;
use crate::problem::{Problem, ProblemCode, quoted};

/// Checks every rule over the whole mapping.
pub(super) fn check(mapping: &Mapping, broken: &UnreadableEntries, source: &str) -> Vec<Problem> {
    let mut rules = Rules {
        mapping,
        broken,
        source,
        problems: Vec::new(),
    };
    rules.dataset();
    rules.connections();
    for stream in &mapping.streams {
        rules.stream(stream);
        for field in &stream.fields {
            rules.field(stream, field);
        }
        for relation in &stream.relations {
            rules.relation(stream, relation);
        }
        for measure in &stream.measures {
            rules.measure(stream, measure);
            rules.measure_of_masked(stream, measure);
        }
        rules.followed_relations(stream);
    }
    for capability in &mapping.capabilities {
        rules.capability(capability);
    }
    rules.problems
}

struct Rules<'m> {
    mapping: &'m Mapping,
    broken: &'m UnreadableEntries,
    source: &'m str,
    problems: Vec<Problem>,
}

/// The result of resolving a name.
enum NameLookup<T> {
    /// The entry exists.
    Found(T),
    /// The entry exists but could not be read, or the name itself was rejected.
    Unclear,
    /// There is no such entry.
    Missing,
}

impl<'m> Rules<'m> {
    fn report(&mut self, path: &str, span: &Range<usize>, problem: Problem) {
        self.problems.push(problem.path(path).at(span.clone()));
    }

    fn dataset(&mut self) {
        let dataset = &self.mapping.dataset;
        if let Some(schema) = &dataset.schema
            && !dataset.kind.has_schemas()
        {
            let message = format!("a `{}` store has no schemas", dataset.kind);
            let problem = Problem::new(ProblemCode::NeedlessKey, message).hint("remove `schema`");
            self.report("dataset.schema", &schema.span, problem);
        }
    }

    fn connections(&mut self) {
        let mapping = self.mapping;
        for repeated in repeated(mapping.connections.iter().map(|connection| &connection.id)) {
            let message = format!("two connections are called {}", quoted(repeated));
            let problem = Problem::new(ProblemCode::DuplicateName, message)
                .hint("give each connection an id of its own");
            self.report("connections", &repeated.span, problem);
        }
    }

    fn stream_called(&self, name: &str) -> NameLookup<&'m Stream> {
        match self.mapping.stream(name) {
            Some(stream) => NameLookup::Found(stream),
            None if self.broken.streams.contains(name) => NameLookup::Unclear,
            None if !NameKind::Stream.accepts(name) => NameLookup::Unclear,
            None => NameLookup::Missing,
        }
    }

    fn field_called(&self, stream: &'m Stream, name: &str) -> NameLookup<&'m Field> {
        let broken = || (stream.name.value.clone(), name.to_owned());
        match stream.field(name) {
            Some(field) => NameLookup::Found(field),
            None if self.broken.fields.contains(&broken()) => NameLookup::Unclear,
            None if !NameKind::Field.accepts(name) => NameLookup::Unclear,
            None => NameLookup::Missing,
        }
    }

    /// Resolves a stream by name, and reports if there is none.
    fn find_stream(&mut self, name: &Spanned<String>, path: &str) -> Option<&'m Stream> {
        match self.stream_called(name) {
            NameLookup::Found(stream) => Some(stream),
            NameLookup::Unclear => None,
            NameLookup::Missing => {
                let streams = self
                    .mapping
                    .streams
                    .iter()
                    .map(|stream| stream.name.as_str());
                let hint = near(name, streams)
                    .unwrap_or_else(|| "map that stream, or remove this".to_owned());
                let message = format!("stream {} is not mapped", quoted(name));
                let problem = Problem::new(ProblemCode::UnknownStream, message).hint(hint);
                self.report(path, &name.span, problem);
                None
            }
        }
    }

    /// Resolves a field by name, and reports if there is none.
    fn find_field(
        &mut self,
        stream: &'m Stream,
        name: &Spanned<String>,
        path: &str,
    ) -> Option<&'m Field> {
        match self.field_called(stream, name) {
            NameLookup::Found(field) => Some(field),
            NameLookup::Unclear => None,
            NameLookup::Missing => {
                let by_column = stream.field_of_column(name);
                let hint = match by_column {
                    Some(field) => Some(format!(
                        "`{name}` is a column; its field is called `{}`",
                        field.name
                    )),
                    None => near(name, stream.fields.iter().map(|field| field.name.as_str())),
                };
                let message = format!("stream `{}` has no field {}", stream.name, quoted(name));
                let mut problem = Problem::new(ProblemCode::UnknownField, message);
                problem.hint = hint;
                self.report(path, &name.span, problem);
                None
            }
        }
    }
}

/// A hint that suggests the name probably meant.
fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(name, names).map(|meant| format!("did you mean `{meant}`?"))
}

/// The second and later of equal values.
fn repeated<'a>(values: impl Iterator<Item = &'a Spanned<String>>) -> Vec<&'a Spanned<String>> {
    repeated_by(values, |value| value.value.clone())
}

/// The second and later of values that are equal under `as_key`.
fn repeated_by<'a>(
    values: impl Iterator<Item = &'a Spanned<String>>,
    as_key: impl Fn(&Spanned<String>) -> String,
) -> Vec<&'a Spanned<String>> {
    let mut seen = BTreeSet::new();
    values.filter(|value| !seen.insert(as_key(value))).collect()
}
