//! One measure of a granted stream.

use std::sync::Arc;

use wayleave_model::expression::{Aggregated, Formula, Path};
use wayleave_model::mapping::{Datatype, Mapping, NamedMeasure, Stream};

/// A measure that may be asked for. Cheap to clone.
#[derive(Debug, Clone)]
pub struct MeasureView {
    measure: Arc<NamedMeasure>,
    /// As it is written, computed fields by their names.
    written: Arc<Formula<Aggregated<Path>>>,
    /// Over stored fields.
    formula: Arc<Formula<Aggregated<Path>>>,
}

impl MeasureView {
    /// Every measure of a mapped stream. One that cannot be typed, which no ratified mapping has, is
    /// not there.
    pub(super) fn all_of(mapping: &Mapping, stream: &Stream) -> impl Iterator<Item = Self> {
        stream.measures.iter().filter_map(move |measure| {
            let written = mapping.written_measure(stream, measure).ok()?;
            let formula = mapping.measure_formula(stream, measure).ok()?;
            Some(Self {
                written: Arc::new(written),
                measure: Arc::clone(measure),
                formula: Arc::new(formula),
            })
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.measure.name
    }

    /// What it is, as the mapping writes it.
    pub fn expression(&self) -> &str {
        self.measure.expression.text()
    }

    /// What it gives.
    pub fn datatype(&self) -> Datatype {
        self.formula.datatype
    }

    pub(super) fn written(&self) -> &Formula<Aggregated<Path>> {
        &self.written
    }

    pub(crate) fn formula(&self) -> &Formula<Aggregated<Path>> {
        &self.formula
    }
}
