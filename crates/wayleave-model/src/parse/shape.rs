//! Checks a document against its definitions: keys, shapes, names and texts.
//!
//! This step knows single entries only; the rules check how entries relate.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::{DeArray, DeTable, DeValue};

use super::value;
use crate::definitions::{Key, Presence, Section, Shape};
use crate::names::NameKind;
use crate::nearest::nearest;
use crate::problem::{Problem, ProblemCode, quoted};

/// Reports everything in the table that does not follow the section's definition.
pub(super) fn walk(section: &'static Section, table: &DeTable<'_>, source: &str) -> Vec<Problem> {
    let mut walk = ShapeChecker {
        source,
        path: Vec::new(),
        problems: Vec::new(),
    };
    // A key missing in the document itself is reported at the document's start.
    let start = source.chars().next().map_or(0, char::len_utf8);
    walk.table(section, table, &(0..start));
    walk.problems
}

/// A table's entries in the order of the document.
pub(super) fn in_order<'t, 'a>(
    table: &'t DeTable<'a>,
) -> Vec<(&'t str, Range<usize>, &'t toml::Spanned<DeValue<'a>>)> {
    let mut entries: Vec<_> = table
        .iter()
        .map(|(key, value)| (key.get_ref().as_ref(), key.span(), value))
        .collect();
    entries.sort_by_key(|(_, span, _)| span.start);
    entries
}

pub(super) struct ShapeChecker<'s> {
    pub(super) source: &'s str,
    path: Vec<String>,
    problems: Vec<Problem>,
}

