//! Compares a mapping with the catalogue of its live source.
//!
//! Every difference is a problem that names stream, table and column and points at the mapping's
//! entry. Nothing is guessed: a column that looks renamed is reported, never used. This module sees
//! catalogues only, never rows or a store.

mod fits;
mod renamed;
mod streams;
mod writes;

use std::collections::BTreeSet;
use std::ops::Range;

pub use fits::fits;
pub use streams::broken_streams;

use crate::catalogue::{Catalogue, Column, Table, TableKind};
use crate::mapping::{Field, Mapping, Scalar, SourceKind, Spanned, Stream};
use crate::nearest::nearest;
use crate::problem::{Problem, ProblemCode, quoted};

/// All differences between the source and the mapping. The problems carry spans of the mapping's
/// document; [`crate::problem::locate`] adds line numbers.
pub fn drift(mapping: &Mapping, catalogue: &Catalogue) -> Vec<Problem> {
    if let Some(problem) = other_store(mapping, catalogue) {
        return vec![problem];
    }
    let mut problems = Vec::new();
    for stream in &mapping.streams {
        match catalogue.table(&stream.table) {
            Some(table) => {
                let mut drift = StreamDrift {
                    kind: catalogue.kind,
                    stream,
                    table,
                    problems,
                };
                drift.check();
                problems = drift.problems;
            }
            None => problems.push(missing_table(mapping, stream, catalogue)),
        }
    }
    problems.extend(writes::unmapped_references(mapping, catalogue));
    problems
}

/// The column that the missing column of a field was probably renamed to.
pub(crate) fn renamed_column<'t>(
    kind: SourceKind,
    stream: &Stream,
    field: &Field,
    table: &'t Table,
) -> Option<&'t Column> {
    renamed::successor(kind, stream, field, field.column()?, table)
}

/// Reports a source of another kind or schema: nothing else is comparable then.
fn other_store(mapping: &Mapping, catalogue: &Catalogue) -> Option<Problem> {
    let dataset = &mapping.dataset;
    if dataset.kind.value != catalogue.kind {
        let message = format!(
            "the source is a `{}` store, and not `{}`",
            catalogue.kind, dataset.kind
        );
        return Some(
            Problem::new(ProblemCode::KindMismatch, message)
                .path("dataset.kind")
                .at(dataset.kind.span.clone()),
        );
    }
    let (Some(wanted), Some(found)) = (&dataset.schema, &catalogue.schema) else {
        return None;
    };
    if wanted.value == *found {
        return None;
    }
    let message = format!(
        "the source was read in schema {}, and not {}",
        quoted(found),
        quoted(wanted)
    );
    Some(
        Problem::new(ProblemCode::SchemaMismatch, message)
            .path("dataset.schema")
            .at(wanted.span.clone()),
    )
}

fn missing_table(mapping: &Mapping, stream: &Stream, catalogue: &Catalogue) -> Problem {
    let message = format!(
        "the source has no table {}, which stream `{}` reads",
        quoted(&stream.table),
        stream.name
    );
    let mut problem = Problem::new(ProblemCode::MissingTable, message)
        .path(format!("streams.{}.table", stream.name))
        .at(stream.table.span.clone());
    let names = catalogue.tables.iter().map(|table| table.name.as_str());
    let holds_all = |table: &&Table| {
        let free = !mapping
            .streams
            .iter()
            .any(|other| other.table == *table.name);
        let has = |field: &Field| {
            let column = field.column();
            column.is_none_or(|it| table.column(it).is_some())
        };
        // One column proves little: every table may have an `id`.
        free && stream.fields.len() > 1 && stream.fields.iter().all(|field| has(field))
    };
    problem.hint = match nearest(&stream.table, names) {
        Some(near) => Some(format!("did you mean {}?", quoted(near))),
        None => Some(match catalogue.tables.iter().find(holds_all) {
            Some(table) => format!("table {} has all its columns", quoted(&table.name)),
            None => format!(
                "remove stream `{}`; if the table exists, grant the source's user read access to it",
                stream.name
            ),
        }),
    };
    problem
}

struct StreamDrift<'a> {
    kind: SourceKind,
    stream: &'a Stream,
    table: &'a Table,
    problems: Vec<Problem>,
}

impl<'a> StreamDrift<'a> {
    fn check(&mut self) {
        for field in &self.stream.fields {
            let Some(read) = field.column() else {
                continue;
            };
            match self.table.column(read) {
                Some(column) => self.column(field, column),
                None => self.missing_field(field, read),
            }
        }
        for relation in &self.stream.relations {
            for join in &relation.on {
                let reported = self.stream.field_of_column(&join.column).is_some();
                if !reported && self.table.column(&join.column).is_none() {
                    let reader = format!("relation `{}.{}`", self.stream.name, relation.name);
                    let entry = format!("streams.{}.relations.{}", self.stream.name, relation.name);
                    self.missing(&join.column, &reader, &entry, format!("{entry}.on"));
                }
            }
        }
        self.uniqueness();
    }

    fn report(&mut self, path: String, span: &Range<usize>, problem: Problem) {
        self.problems.push(problem.path(path).at(span.clone()));
    }

    fn field_path(&self, field: &Field) -> String {
        format!("streams.{}.fields.{}", self.stream.name, field.name)
    }

    fn missing_field(&mut self, field: &Field, read: &Spanned<String>) {
        let Some(now) = renamed::successor(self.kind, self.stream, field, read, self.table) else {
            let reader = format!("field `{}.{}`", self.stream.name, field.name);
            let entry = self.field_path(field);
            self.missing(read, &reader, &entry, entry.clone());
            return;
        };
        let message = format!(
            "table {} has no column {} any more, and {} looks like it",
            quoted(&self.table.name),
            quoted(read),
            quoted(&now.name),
        );
        let problem = Problem::new(ProblemCode::RenamedColumn, message).hint(format!(
            "if it was renamed, write `column = {}` in `{}`",
            crate::print::text(&now.name),
            self.field_path(field),
        ));
        self.report(self.field_path(field), &read.span, problem);
    }

