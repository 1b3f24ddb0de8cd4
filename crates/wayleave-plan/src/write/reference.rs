//! Fields that refer to another record.

use std::sync::Arc;

use serde_json::Value as Json;
use wayleave_model::constraint::{FieldError, FieldErrorCode};
use wayleave_model::mapping::{Field, Mapping, Relation, Stream};

use super::capability_view::{CapabilityView, FieldReference};
use super::checks::rows;
use super::{Assignment, AuthorizedWrite, RecordImage, ReferenceCheck, WriteRefusal};
use crate::id::RecordId;
use crate::plan::{Comparison, Predicate, TARGET, Target};
use crate::request::address;
use crate::value::Value;
use crate::view::FieldView;

/// The schema keyword with the type of a reference's target.
pub(super) const TYPE_KEYWORD: &str = "io.wayleave/type";

/// The pattern of addresses of a type's records. Type names need no escaping.
pub(super) fn pattern(type_name: &str) -> String {
    format!("^wayleave://kg/{type_name}/")
}

/// The stream whose records a field refers to by address: if a to-one relation joins only this
/// field, to the whole key of that stream.
pub(super) fn by_iri<'m>(
    mapping: &'m Mapping,
    stream: &Stream,
    field: &Field,
) -> Option<&'m Stream> {
    let column = field.column()?;
    let is_alone = |it: &&Relation| matches!(it.on.as_slice(), [one] if one.column == *column);
    let mut relations = stream.relations.iter().map(AsRef::as_ref).filter(is_alone);
    relations.find_map(|relation| {
        let to = mapping.stream(&relation.to)?;
        let [join] = relation.on.as_slice() else {
            return None;
        };
        let is_key = matches!(to.key.as_slice(), [only] if *only == join.field);
        // A key does not count as a reference, even if a reverse relation joins on it.
        let is_own_key = stream.key.len() == 1 && stream.key.contains(&field.name);
        (is_key && !is_own_key && !field.many.value).then_some(to)
    })
}

/// Parses the address of a record into the value of the field that refers to it.
pub(super) fn value(
    capability: &CapabilityView,
    to: &Stream,
    field: &FieldView,
    given: &Json,
) -> Result<Value, Box<FieldError>> {
    let wrong_form = || {
        let (name, type_name) = (field.name(), to.type_name.as_str());
        let address = address::record(
            type_name,
            &format!("{}/{}:…", connection(capability), to.name),
        );
        let must = format!("`{name}` must be the address of a record of `{type_name}`: {address}");
        let error = FieldError::new(name, FieldErrorCode::Datatype, must);
        Box::new(error.value(given.clone()).constraint(type_name))
    };
    let address = given.as_str().ok_or_else(wrong_form)?;
    let prefix = format!("wayleave://kg/{}/", to.type_name);
    let id = address
        .strip_prefix(&prefix)
        .and_then(|_| address::id(address));
    let id = id.ok_or_else(wrong_form)?;
    let unknown = || Box::new(unknown(field.name(), given, to));
    let id = RecordId::parse(&id).map_err(|_| unknown())?;
    let is_here = id.connection_id == connection(capability) && *id.stream == *to.name.value;
    match id.key.as_slice() {
        [key] if is_here && !key.contains('\0') => {
            Value::from_text(field.datatype(), key).map_err(|_| unknown())
        }
        _ => Err(unknown()),
    }
}

fn connection(capability: &CapabilityView) -> &str {
    capability.stream().connection_id()
}

fn unknown(field: &str, given: &Json, to: &Stream) -> FieldError {
    let message = format!("`{field}` refers to a record that is not there");
    FieldError::new(field, FieldErrorCode::Reference, message)
        .value(given.clone())
        .constraint(to.type_name.as_str())
}

/// The records that must exist, for references with all fields set by the caller.
pub(super) fn checks(capability: &CapabilityView, set: &[Assignment]) -> Vec<ReferenceCheck> {
    let references = capability.references().iter();
    let given = references.filter(|it| it.fields.iter().all(|name| assigned(set, name).is_some()));
    let value = |name: &str| assigned(set, name).map(|it| it.value.clone());
    given
        .filter_map(|it| check(capability, it, set, &value))
        .collect()
}

fn assigned<'s>(set: &'s [Assignment], field: &str) -> Option<&'s Assignment> {
    set.iter().find(|it| it.field == field)
}

impl AuthorizedWrite {
    /// The records that must exist after the write, for references with some fields set by the
    /// caller, and others by the record, a default or a trigger.
    pub fn reference_checks(&self, after: &RecordImage) -> Vec<ReferenceCheck> {
        let value = |name: &str| Some(after.value(name).clone());
        self.partly_set()
            .filter_map(|it| check(&self.capability, it, &self.set, &value))
            .collect()
    }

    /// The references with some fields set by the caller, but not all.
    fn partly_set(&self) -> impl Iterator<Item = &FieldReference> {
        self.capability.references().iter().filter(|it| {
            let mut fields = it.fields.iter();
            fields.any(|name| assigned(&self.set, name).is_none())
                && it
                    .fields
                    .iter()
                    .any(|name| assigned(&self.set, name).is_some())
        })
    }

    /// The refusal if the store finds no target for a reference. References that the caller sets
    /// completely were checked before, so it is one that it sets in part. The answer is the same as
    /// for a target that exists but is hidden.
    pub(super) fn refers_to_nothing(&self) -> WriteRefusal {
        let mut partly = self.partly_set();
        if let (Some(one), None) = (partly.next(), partly.next())
            && let Some(named) = one.fields.iter().find_map(|it| assigned(&self.set, it))
        {
            let error = unknown(&named.field, &named.given, &one.to.mapped);
            return WriteRefusal::Fields(vec![error]);
        }
        let message = "a value refers to a record that is not there";
        WriteRefusal::Fields(vec![FieldError::whole(FieldErrorCode::Reference, message)])
    }
}

fn check(
    capability: &CapabilityView,
    reference: &FieldReference,
    set: &[Assignment],
    value: &dyn Fn(&str) -> Option<Value>,
) -> Option<ReferenceCheck> {
    let FieldReference {
        fields,
        relation,
        to,
    } = reference;
    let mut joined = Vec::new();
    for (field, join) in fields.iter().zip(&relation.on) {
        let ours = value(field)?;
        // A missing value refers to nothing.
        if matches!(ours, Value::Null | Value::Malformed) {
            return None;
        }
        let column = to.field(&join.field)?.stored(TARGET)?;
        let theirs = Value::from_text(column.datatype, &ours.to_text()?).ok();
        joined.push(theirs.map_or(Predicate::False, |value| Predicate::Compare {
            column,
            comparison: Comparison::Eq,
            value,
        }));
    }
    let key = to.key_fields().iter().map(FieldView::own_column);
    let target = Target {
        source: capability.target().source.clone(),
        ..Target::clone(&to.target)
    };
    let predicate = Predicate::all([Predicate::all(joined), to.visible_rows()]);
    let named = fields.iter().find_map(|it| assigned(set, it))?;
    Some(ReferenceCheck {
        exists: rows(Arc::new(target), key.collect(), predicate),
        error: unknown(&named.field, &named.given, &to.mapped),
    })
}