impl ShapeChecker<'_> {
    /// Records a problem of the current entry.
    pub(super) fn report(&mut self, problem: Problem) {
        self.problems.push(problem.path(self.path.join(".")));
    }

    fn within(&mut self, segment: String, step: impl FnOnce(&mut Self)) {
        self.path.push(segment);
        step(self);
        self.path.pop();
    }

    fn table(&mut self, section: &'static Section, table: &DeTable<'_>, owner: &Range<usize>) {
        for (name, at, value) in in_order(table) {
            match section.key(name) {
                Some(key) => {
                    self.within(name.to_owned(), |walk| {
                        walk.value(key.shape, name, &at, value);
                    });
                }
                None => self.within(segment(name), |walk| walk.unknown(section, name, at)),
            }
        }
        self.one_origin(table);
        for key in section.keys {
            if matches!(key.presence, Presence::Required) && !table.contains_key(key.name) {
                let of = if self.path.is_empty() {
                    String::new()
                } else {
                    format!(" from `{}`", self.path.join("."))
                };
                let problem = Problem::new(
                    ProblemCode::MissingKey,
                    format!("`{}` is missing{of}", key.name),
                )
                .hint(missing_key_hint(key))
                .at(owner.clone());
                self.report(problem);
            }
        }
    }

    /// A field is read from a column or computed, not both.
    fn one_origin(&mut self, table: &DeTable<'_>) {
        if let (Some((column, _)), true) =
            (table.get_key_value("column"), table.contains_key("compute"))
        {
            let message = "a field with `compute` is read from no `column`";
            let problem = Problem::new(ProblemCode::NeedlessKey, message)
                .hint("remove one of the two")
                .at(column.span());
            self.report(problem);
        }
    }

    fn unknown(&mut self, section: &'static Section, name: &str, at: Range<usize>) {
        let known = section.keys.iter().map(|key| key.name);
        let hint = if let Some(meant) = nearest(name, known.clone()) {
            format!("did you mean `{meant}`?")
        } else {
            let known: Vec<_> = known.map(|name| format!("`{name}`")).collect();
            format!("the keys here are {}", known.join(", "))
        };
        let place = if section.header.is_empty() {
            "the document".to_owned()
        } else {
            format!("`{}`", section.header)
        };
        let message = format!("unknown key {} in {place}", quoted(name));
        self.report(
            Problem::new(ProblemCode::UnknownKey, message)
                .hint(hint)
                .at(at),
        );
    }

    fn value(
        &mut self,
        shape: Shape,
        name: &str,
        at: &Range<usize>,
        value: &toml::Spanned<DeValue<'_>>,
    ) {
        match (shape, value.get_ref()) {
            (Shape::Table(section), DeValue::Table(table)) => self.table(section, table, at),
            (Shape::Tables(section), DeValue::Array(list)) => {
                self.tables(section, shape, name, at, list);
            }
            (Shape::Named(kind, section), DeValue::Table(table)) => {
                self.named(kind, section, shape, at, table);
            }
            (Shape::Joins, DeValue::Table(table)) => self.joins(shape, at, table),
            (Shape::Measures, DeValue::Table(table)) => self.measures(shape, at, table),
            (
                Shape::Words(_) | Shape::Fields { .. } | Shape::FieldSets | Shape::Scalars,
                DeValue::Array(list),
            ) => self.list(shape, name, &value.span(), list),
            _ => value::single(self, shape, name, value),
        }
    }

    fn count(&mut self, shape: Shape, found: usize, at: &Range<usize>) {
        let most = shape.max_entries();
        if found > most {
            let message = format!("there are {found} entries here, and {most} at most are allowed");
            self.report(Problem::new(ProblemCode::TooMany, message).at(at.clone()));
        }
    }

    fn nothing_in(&mut self, name: &str, at: &Range<usize>) {
        let message = format!("`{name}` is empty, and needs at least one entry");
        self.report(Problem::new(ProblemCode::EmptyList, message).at(at.clone()));
    }

    #[expect(clippy::expect_used, reason = "the document itself is not such a list")]
    fn tables(
        &mut self,
        section: &'static Section,
        shape: Shape,
        name: &str,
        at: &Range<usize>,
        list: &DeArray<'_>,
    ) {
        self.count(shape, list.len(), at);
        if list.is_empty() {
            self.nothing_in(name, at);
        }
        // Each entry has its own path segment: `connections[0]` instead of `connections`.
        let base = self.path.pop().expect("the list is under a key");
        for (index, entry) in list.iter().enumerate().take(shape.max_entries()) {
            let span = entry.span();
            self.within(format!("{base}[{index}]"), |walk| match entry.get_ref() {
                DeValue::Table(table) => walk.table(section, table, &span),
                _ => value::wrong_type(walk, name, "a table", entry),
            });
        }
        self.path.push(base);
    }

    #[expect(
        clippy::expect_used,
        reason = "the document itself is not such a table"
    )]
    fn named(
        &mut self,
        kind: NameKind,
        section: &'static Section,
        shape: Shape,
        at: &Range<usize>,
        table: &DeTable<'_>,
    ) {
        self.count(shape, table.len(), at);
        if table.is_empty() && matches!(kind, NameKind::Stream | NameKind::Field) {
            let name = self.path.last().expect("the table is under a key").clone();
            self.nothing_in(&name, at);
        }
        for (name, at, entry) in in_order(table).into_iter().take(shape.max_entries()) {
            self.within(segment(name), |walk| {
                value::name(walk, kind, name, &at);
                match entry.get_ref() {
                    DeValue::Table(table) => walk.table(section, table, &at),
                    _ => value::wrong_type(walk, name, "a table", entry),
                }
            });
        }
    }

    fn joins(&mut self, shape: Shape, at: &Range<usize>, table: &DeTable<'_>) {
        self.count(shape, table.len(), at);
        if table.is_empty() {
            self.nothing_in("on", at);
        }
        for (column, at, field) in in_order(table) {
            value::identifier(self, column, &at);
            match field.get_ref() {
                DeValue::String(name) => value::name(self, NameKind::Field, name, &field.span()),
                _ => value::wrong_type(self, "on", Shape::Joins.expected(), field),
            }
        }
    }

    fn measures(&mut self, shape: Shape, at: &Range<usize>, table: &DeTable<'_>) {
        self.count(shape, table.len(), at);
        for (name, at, measure) in in_order(table).into_iter().take(shape.max_entries()) {
            self.within(segment(name), |walk| {
                value::name(walk, NameKind::Field, name, &at);
                value::single(walk, Shape::Expression, name, measure);
            });
        }
    }

    fn list(&mut self, shape: Shape, name: &str, at: &Range<usize>, list: &DeArray<'_>) {
        self.count(shape, list.len(), at);
        let needs_one = matches!(shape, Shape::Fields { empty: false } | Shape::Scalars);
        if list.is_empty() && needs_one {
            self.nothing_in(name, at);
        }
        let mut seen = BTreeSet::new();
        for entry in list.iter().take(shape.max_entries()) {
            match (shape, entry.get_ref()) {
                (Shape::Words(words), DeValue::String(word)) => {
                    value::word(self, words, word, &entry.span());
                }
                (Shape::Fields { .. }, DeValue::String(field)) => {
                    value::name(self, NameKind::Field, field, &entry.span());
                }
                (Shape::FieldSets, DeValue::Array(fields)) => {
                    self.list(Shape::Fields { empty: false }, name, &entry.span(), fields);
                }
                (Shape::Scalars, _) => value::scalar(self, shape, name, entry),
                _ => value::wrong_type(self, name, shape.expected(), entry),
            }
            if value::spelling(entry.get_ref()).is_some_and(|text| !seen.insert(text)) {
                let message = format!("`{name}` lists one value twice");
                let problem = Problem::new(ProblemCode::DuplicateValue, message).at(entry.span());
                self.report(problem);
            }
        }
    }
}

/// A name as part of a path.
fn segment(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= 64 && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("\"{}\"", quoted(name).trim_matches('`'))
    }
}

/// The description of a missing key, for its problem.
fn missing_key_hint(key: &Key) -> String {
    let expected = match key.shape {
        Shape::Word(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            format!("one of {}", words.join(", "))
        }
        shape => shape.expected().to_owned(),
    };
    format!(
        "`{}` is {expected}: {}",
        key.name,
        first_sentence(key.about)
    )
}

fn first_sentence(text: &str) -> String {
    let sentence = text
        .split_once(". ")
        .map_or(text, |(first, _)| first)
        .trim_end_matches('.');
    let mut chars = sentence.chars();
    // `A title` → `a title`, yet `IRI …` stays.
    match (chars.next(), chars.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            format!("{}{}", first.to_lowercase(), chars.as_str())
        }
        _ => sentence.to_owned(),
    }
}
