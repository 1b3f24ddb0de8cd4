//! One granted stream of one connection.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use wayleave_model::mapping::{Datatype, Mapping, Relation, SearchAnalyzer, Stream};
use wayleave_model::ratify::Ratified;

use super::{FieldView, MeasureView};
use crate::id::RecordId;
use crate::layout::Layout;
use crate::plan::{Comparison, Predicate, Target};
use crate::value::Value;

/// One granted stream of one connection, limited to what may be seen. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StreamView {
    pub(crate) mapping: Arc<Ratified<Mapping>>,
    /// The mapped stream, hidden parts included.
    pub(crate) mapped: Arc<Stream>,
    /// The visible fields, in mapping order.
    pub(super) fields: Arc<[FieldView]>,
    /// The fields of the key, in key order; always visible.
    pub(super) key: Arc<[FieldView]>,
    /// The field that marks a record as deleted, visible or not. A deletion is no secret to callers
    /// who could see the record.
    pub(super) deleted: Option<FieldView>,
    /// The names of the masked fields, visible or not.
    pub(super) masked: Arc<BTreeSet<String>>,
    /// The relations that may be followed.
    pub(super) relations: Arc<[Arc<Relation>]>,
    /// The visible fields that full-text search reads.
    pub(super) searched: Arc<[FieldView]>,
    /// The measures of the mapping that may be used.
    pub(super) measures: Arc<[MeasureView]>,
    /// The grant's row filter, without [`Predicate::Granted`] around it.
    pub(super) rows: Arc<Predicate>,
    /// The table that it is read from.
    pub(crate) target: Arc<Target>,
    /// The layout that shows all fields, cached on first use.
    pub(crate) whole: Arc<OnceLock<Layout>>,
}

/// How changes of a stream can be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    /// Not at all.
    None,
    /// Changes; deletions are not seen.
    Changes,
    /// Changes and deletions.
    ChangesAndDeletions,
}

impl StreamView {
    /// The dataset.
    pub fn connector_key(&self) -> &str {
        &self.mapping.dataset.name
    }

    /// The connection.
    pub fn connection_id(&self) -> &str {
        &self.target.connection_id
    }

    /// The operator's name for the source it is read from.
    pub fn source(&self) -> &str {
        &self.target.source
    }

    /// The stream's name.
    pub fn name(&self) -> &str {
        &self.mapped.name
    }

    /// The knowledge-graph class of its records.
    pub fn type_name(&self) -> &str {
        &self.mapped.type_name
    }

    /// The text analyzer of its searched fields.
    pub fn search_analyzer(&self) -> SearchAnalyzer {
        self.mapped.search_analyzer()
    }

    /// The IRI of that class: its name appended to the dataset's base.
    pub fn type_iri(&self) -> String {
        format!("{}{}", self.mapping.dataset.iri, self.type_name())
    }

    /// The IRI of a field's predicate.
    pub fn predicate_iri(&self, field: &FieldView) -> String {
        field.predicate_iri(&self.mapping.dataset.iri)
    }

    /// The IRI of a relation's edges: the name of their type appended to the dataset's base.
    pub fn relation_iri(&self, relation: &Relation) -> String {
        format!("{}{}", self.mapping.dataset.iri, relation.type_name)
    }