    /// Reports a missing column, at the path where the entry names it.
    fn missing(&mut self, column: &Spanned<String>, reader: &str, entry: &str, path: String) {
        let message = format!(
            "table {} has no column {}, which {reader} reads",
            quoted(&self.table.name),
            quoted(column)
        );
        let near = nearest(
            column,
            self.table.columns.iter().map(|column| column.name.as_str()),
        );
        let problem = Problem::new(ProblemCode::MissingColumn, message).hint(match near {
            Some(near) => format!("did you mean {}?", quoted(near)),
            None => format!("take out `{entry}`, or name a column that is there"),
        });
        self.report(path, &column.span, problem);
    }

    fn column(&mut self, field: &Field, column: &Column) {
        let path = self.field_path(field);
        let place = format!(
            "column {} of table {}",
            quoted(&column.name),
            quoted(&self.table.name)
        );
        let reads = fits(self.kind, column.datatype, field.datatype.value);
        if !reads || column.many != field.many.value {
            let many = if field.many.value { "many " } else { "" };
            let now = if column.many {
                "holds many values of"
            } else {
                "is"
            };
            let message = format!(
                "{place} {now} {}, which cannot be read as {many}`{}`",
                quoted(&column.native_type),
                field.datatype
            );
            let mut problem = Problem::new(ProblemCode::RetypedColumn, message);
            if reads {
                problem.hint = Some(format!("write `many = {}`", column.many));
            } else {
                problem.hint = Some(format!("write `datatype = \"{}\"`", column.datatype));
            }
            self.report(path, &field.datatype.span, problem);
            return;
        }
        self.nullable(field, column, &place);
        self.values(field, column, &place);
    }

    fn nullable(&mut self, field: &Field, column: &Column, place: &str) {
        // Stores report every column of a view as nullable.
        if self.table.kind != TableKind::Table || !column.nullable {
            return;
        }
        let in_key =
            self.stream.key.contains(&field.name) && !self.table.primary_key.contains(&column.name);
        let (span, why) = if field.required.value {
            (&field.required.span, "is required")
        } else if in_key {
            (&field.name.span, "is in the key")
        } else {
            return;
        };
        let message = format!(
            "{place} may be NULL, and field `{}.{}` {why}",
            self.stream.name, field.name
        );
        let problem = Problem::new(ProblemCode::NullableColumn, message);
        self.report(self.field_path(field), span, problem);
    }

    fn values(&mut self, field: &Field, column: &Column, place: &str) {
        if field.one_of.is_empty() || column.one_of.is_empty() {
            return;
        }
        let ours: Vec<String> = field.one_of.iter().map(|value| value_text(value)).collect();
        let missing = |from: &[String], of: &[String]| -> Vec<String> {
            from.iter()
                .filter(|value| !of.contains(value))
                .map(|value| quoted(value))
                .collect()
        };
        let removed = missing(&ours, &column.one_of);
        let added = missing(&column.one_of, &ours);
        let path = format!("{}.one_of", self.field_path(field));
        if !removed.is_empty() {
            let message = format!("{place} no longer allows {}", removed.join(", "));
            let problem =
                Problem::new(ProblemCode::ValuesRemoved, message).hint("remove it from `one_of`");
            self.report(path.clone(), &field.one_of.span, problem);
        }
        if !added.is_empty() {
            let message = format!("{place} also allows {}", added.join(", "));
            let problem =
                Problem::new(ProblemCode::ValuesAdded, message).hint("add it to `one_of`");
            self.report(path, &field.one_of.span, problem);
        }
    }

    /// Checks the key and each set of `unique`, if the store can guarantee uniqueness.
    fn uniqueness(&mut self) {
        if !self.kind.keeps_unique() || self.table.kind != TableKind::Table {
            return;
        }
        let key = std::iter::once(("key", self.stream.key.as_slice()));
        let sets = self
            .stream
            .unique
            .iter()
            .map(|set| ("unique", set.value.as_slice()));
        for (name, fields) in key.chain(sets) {
            let Some(columns) = self.columns_of(fields) else {
                continue;
            };
            let kept = std::iter::once(&self.table.primary_key)
                .chain(&self.table.unique)
                .any(|set| {
                    !set.is_empty() && set.iter().all(|column| columns.contains(column.as_str()))
                });
            let (false, Some(first), Some(last)) = (kept, fields.first(), fields.last()) else {
                continue;
            };
            let columns: Vec<_> = columns.iter().map(|column| quoted(column)).collect();
            let message = format!(
                "nothing in table {} keeps {} unique, and `{name}` of stream `{}` says it is",
                quoted(&self.table.name),
                columns.join(", "),
                self.stream.name
            );
            let problem = Problem::new(ProblemCode::KeyNotUnique, message);
            let span = first.span.start..last.span.end.max(first.span.end);
            self.report(
                format!("streams.{}.{name}", self.stream.name),
                &span,
                problem,
            );
        }
    }

    /// The columns of some fields; `None` if one is missing, which is reported separately.
    fn columns_of(&self, fields: &[Spanned<String>]) -> Option<BTreeSet<&'a str>> {
        fields
            .iter()
            .map(|name| {
                let column = self.stream.field(name)?.column()?.as_str();
                self.table.column(column).map(|column| column.name.as_str())
            })
            .collect()
    }
}

fn value_text(value: &Scalar) -> String {
    value.to_string()
}
