//! One measure of a granted stream.

use std::sync::Arc;

use wayleave_model::expression::{AggregateTerm, Formula, Path};
use wayleave_model::mapping::{Datatype, Mapping, NamedMeasure, Stream};
use wayleave_model::ratify::Ratified;

/// A measure that may be used. Cheap to clone.
#[derive(Debug, Clone)]
pub struct MeasureView {
    measure: Arc<NamedMeasure>,
    /// The formula as the mapping writes it, with computed fields by name.
    written: Arc<Formula<AggregateTerm<Path>>>,
    /// Over stored fields.
    formula: Arc<Formula<AggregateTerm<Path>>>,
}

impl MeasureView {
    /// Every measure of a mapped stream.
    #[expect(clippy::expect_used, reason = "no measure may be left out silently")]
    pub(super) fn all_of(
        mapping: &Ratified<Mapping>,
        stream: &Stream,
    ) -> impl Iterator<Item = Self> {
        stream.measures.iter().map(move |measure| {
            let written = mapping.written_measure(stream, measure);
            let formula = mapping.measure_formula(stream, measure);
            Self {
                written: Arc::new(written.expect("a ratified mapping types its measures")),
                measure: Arc::clone(measure),
                formula: Arc::new(
                    formula.expect("a ratified mapping types the computed fields of its measures"),
                ),
            }
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.measure.name
    }

    /// The text of its expression in the mapping.
    pub fn expression(&self) -> &str {
        self.measure.expression.text()
    }

    /// The datatype of its value.
    pub fn datatype(&self) -> Datatype {
        self.formula.datatype
    }

    pub(super) fn written(&self) -> &Formula<AggregateTerm<Path>> {
        &self.written
    }

    pub(crate) fn formula(&self) -> &Formula<AggregateTerm<Path>> {
        &self.formula
    }
}
