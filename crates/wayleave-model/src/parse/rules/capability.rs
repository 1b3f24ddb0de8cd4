//! Rules of a capability: it writes only writable fields, and all required ones.

use super::Rules;
use std::sync::Arc;

use crate::mapping::{Action, Capability, Field, Stream};
use crate::problem::{Problem, ProblemCode, shown};

impl<'m> Rules<'m> {
    pub(super) fn capability(&mut self, capability: &'m Capability) {
        let path = format!("capabilities.{}", capability.name);
        self.write_source(capability, &path);
        let stream = self.find_stream(&capability.stream, &format!("{path}.stream"));
        let path = format!("{path}.fields");
        match capability.action.value {
            Action::Delete => self.takes_nothing(capability, &path),
            Action::Create | Action::Update if capability.fields.is_empty() => {
                let message = format!("capability `{}` writes no field", capability.name);
                let problem = Problem::new(ProblemCode::EmptyList, message)
                    .hint("list the fields a caller may give in `fields`");
                self.report(&path, &capability.name.span, problem);
            }
            Action::Create | Action::Update => {
                if let Some(stream) = stream {
                    self.writable(capability, stream, &path);
                }
            }
        }
        if capability.action.value == Action::Create
            && let Some(stream) = stream
        {
            self.complete(capability, stream, &path);
        }
    }

    fn write_source(&mut self, capability: &'m Capability, path: &str) {
        let source = &capability.source;
        if self
            .mapping
            .connections
            .iter()
            .any(|connection| connection.source == *source)
        {
            let message = format!("source {} is also read from", shown(source));
            let problem = Problem::new(ProblemCode::SharedSource, message)
                .hint("declare a second source for writes, so that reads stay read-only");
            self.report(&format!("{path}.source"), &source.span, problem);
        }
    }

    fn takes_nothing(&mut self, capability: &'m Capability, path: &str) {
        if let Some(first) = capability.fields.first() {
            let problem = Problem::new(
                ProblemCode::NeedlessKey,
                format!(
                    "`{}` deletes a record by its key and takes no field",
                    capability.name
                ),
            )
            .hint("remove `fields`");
            self.report(path, &first.span, problem);
        }
    }

    fn writable(&mut self, capability: &'m Capability, stream: &'m Stream, path: &str) {
        for name in &capability.fields {
            let Some(field) = self.find_field(stream, name, path) else {
                continue;
            };
            let in_key = stream.key.contains(&field.name);
            let why = if field.compute().is_some() {
                "it is computed"
            } else if field.generated.value {
                "the store fills it in"
            } else if in_key && capability.action.value == Action::Update {
                "it is part of the key, and an update finds its record by the key"
            } else {
                continue;
            };
            let message = format!("`{}` cannot write `{name}`: {why}", capability.name);
            let problem = Problem::new(ProblemCode::UnwritableField, message)
                .hint(format!("remove `{name}` from `fields`"));
            self.report(path, &name.span, problem);
        }
    }

    fn complete(&mut self, capability: &'m Capability, stream: &'m Stream, path: &str) {
        let given = |field: &Field| capability.fields.contains(&field.name);
        let must = |field: &&Arc<Field>| field.required.value && !field.generated.value;
        for field in stream
            .fields
            .iter()
            .filter(must)
            .filter(|field| !given(field))
        {
            let message = format!(
                "`{}` creates records of `{}` without `{}`, which is required",
                capability.name, stream.name, field.name
            );
            let problem = Problem::new(ProblemCode::MissingRequired, message).hint(format!(
                "add `{}` to `fields`, or say `generated = true` where the store fills it in",
                field.name
            ));
            self.report(path, &capability.name.span, problem);
        }
    }
}
