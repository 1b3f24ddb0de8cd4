//! One field of a granted stream.

use std::sync::Arc;

use wayleave_model::expression::{Formula, Path};
use wayleave_model::mapping::{
    AggregateOp, Datatype, ExactNumber, Field, Mapping, Scalar, Spanned, Stream,
};
use wayleave_model::mask::Mask;
use wayleave_model::ratify::Ratified;

use super::StreamView;
use crate::mask::Masking;
use crate::plan::{Column, ColumnOrigin, TARGET};

/// A field that may be used. The only access to a field of a stream: filters, sorts, groups,
/// measures, search, layouts and ids all use it, so that a rule on how a field may be read is
/// enforced in one place. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldView {
    field: Arc<Field>,
    /// The formula of a computed field.
    formula: Option<Arc<Formula<Path>>>,
    /// The mask of its values, if they are masked.
    masking: Option<Masking>,
}

impl FieldView {
    /// Every field of a mapped stream, visible or not.
    #[expect(clippy::expect_used, reason = "no field may be left out silently")]
    pub(super) fn all_of(
        mapping: &Ratified<Mapping>,
        stream: &Stream,
    ) -> impl Iterator<Item = Self> {
        stream.fields.iter().map(move |field| {
            let formula = mapping.formula(stream, field);
            let formula = formula.expect("a ratified mapping types its computed fields");
            Self {
                field: Arc::clone(field),
                formula: formula.map(Arc::new),
                masking: None,
            }
        })
    }

    /// Every stored field of a mapped stream, visible or not. For the row filters of grants.
    pub(crate) fn all(stream: &Stream) -> impl Iterator<Item = Self> {
        let stored = stream.fields.iter().filter(|it| it.column().is_some());
        stored.map(|field| Self {
            field: Arc::clone(field),
            formula: None,
            masking: None,
        })
    }

    /// Masks the field.
    pub(super) fn masked(mut self, masking: Masking) -> Self {
        self.masking = Some(masking);
        self
    }

    /// The mask of its values, if they are masked.
    pub fn mask(&self) -> Option<Mask> {
        self.masking.as_ref().map(Masking::mask)
    }

    /// Whether its values are masked.
    pub fn is_masked(&self) -> bool {
        self.masking.is_some()
    }

    pub(crate) fn masking(&self) -> Option<&Masking> {
        self.masking.as_ref()
    }

    fn is_plain_or_token(&self) -> bool {
        self.mask().is_none_or(Mask::is_token)
    }

    /// The text of its formula in the mapping.
    pub(super) fn written(&self) -> Option<&str> {
        self.field.compute().map(|it| it.text())
    }

    /// A field known to be stored, visible or not: one that a key, a unique set, `updated`, a
    /// relation or an assignment names.
    #[expect(
        clippy::expect_used,
        reason = "a check without the field would pass what it must refuse"
    )]
    pub(crate) fn mapped(stream: &StreamView, name: &str) -> Self {
        let mut stored = Self::all(&stream.mapped);
        let field = stored.find(|field| field.name() == name);
        field.expect("a ratified mapping names only stored fields there")
    }

    /// The formula of a computed field.
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

    /// Its datatype.
    pub fn datatype(&self) -> Datatype {
        self.field.datatype.value
    }

    /// Its meaning, for people and agents.
    pub fn description(&self) -> Option<&str> {
        self.field.description.as_ref().map(|it| it.as_str())
    }

    /// Its predicate as the mapping writes it: an absolute IRI, or a name relative to the
    /// dataset's.
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
        self.field.filter.value && self.is_scalar() && self.is_plain_or_token()
    }

    /// Whether records may be sorted by it.
    pub fn can_sort(&self) -> bool {
        self.field.sort.value && self.is_scalar() && !self.is_masked()
    }

    /// The aggregate operations that it supports.
    pub fn aggregates(&self) -> impl Iterator<Item = AggregateOp> {
        use AggregateOp::{Count, CountDistinct, GroupBy};
        let of_token = |op: &AggregateOp| matches!(op, Count | CountDistinct | GroupBy);
        let masked = self.is_masked();
        let all = self.field.aggregate.iter().copied();
        all.filter(move |op| !masked || (self.is_plain_or_token() && of_token(op)))
    }

    /// Whether it supports an aggregate operation.
    pub fn can_aggregate(&self, op: AggregateOp) -> bool {
        self.aggregates().any(|it| it == op)
    }

    /// The closed list of values; empty if there is none or the field is masked.
    pub fn one_of(&self) -> &[Spanned<Scalar>] {
        if self.is_masked() {
            return &[];
        }
        &self.field.one_of
    }

    /// A regular expression that must match somewhere in the text.
    pub fn pattern(&self) -> Option<&str> {
        let pattern = self.field.pattern.as_ref();
        pattern.filter(|_| !self.is_masked()).map(|it| it.as_str())
    }

    /// Minimum and maximum length of text, in characters.
    pub fn lengths(&self) -> [Option<u32>; 2] {
        let plain = !self.is_masked();
        let of = |bound: &Option<Spanned<u32>>| bound.as_ref().filter(|_| plain).map(|it| it.value);
        [of(&self.field.min_length), of(&self.field.max_length)]
    }

    /// Minimum and maximum value of a number.
    pub fn bounds(&self) -> [Option<&ExactNumber>; 2] {
        let field = &self.field;
        let bounds = [&field.min_value, &field.max_value];
        bounds.map(|it| {
            it.as_ref()
                .filter(|_| !self.is_masked())
                .map(|it| &it.value)
        })
    }

    /// Whether it is read from a column.
    pub(crate) fn is_read_from(&self, column: &str) -> bool {
        self.field.column().is_some_and(|it| *it == column)
    }

    /// The column of a field known to be stored: one of [`all`](Self::all), or one whose role
    /// requires it, which are keys, the mark of deletion and the time of change.
    #[expect(clippy::expect_used, reason = "a default would read another column")]
    pub(crate) fn own_column(&self) -> Column {
        let stored = self.stored(TARGET);
        stored.expect("a stored field, or one whose role requires it")
    }

    /// Its column in the plan's table of that number, unless it is computed.
    pub(crate) fn stored(&self, table: u16) -> Option<Column> {
        let name = self.field.column()?.value.clone();
        Some(Column {
            origin: ColumnOrigin::Stored { table, name },
            datatype: self.datatype(),
            many: self.is_many(),
        })
    }
}