    /// The id of the record with these values of its key, in key order.
    pub fn record_id<'a>(&self, key: impl IntoIterator<Item = &'a Value>) -> String {
        RecordId::text_of(self.connection_id(), self.name(), key)
    }

    /// Its description.
    pub fn description(&self) -> Option<&str> {
        let description = self.mapped.description.as_ref()?;
        Some(description)
    }

    /// The visible fields, in mapping order.
    pub fn fields(&self) -> impl Iterator<Item = &FieldView> {
        self.fields.iter()
    }

    /// The visible field of that name.
    pub fn field(&self, name: &str) -> Option<&FieldView> {
        self.fields().find(|field| field.name() == name)
    }

    /// The fields of the key, in key order; always visible.
    pub fn key_fields(&self) -> &[FieldView] {
        &self.key
    }

    /// The visible field stored in a column.
    pub(crate) fn field_of_column(&self, column: &str) -> Option<&FieldView> {
        self.fields().find(|field| field.is_read_from(column))
    }

    /// Whether a relation of the stream is joined on a field.
    pub fn is_joined_on(&self, field: &FieldView) -> bool {
        let mut relations = self.relations();
        relations.any(|it| it.on.iter().any(|join| field.is_read_from(&join.column)))
    }

    /// The relations that may be followed.
    pub fn relations(&self) -> impl Iterator<Item = &Relation> {
        self.relations.iter().map(Arc::as_ref)
    }

    /// The relation of that name, if it may be followed.
    pub fn relation(&self, name: &str) -> Option<&Relation> {
        self.relations().find(|relation| relation.name == name)
    }

    /// Whether a relation leads from each record to at most one.
    pub fn is_to_one(&self, relation: &Relation) -> bool {
        self.mapping.is_to_one(relation)
    }

    /// The measures that may be used: those whose fields are all granted and unmasked.
    pub fn measures(&self) -> &[MeasureView] {
        &self.measures
    }

    /// The measure of that name.
    pub fn measure(&self, name: &str) -> Option<&MeasureView> {
        self.measures().iter().find(|it| it.name() == name)
    }

    /// Whether a field is masked, visible or not.
    pub(crate) fn is_field_masked(&self, field: &str) -> bool {
        self.masked.contains(field)
    }

    /// The names of the masked fields, visible or not.
    pub(crate) fn masked_fields(&self) -> impl Iterator<Item = &str> {
        self.masked.iter().map(|it| &**it)
    }

    /// The visible field of that name, unless it is masked: masked values cannot serve as titles,
    /// event times or times of change.
    fn plain_field(&self, name: &str) -> Option<&FieldView> {
        self.field(name).filter(|field| !field.is_masked())
    }

    /// The visible field that names a record to people.
    pub fn title(&self) -> Option<&FieldView> {
        self.plain_field(self.mapped.title.as_ref()?)
    }

    /// The visible field with the time of a record's event.
    pub fn event_time(&self) -> Option<&FieldView> {
        self.plain_field(self.mapped.event_time.as_ref()?)
    }

    /// The visible field that grows whenever a record changes.
    pub fn updated(&self) -> Option<&FieldView> {
        self.plain_field(self.mapped.updated.as_ref()?)
    }

    /// The visible fields that full-text search reads.
    pub fn search(&self) -> impl Iterator<Item = &FieldView> {
        self.searched.iter()
    }

    /// How its changes can be followed.
    pub fn tracking(&self) -> Tracking {
        match (self.updated(), self.deleted()) {
            (None, _) => Tracking::None,
            (Some(_), None) => Tracking::Changes,
            (Some(_), Some(_)) => Tracking::ChangesAndDeletions,
        }
    }

    pub(crate) fn deleted(&self) -> Option<&FieldView> {
        self.deleted.as_ref()
    }

    /// Whether the grant shows all rows.
    pub(crate) fn is_whole(&self) -> bool {
        *self.rows == Predicate::True
    }

    /// The rows that the grant shows, deleted ones included.
    pub(crate) fn granted_rows(&self) -> Predicate {
        Predicate::clone(&self.rows).granted()
    }

    /// The rows that an ordinary read may see: the grant's, without deleted ones.
    pub(crate) fn visible_rows(&self) -> Predicate {
        Predicate::all([Predicate::clone(&self.rows), self.not_deleted()]).granted()
    }

    fn not_deleted(&self) -> Predicate {
        let Some(field) = self.deleted() else {
            return Predicate::True;
        };
        let column = field.own_column();
        let none = Predicate::IsNull {
            column: column.clone(),
            negated: false,
        };
        if field.datatype() == Datatype::Boolean {
            let not_deleted = Predicate::Compare {
                column,
                comparison: Comparison::Eq,
                value: Value::Boolean(false),
            };
            Predicate::Or(vec![none, not_deleted])
        } else {
            none
        }
    }

    /// Whether it no longer fits its source. Then it is described, but no store reads it.
    pub fn is_suspended(&self) -> bool {
        self.target.suspended.is_some()
    }

    pub(crate) fn target(&self) -> Arc<Target> {
        Arc::clone(&self.target)
    }
}
