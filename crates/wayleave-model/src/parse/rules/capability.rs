//! Rules of a capability: it writes only writable fields, and all required ones.

use super::{Rules, near};
use std::sync::Arc;

use crate::mapping::{Action, Capability, Field, Stream, WRITE_OPTIONS};
use crate::names::NameKind;
use crate::problem::{Problem, ProblemCode, quoted};

/// Maximum length of a tool's name that every known host accepts, in characters.
const MAX_TOOL_NAME: usize = 64;

impl<'m> Rules<'m> {
    pub(super) fn capability(&mut self, capability: &'m Capability) {
        let path = format!("capabilities.{}", capability.name);
        self.write_source(capability, &path);
        self.tool_name(capability, &path);
        self.write_connection(capability, &path);
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
                    self.writes_masked(capability, stream, &path);
                }
            }
        }
        let Some(stream) = stream else { return };
        if capability.action.value == Action::Create {
            self.complete(capability, stream, &path);
        } else if let Some(taken) = stream
            .key
            .iter()
            .find(|it| WRITE_OPTIONS.contains(&it.as_str()))
        {
            let message = format!(
                "`{}` cannot find its record by `{taken}`: an argument of every write has that name",
                capability.name
            );
            let problem = Problem::new(ProblemCode::UnwritableField, message)
                .hint("give the field another name");
            self.report(&path, &capability.name.span, problem);
        }
    }

    /// The tool's name must be free, and short enough for every host.
    fn tool_name(&mut self, capability: &'m Capability, path: &str) {
        let tool = capability.tool_name(&self.mapping.dataset);
        let (code, why) = match NameKind::reserved_tool(&tool) {
            Some(why) => (ProblemCode::ReservedName, why),
            None if tool.len() > MAX_TOOL_NAME => {
                (ProblemCode::InvalidName, "hosts take at most 64 characters")
            }
            None => return,
        };
        let message = format!("its tool would be called {}: {why}", quoted(&tool));
        let problem = Problem::new(code, message).hint("give the capability another name");
        self.report(path, &capability.name.span, problem);
    }

    fn write_connection(&mut self, capability: &'m Capability, path: &str) {
        let mapping = self.mapping;
        let ids = mapping.connections.iter().map(|it| it.id.as_str());
        let path = format!("{path}.connection");
        match &capability.connection {
            Some(id) if mapping.connection(id).is_none() && NameKind::Connection.accepts(id) => {
                let message = format!("there is no connection {}", quoted(id));
                let hint = near(id, ids).unwrap_or_else(|| "name one of `[[connections]]`".into());
                let problem = Problem::new(ProblemCode::UnknownConnection, message).hint(hint);
                self.report(&path, &id.span, problem);
            }
            None if mapping.connections.len() > 1 => {
                let message = format!(
                    "capability `{}` does not say which connection it writes to",
                    capability.name
                );
                let named: Vec<String> = ids.map(|id| format!("`{id}`")).collect();
                let hint = format!("add `connection`, one of {}", named.join(", "));
                let problem = Problem::new(ProblemCode::MissingKey, message).hint(hint);
                self.report(&path, &capability.name.span, problem);
            }
            _ => {}
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
            let message = format!("source {} is also read from", quoted(source));
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
            let why = if WRITE_OPTIONS.contains(&name.as_str()) {
                "an argument of every write has that name"
            } else if field.compute().is_some() {
                "it is computed"
            } else if field.generated.value {
                "the store fills it in"
            } else if in_key && capability.action.value == Action::Update {
                "it is part of the key, and an update finds its record by the key"
            } else if capability.action.value == Action::Update
                && self.is_referred_to(stream, field)
            {
                "a relation joins on it, and a change would break references to the record"
            } else {
                continue;
            };
            let message = format!("`{}` cannot write `{name}`: {why}", capability.name);
            let problem = Problem::new(ProblemCode::UnwritableField, message)
                .hint(format!("remove `{name}` from `fields`"));
            self.report(path, &name.span, problem);
        }
    }

    /// Whether a to-one relation, of this stream or another, joins on the field.
    fn is_referred_to(&self, stream: &Stream, field: &Field) -> bool {
        let relations = self.mapping.streams.iter().flat_map(|from| {
            let leads_here = from.relations.iter().filter(|it| it.to == stream.name);
            leads_here.map(move |relation| (from, relation))
        });
        // A reverse relation ends in the referring column, not in the referenced one.
        let mut referring = relations.filter(|(_, it)| self.mapping.is_to_one(it));
        referring.any(|(_, it)| it.on.iter().any(|join| join.field == field.name))
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
