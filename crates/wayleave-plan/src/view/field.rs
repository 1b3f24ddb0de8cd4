//! One field of a granted stream.

use std::sync::Arc;

use wayleave_model::expression::{Formula, Path};
use wayleave_model::mapping::{
    AggregateOp, Datatype, ExactNumber, Field, Mapping, Scalar, Spanned, Stream,
};

use super::StreamView;
use crate::plan::{Column, ColumnOrigin, TARGET};

/// A field that may be used: the only way from a stream to what one of its fields holds. Filters,
/// sorts, groups, measures, search, layouts and ids take a field as this, so that a rule about how
/// a field may be read has one place to stand. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldView {
    field: Arc<Field>,
    /// What it is computed from, unless it is stored.
    formula: Option<Arc<Formula<Path>>>,
}

impl FieldView {
    /// Every field of a mapped stream, whoever may see it. A computed one that cannot be typed,
    /// which no ratified mapping has, is not there.
    pub(super) fn all_of(mapping: &Mapping, stream: &Stream) -> impl Iterator<Item = Self> {
        stream.fields.iter().filter_map(move |field| {
            let formula = mapping.formula(stream, field).ok()?;
            Some(Self {
                field: Arc::clone(field),
                formula: formula.map(Arc::new),
            })
        })
    }

    /// Every stored field of a mapped stream, whoever may see it: for the rules that grants are made
    /// of.
    pub(crate) fn all(stream: &Stream) -> impl Iterator<Item = Self> {
        let stored = stream.fields.iter().filter(|it| it.column().is_some());
        stored.map(|field| Self {
            field: Arc::clone(field),
            formula: None,
        })
    }

    /// The stored field of that name, whoever may see it.
    pub(crate) fn mapped(stream: &StreamView, name: &str) -> Option<Self> {
        Self::all(&stream.mapped).find(|field| field.name() == name)
    }

    /// What it is computed from, unless it is stored.
    pub(crate) fn formula(&self) -> Option<&Formula<Path>> {
        self.formula.as_deref()
    }

    /// Whether it is computed from other fields.
    pub fn is_computed(&self) -> bool {
        self.formula.is_some()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.field.name
    }

    /// What it holds.
    pub fn datatype(&self) -> Datatype {
        self.field.datatype.value
    }

    /// What it says, for people and agents.
    pub fn description(&self) -> Option<&str> {
        self.field.description.as_ref().map(|it| it.as_str())
    }

    /// What it says, as the mapping names it: an absolute IRI, or a name after the dataset's.
    pub fn predicate(&self) -> &str {
        &self.field.predicate
    }

    pub(super) fn predicate_iri(&self, base: &str) -> String {
        self.field.predicate_iri(base)
    }

    /// Whether every record has a value.
    pub fn is_required(&self) -> bool {
        self.field.required.value
    }

    /// Whether a record may have many values.
    pub fn is_many(&self) -> bool {
        self.field.many.value
    }

    /// Whether a record holds at most one comparable value.
    pub fn is_scalar(&self) -> bool {
        self.field.is_scalar()
    }

    /// Whether a caller's filter may name it.
    pub fn can_filter(&self) -> bool {
        self.field.filter.value && self.is_scalar()
    }

    /// Whether records may be sorted by it.
    pub fn can_sort(&self) -> bool {
        self.field.sort.value && self.is_scalar()
    }

    /// What aggregates may do with it.
    pub fn aggregates(&self) -> &[AggregateOp] {
        &self.field.aggregate
    }

    /// The closed list of values; empty when any value will do.
    pub fn one_of(&self) -> &[Spanned<Scalar>] {
        &self.field.one_of
    }

    /// A regular expression that some part of the text must match.
    pub fn pattern(&self) -> Option<&str> {
        self.field.pattern.as_ref().map(|it| it.as_str())
    }

    /// The least and the greatest length of text, in characters.
    pub fn lengths(&self) -> [Option<u32>; 2] {
        let of = |bound: &Option<Spanned<u32>>| bound.as_ref().map(|it| it.value);
        [of(&self.field.min_length), of(&self.field.max_length)]
    }

    /// The least and the greatest value of a number.
    pub fn bounds(&self) -> [Option<&ExactNumber>; 2] {
        let field = &self.field;
        [&field.min_value, &field.max_value].map(|it| it.as_ref().map(|it| &it.value))
    }

    /// Whether it is read from a column.
    pub(crate) fn is_read_from(&self, column: &str) -> bool {
        self.field.column().is_some_and(|it| *it == column)
    }

    /// The column a part of the record's identity or history is read from: a key, the mark of the
    /// deleted, what grows with changes.
    #[expect(
        clippy::expect_used,
        reason = "no ratified mapping gives these parts to a computed field"
    )]
    pub(crate) fn own_column(&self) -> Column {
        let stored = self.stored(TARGET);
        stored.expect("keys, marks of deletion and times of change are stored")
    }

    /// The column of a table it is read from, unless it is computed.
    pub(crate) fn stored(&self, table: u16) -> Option<Column> {
        let name = self.field.column()?.value.clone();
        Some(Column {
            origin: ColumnOrigin::Stored { table, name },
            datatype: self.datatype(),
            many: self.is_many(),
        })
    }
}
