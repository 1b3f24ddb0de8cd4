//! Rules of a stream: names, columns, and the roles of its fields.

use super::{Rules, repeated, repeated_by};
use crate::mapping::{Datatype, Field, SourceKind, Spanned, Stream};
use crate::problem::{Problem, ProblemCode, quoted};

/// A role of a field in its stream.
struct FieldRole {
    key: &'static str,
    /// Whether a computed field can play it.
    computed: bool,
    fits: fn(&Field) -> bool,
    needs: &'static str,
}

const KEY: FieldRole = FieldRole {
    key: "key",
    computed: false,
    fits: |field| field.datatype.can_be_key() && !field.many.value,
    needs: "a key field holds one value, of any datatype but `number` and `json`",
};
const TITLE: FieldRole = FieldRole {
    key: "title",
    computed: true,
    fits: Field::is_scalar,
    needs: "a title holds one value, of any datatype but `json`",
};
const EVENT_TIME: FieldRole = FieldRole {
    key: "event_time",
    computed: false,
    fits: |field| {
        matches!(field.datatype.value, Datatype::Date | Datatype::Datetime) && !field.many.value
    },
    needs: "`event_time` is one `date` or `datetime`",
};
const UPDATED: FieldRole = FieldRole {
    key: "updated",
    computed: false,
    fits: |field| {
        matches!(field.datatype.value, Datatype::Datetime | Datatype::Integer) && !field.many.value
    },
    needs: "`updated` is one `datetime` or `integer`",
};
const DELETED: FieldRole = FieldRole {
    key: "deleted",
    computed: false,
    fits: |field| {
        matches!(
            field.datatype.value,
            Datatype::Date | Datatype::Datetime | Datatype::Boolean
        ) && !field.many.value
    },
    needs: "`deleted` is one `date`, `datetime` or `boolean`",
};
const SEARCH: FieldRole = FieldRole {
    key: "search",
    computed: true,
    fits: |field| field.datatype.value == Datatype::String,
    needs: "search reads `string` fields",
};
const UNIQUE: FieldRole = FieldRole {
    key: "unique",
    computed: false,
    fits: |field| field.datatype.can_be_key() && !field.many.value,
    needs: "a field of `unique` holds one value, of any datatype but `number` and `json`",
};

impl<'m> Rules<'m> {
    pub(super) fn stream(&mut self, stream: &'m Stream) {
        let path = format!("streams.{}", stream.name);
        self.table(stream, &path);
        self.distinct(stream, &path);
        for (part, name) in [
            (&TITLE, &stream.title),
            (&EVENT_TIME, &stream.event_time),
            (&UPDATED, &stream.updated),
            (&DELETED, &stream.deleted),
        ] {
            if let Some(name) = name {
                self.part(stream, &path, part, name);
            }
        }
        for name in &stream.key {
            self.part(stream, &path, &KEY, name);
        }
        for name in &stream.search {
            self.part(stream, &path, &SEARCH, name);
        }
        for name in stream.unique.iter().flat_map(|set| &set.value) {
            self.part(stream, &path, &UNIQUE, name);
        }
    }

    fn part(
        &mut self,
        stream: &'m Stream,
        path: &str,
        part: &FieldRole,
        name: &'m Spanned<String>,
    ) {
        let path = format!("{path}.{}", part.key);
        let Some(field) = self.find_field(stream, name, &path) else {
            return;
        };
        if field.compute().is_some() && !part.computed {
            let message = format!("`{name}` is computed, and cannot be in `{}`", part.key);
            let problem = Problem::new(ProblemCode::UnfitField, message)
                .hint("name a field that is read from a column");
            self.report(&path, &name.span, problem);
        } else if !(part.fits)(field) {
            let many = if field.many.value { "many " } else { "" };
            let message = format!(
                "`{name}` ({many}{}) cannot be in `{}`",
                field.datatype, part.key
            );
            let problem = Problem::new(ProblemCode::UnfitField, message).hint(part.needs);
            self.report(&path, &name.span, problem);
        }
    }

    /// Checks that a file set stays inside its source's folder.
    fn table(&mut self, stream: &'m Stream, path: &str) {
        let table = &stream.table;
        let outside = table.starts_with('/')
            || table.contains(['\\', ':'])
            || table.split('/').any(|part| part == "..");
        if self.mapping.dataset.kind.value == SourceKind::Files && outside {
            let message = format!("{} leads out of the source's folder", quoted(table));
            let problem = Problem::new(ProblemCode::InvalidText, message)
                .hint("write a path inside the folder, with `/`, such as `people/*.csv`");
            self.report(&format!("{path}.table"), &table.span, problem);
        }
    }

    fn distinct(&mut self, stream: &'m Stream, path: &str) {
        let names = stream
            .fields
            .iter()
            .map(|field| &field.name)
            .chain(stream.relations.iter().map(|relation| &relation.name))
            .chain(stream.measures.iter().map(|measure| &measure.name));
        // A person and a model both misread names that differ only in case.
        for name in repeated_by(names, |name| name.to_ascii_lowercase()) {
            let message = format!(
                "stream `{}` has another field, relation or measure called {}",
                stream.name,
                quoted(name)
            );
            let problem = Problem::new(ProblemCode::DuplicateName, message)
                .hint("names of fields, relations and measures differ in more than case");
            self.report(path, &name.span, problem);
        }
        for column in repeated(stream.fields.iter().filter_map(|field| field.column())) {
            let message = format!("two fields read column {}", quoted(column));
            let problem =
                Problem::new(ProblemCode::DuplicateValue, message).hint("keep one of them");
            self.report(path, &column.span, problem);
        }
        let base = &self.mapping.dataset.iri;
        let iri = |predicate: &Spanned<String>| {
            if predicate.contains(':') {
                predicate.value.clone()
            } else {
                format!("{base}{predicate}")
            }
        };
        let predicates = repeated_by(stream.fields.iter().map(|field| &field.predicate), iri);
        for predicate in predicates {
            let message = format!("two fields share predicate {}", quoted(predicate));
            let problem = Problem::new(ProblemCode::DuplicateValue, message)
                .hint("a record says each predicate once; give each field its own");
            self.report(path, &predicate.span, problem);
        }
    }
}
