//! Parses the arguments of a call into an authorized write, or returns every error in them.

use serde_json::{Map, Value as Json};
use wayleave_model::constraint::{FieldError, FieldErrorCode};
use wayleave_model::digest::Digest;
use wayleave_model::mapping::{Action, Datatype};

use super::capability_view::CapabilityView;
use super::schema::{MAX_IDEMPOTENCY_KEY_CHARS, is_needed};
use super::value::{missing, not_of_datatype};
use super::{Assignment, AuthorizedWrite, IdempotencyKey, PolicyRefusal, WriteRefusal};
use super::{reference, value};
use crate::plan::{Column, TARGET};
use crate::value::{Value, sorted_object};
use crate::view::FieldView;

pub(super) fn plan(
    capability: &CapabilityView,
    subject: &str,
    arguments: &Map<String, Json>,
    now: i64,
) -> Result<AuthorizedWrite, WriteRefusal> {
    let mut reader = Reader {
        capability,
        arguments,
        errors: Vec::new(),
    };
    reader.refuse_unknown();
    let set = reader.assignments();
    let key = reader.key(&set);
    let if_updated = reader.if_updated();
    let idempotency = reader.idempotency(subject);
    let dry_run = reader.dry_run();
    if !reader.errors.is_empty() {
        return Err(WriteRefusal::Fields(reader.errors));
    }
    let write = AuthorizedWrite {
        capability: capability.clone(),
        target: std::sync::Arc::clone(capability.target()),
        references: reference::checks(capability, &set),
        key,
        set,
        if_updated,
        now,
        idempotency,
        dry_run,
    };
    write.check_row_filter()?;
    Ok(write)
}

impl AuthorizedWrite {
    /// Refuses what the row filter alone rules out, before any store is queried: the outcome must
    /// not depend on records that the grant hides.
    fn check_row_filter(&self) -> Result<(), PolicyRefusal> {
        for assignment in &self.set {
            let name = assignment.column.label();
            let pinned = self.capability.pinned(name);
            if pinned.is_some_and(|it| it.compare(&assignment.value).is_ne()) {
                return Err(PolicyRefusal::OutsideGrant);
            }
        }
        let stream = self.stream();
        let declared = stream.mapped.unique.iter().map(|set| set.value.as_slice());
        for set in std::iter::once(stream.mapped.key.as_slice()).chain(declared) {
            let columns = set
                .iter()
                .map(|it| FieldView::mapped(stream, it).own_column());
            let columns: Vec<Column> = columns.collect();
            let columns: Vec<&str> = columns.iter().map(Column::label).collect();
            if !self.is_conflict_visible(&columns) {
                return Err(PolicyRefusal::HiddenConflict);
            }
        }
        Ok(())
    }
}

struct Reader<'a> {
    capability: &'a CapabilityView,
    arguments: &'a Map<String, Json>,
    errors: Vec<FieldError>,
}

