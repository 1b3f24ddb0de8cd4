//! Fields that refer to another record.

use serde_json::Value as Json;
use wayleave_model::constraint::{FieldError, FieldErrorCode};
use wayleave_model::mapping::{Field, Mapping, Relation, Stream};

use super::capability_view::{CapabilityView, FieldReference};
use super::{Assignment, ReferenceCheck};
use crate::id::RecordId;
use crate::plan::{AuthorizedPlan, Comparison, Predicate, Read, Rows, Target};
use crate::request::address;
use crate::value::Value;
use crate::view::FieldView;

/// The keyword that names the type a reference leads to.
pub(super) const TYPE_KEYWORD: &str = "io.wayleave/type";

/// A pattern of the addresses of records of a type. Names of types need no escaping.
pub(super) fn pattern(type_name: &str) -> String {
    format!("^wayleave://kg/{type_name}/")
}

/// The stream whose records a field names by their address: where one to-one relation joins on this
/// field alone, and on the whole key of the other stream.
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
        // A stream's key refers to nothing, though a reverse relation joins on it.
        let is_own_key = stream.key.len() == 1 && stream.key.contains(&field.name);
        (is_key && !is_own_key && !field.many.value).then_some(to)
    })
}

/// The value of a field whose record is named by its address.
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

/// The records that must exist, for the references all of whose fields are set and not null.
pub(super) fn checks(capability: &CapabilityView, set: &[Assignment]) -> Vec<ReferenceCheck> {
    let references = capability.references().iter();
    references
        .filter_map(|it| check(capability, it, set))
        .collect()
}

fn check(
    capability: &CapabilityView,
    reference: &FieldReference,
    set: &[Assignment],
) -> Option<ReferenceCheck> {
    let FieldReference {
        fields,
        relation,
        to,
    } = reference;
    let mut joined = Vec::new();
    let mut named = None;
    for (field, join) in fields.iter().zip(&relation.on) {
        let assigned = set.iter().find(|it| it.field == *field)?;
        if assigned.value == Value::Null {
            return None;
        }
        named = named.or(Some(assigned));
        let column = to.field(&join.field)?.stored(crate::plan::TARGET)?;
        let text = assigned.value.to_text()?;
        let value = Value::from_text(column.datatype, &text).ok();
        joined.push(match value {
            Some(value) => Predicate::Compare {
                column,
                comparison: Comparison::Eq,
                value,
            },
            None => Predicate::False,
        });
    }
    // A relation whose other columns are no fields of the write is the store's to check.
    if fields.len() != relation.on.len() {
        return None;
    }
    let key = to.key_fields().iter().map(FieldView::own_column);
    let target = Target {
        source: capability.target().source.clone(),
        ..Target::clone(&to.target)
    };
    let exists = AuthorizedPlan::new(
        std::sync::Arc::new(target),
        std::sync::Arc::default(),
        Read::Rows(Rows {
            columns: std::sync::Arc::new(key.collect()),
            predicate: Predicate::all([Predicate::all(joined), to.base()]),
            order: crate::layout::total(to, Vec::new()),
            after: None,
            each: None,
            limit: 1,
            previews: false,
        }),
    );
    let named = named?;
    Some(ReferenceCheck {
        exists,
        error: unknown(&named.field, &named.given, &to.mapped),
    })
}