impl Reader<'_> {
    fn is_create(&self) -> bool {
        self.capability.action() == Action::Create
    }

    /// The arguments that the call accepts.
    fn allowed(&self) -> Vec<String> {
        let schema = super::input_schema(self.capability.mapping(), self.capability.capability());
        let properties = schema.get("properties").and_then(Json::as_object);
        properties
            .map(|it| it.keys().cloned().collect())
            .unwrap_or_default()
    }

    fn refuse_unknown(&mut self) {
        let allowed = self.allowed();
        for (name, value) in self.arguments {
            if !allowed.contains(name) {
                let shown = crate::refusal::quoted(name);
                let message = format!("there is no argument {shown}");
                let error = FieldError::new(name, FieldErrorCode::Unknown, message);
                let error = error.value(value.clone());
                self.errors.push(error.constraint(allowed.clone()));
            }
        }
    }

    /// Parses the values that the caller sets.
    fn assignments(&mut self) -> Vec<Assignment> {
        let capability = self.capability;
        let mut set = Vec::new();
        for field in capability.fields() {
            let given = self.arguments.get(field.name());
            let Some(value) = self.field(field, given) else {
                continue;
            };
            if let Some(column) = field.stored(TARGET) {
                set.push(Assignment {
                    field: field.name().to_owned(),
                    column,
                    value,
                    given: given.cloned().unwrap_or_default(),
                });
            }
        }
        if set.is_empty() && self.errors.is_empty() && capability.action() == Action::Update {
            let names: Vec<&str> = capability.fields().iter().map(FieldView::name).collect();
            let shown: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
            let message = format!("at least one of {} must be given", shown.join(", "));
            let error = FieldError::whole(FieldErrorCode::Required, message);
            self.errors.push(error.constraint(names));
        }
        set
    }

    fn field(&mut self, field: &FieldView, given: Option<&Json>) -> Option<Value> {
        let stream = &self.capability.stream().mapped;
        let mapped = stream.field(field.name())?;
        let is_needed = self.is_create() && is_needed(stream, mapped);
        let given = match given {
            None if is_needed => {
                self.errors.push(missing(field));
                return None;
            }
            None => return None,
            Some(Json::Null) if field.datatype() != Datatype::Json || field.is_many() => {
                if self.is_create() {
                    self.errors.push(not_of_datatype(field, &Json::Null));
                    return None;
                }
                return self.cleared(field);
            }
            // A JSON null and a missing value are the same.
            Some(Json::Null) if !field.is_required() => return Some(Value::Null),
            Some(Json::Null) => {
                self.errors.push(missing(field));
                return None;
            }
            Some(given) => given,
        };
        match reference::by_iri(self.capability.mapping(), stream, mapped) {
            Some(to) => match reference::value(self.capability, to, field, given) {
                Ok(value) => Some(value),
                Err(error) => {
                    self.errors.push(*error);
                    None
                }
            },
            None => value::read(field, given, &mut self.errors),
        }
    }

    fn cleared(&mut self, field: &FieldView) -> Option<Value> {
        if field.is_required() {
            self.errors.push(missing(field));
            return None;
        }
        Some(Value::Null)
    }

    fn key(&mut self, set: &[Assignment]) -> Vec<Option<Value>> {
        let stream = self.capability.stream();
        let is_create = self.is_create();
        let mut key = Vec::new();
        for field in stream.key_fields() {
            if is_create {
                let given = set.iter().find(|it| it.field == field.name());
                key.push(given.map(|it| it.value.clone()));
                continue;
            }
            key.push(match self.arguments.get(field.name()) {
                None => {
                    self.errors.push(missing(field));
                    None
                }
                // The key is only looked up, so only its datatype matters.
                Some(given) => {
                    let mut errors = Vec::new();
                    let value = value::read(field, given, &mut errors);
                    errors.retain(|it| it.code == FieldErrorCode::Datatype);
                    self.errors.extend(errors);
                    // A stored record may break a constraint of its key nonetheless.
                    value.or_else(|| value::typed(field.datatype(), given))
                }
            });
        }
        key
    }

    fn if_updated(&mut self) -> Option<Value> {
        let given = self.arguments.get("if_updated")?;
        let stream = self.capability.stream();
        let Some(field) = stream.updated().filter(|_| !self.is_create()) else {
            let known = self.allowed().contains(&"if_updated".to_owned());
            if known {
                let message =
                    "`if_updated` cannot be used: your grant does not show when records change";
                self.errors.push(FieldError::new(
                    "if_updated",
                    FieldErrorCode::Unknown,
                    message,
                ));
            }
            return None;
        };
        let mut errors = Vec::new();
        let value = value::read(field, given, &mut errors);
        for mut error in errors
            .into_iter()
            .filter(|it| it.code == FieldErrorCode::Datatype)
        {
            "if_updated".clone_into(&mut error.field);
            error.message = format!("`if_updated` must be {}", value::noun(field.datatype()));
            self.errors.push(error);
        }
        value
    }

    fn dry_run(&mut self) -> bool {
        match self.arguments.get("dry_run") {
            None => false,
            Some(Json::Bool(flag)) => *flag,
            Some(other) => {
                let message = "`dry_run` must be true or false";
                let error = FieldError::new("dry_run", FieldErrorCode::Datatype, message);
                self.errors
                    .push(error.value(other.clone()).constraint("boolean"));
                false
            }
        }
    }

    fn idempotency(&mut self, subject: &str) -> Option<IdempotencyKey> {
        let capability = self.capability;
        let given = self.arguments.get("idempotency_key")?;
        if !capability.capability().idempotency.value {
            return None;
        }
        let key = given.as_str().map(|key| (key, key.chars().count()));
        let (code, constraint) = match key {
            None => (FieldErrorCode::Datatype, Json::from("string")),
            Some((_, 0)) => (FieldErrorCode::MinLength, 1.into()),
            Some((_, length)) if length > MAX_IDEMPOTENCY_KEY_CHARS => {
                (FieldErrorCode::MaxLength, MAX_IDEMPOTENCY_KEY_CHARS.into())
            }
            Some((key, _)) => return Some(self.digests(subject, key)),
        };
        let message = format!(
            "`idempotency_key` must be a text of 1 to {MAX_IDEMPOTENCY_KEY_CHARS} characters"
        );
        let error = FieldError::new("idempotency_key", code, message);
        self.errors
            .push(error.value(given.clone()).constraint(constraint));
        None
    }

    /// Hashes the key and the arguments, so that the source stores neither the caller's name nor
    /// the key it chose.
    fn digests(&self, subject: &str, key: &str) -> IdempotencyKey {
        let tool = self.capability.tool();
        let id = serde_json::json!([subject, tool, key]).to_string();
        let mut request = self.arguments.clone();
        request.shift_remove("idempotency_key");
        request.shift_remove("dry_run");
        let request = sorted_object(&request).to_string();
        IdempotencyKey {
            id: Digest::from_bytes(id.as_bytes()),
            request: Digest::from_bytes(request.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::json;
    use wayleave_model::digest::Digest;
    use wayleave_model::ratify::{Ratification, verify};

    use super::*;
    use crate::active_datasets::ActiveDatasets;
    use crate::package::{Grant, Grants, Package, StreamScope};
    use crate::view::View;

    const CREW: &str = r#"
        [dataset]
        name = "crew"
        kind = "sqlite"
        [[connections]]
        id = "crew"
        source = "crew"
        [streams.sailors]
        type = "Sailor"
        key = ["id"]
        [streams.sailors.fields]
        id = { datatype = "integer", required = true, min_value = 10 }
        name = { datatype = "string" }
        [capabilities.rename]
        stream = "sailors"
        action = "update"
        fields = ["name"]
        source = "crew_rw"
    "#;

    fn view() -> View {
        let act = Ratification {
            dataset: "crew".to_owned(),
            digest: Digest::from_bytes(CREW.as_bytes()),
            replaces: None,
            who: "ada".to_owned(),
            note: "read it twice".to_owned(),
        };
        let mapping = Arc::new(verify(CREW.as_bytes(), &act).unwrap());
        let grant = Grant {
            id: "g_test".to_owned(),
            dataset: "crew".to_owned(),
            streams: StreamScope::All,
            capabilities: ["rename".to_owned()].into(),
        };
        let package = Package {
            subject: "t_test".to_owned(),
            epoch: 1,
            grants: Grants::Only(Arc::new(BTreeMap::from([("crew".to_owned(), grant)]))),
        };
        View::new(&ActiveDatasets::new(vec![mapping]).unwrap(), &package)
    }

    #[test]
    fn a_key_that_breaks_a_constraint_is_looked_up_in_every_spelling() {
        let view = view();
        let capability = view.capability("crew_rename").unwrap();
        for id in [json!(3), json!(3.0), json!(30), json!(30.0)] {
            let arguments = json!({ "id": id, "name": "Ann" });
            let write = plan(capability, "t_test", arguments.as_object().unwrap(), 0).unwrap();
            let key = write.key().unwrap();
            let number = if id.as_f64() < Some(10.0) { 3 } else { 30 };
            assert_eq!(key, [Value::Integer(number)], "{id}");
            let WriteRefusal::Fields(errors) = write.not_found(&key) else {
                panic!("{id} is refused by policy");
            };
            assert_eq!(
                errors[0].message,
                format!("there is no record `crew/sailors:{number}`")
            );
        }
    }
}
