//! A record before and after a write.

use std::sync::Arc;

use serde_json::{Map, Value as Json};
use wayleave_model::constraint::{FieldError, FieldErrorCode};
use wayleave_model::mapping::{Action, Datatype};

use super::checks::rows;
use super::value::{check_stored, not_of_datatype};
use super::{AuthorizedWrite, PolicyRefusal, WriteRefusal};
use crate::id::RecordId;
use crate::plan::{AuthorizedPlan, Column, Comparison, Predicate};
use crate::value::Value;
use crate::view::FieldView;

/// The values of a record's stored fields, including hidden ones, which must not leave the planner.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordImage {
    fields: Arc<[FieldView]>,
    values: Vec<Value>,
}

impl RecordImage {
    /// The value of a stored field.
    #[expect(clippy::expect_used, reason = "NULL in its place would pass checks")]
    pub(super) fn value(&self, name: &str) -> &Value {
        let place = self.fields.iter().position(|field| field.name() == name);
        let value = place.and_then(|place| self.values.get(place));
        value.expect("an image holds every stored field of its stream")
    }
}

impl AuthorizedWrite {
    /// Every stored field of the stream.
    fn stored(&self) -> Arc<[FieldView]> {
        FieldView::all(&self.stream().mapped).collect()
    }

    /// Plans a read of the record with a key, if the grant shows it.
    pub fn read_before(&self, key: &[Value]) -> AuthorizedPlan {
        self.image_plan(key, self.stream().visible_rows())
    }

    /// Plans a read of the written record, if the grant covers it. A capability that may set the
    /// mark of deletion may leave a record that ordinary reads do not show.
    pub fn read_after(&self, key: &[Value]) -> AuthorizedPlan {
        let deleted = self.stream().deleted();
        let may_delete = deleted.is_some_and(|it| self.capability.capability().writes(it.name()));
        let rows = if may_delete {
            self.stream().granted_rows()
        } else {
            self.stream().visible_rows()
        };
        self.image_plan(key, rows)
    }

    fn image_plan(&self, key: &[Value], visible: Predicate) -> AuthorizedPlan {
        let columns = self.stored().iter().map(FieldView::own_column).collect();
        let key = self.key_predicate(key);
        rows(
            Arc::clone(&self.target),
            columns,
            Predicate::all([key, visible]),
        )
    }

    /// The predicate that matches the record with a key.
    pub fn key_predicate(&self, key: &[Value]) -> Predicate {
        let fields = self.stream().key_fields().iter().zip(key);
        Predicate::all(fields.map(|(field, value)| Predicate::Compare {
            column: field.own_column(),
            comparison: Comparison::Eq,
            value: value.clone(),
        }))
    }

    /// The grant's predicate, which a record must satisfy to be changed.
    pub fn visible(&self) -> Predicate {
        self.stream().visible_rows()
    }

    /// Converts the row of [`read_before`](Self::read_before) or [`read_after`](Self::read_after).
    pub fn image(&self, row: Vec<Value>) -> RecordImage {
        RecordImage {
            fields: self.stored(),
            values: row,
        }
    }

    /// Checks that the record is unchanged since the `if_updated` that the caller gave.
    pub fn check_before(&self, before: &RecordImage) -> Result<(), WriteRefusal> {
        let (Some(expected), Some(field)) = (&self.if_updated, self.stream().updated()) else {
            return Ok(());
        };
        let now = before.value(field.name());
        if now.compare(expected).is_eq() {
            return Ok(());
        }
        let message = format!(
            "the record was changed meanwhile: `{}` has another value",
            field.name()
        );
        let error = FieldError::new("if_updated", FieldErrorCode::Conflict, message);
        let error = error.value(expected.to_json()).constraint(now.to_json());
        Err(WriteRefusal::Fields(vec![error]))
    }

    /// Whether an update sets only values that the record already has.
    pub fn changes_nothing(&self, before: &RecordImage) -> bool {
        let mut set = self.set.iter();
        self.action() == Action::Update && set.all(|it| is_same(before.value(&it.field), &it.value))
    }

    /// The column with the time of change and its new value, unless the store fills it in or the
    /// caller may set it.
    pub fn updated_value(&self, before: Option<&RecordImage>) -> Option<(Column, Value)> {
        let stream = &self.stream().mapped;
        let field = super::schema::updated(stream)?;
        if field.generated.value || self.capability.capability().writes(&field.name) {
            return None;
        }
        let column = FieldView::mapped(self.stream(), &field.name).own_column();
        let old = before.map(|it| it.value(&field.name));
        let value = match (field.datatype.value, old) {
            // It must grow even if the clock does not.
            (Datatype::Datetime, Some(Value::Datetime(old))) => {
                Value::Datetime(self.now.max(old.saturating_add(1)))
            }
            (Datatype::Datetime, _) => Value::Datetime(self.now),
            (Datatype::Integer, Some(Value::Integer(old))) => Value::Integer(old.saturating_add(1)),
            (Datatype::Integer, _) => Value::Integer(1),
            _ => return None,
        };
        Some((column, value))
    }

    /// Checks the written record. `None` is a record that the grant does not cover.
    pub fn check_after(
        &self,
        before: Option<&RecordImage>,
        after: Option<&RecordImage>,
    ) -> Result<(), WriteRefusal> {
        let after = after.ok_or(PolicyRefusal::OutsideGrant)?;
        let mut errors = Vec::new();
        for assignment in &self.set {
            let stored = after.value(&assignment.field);
            if !is_same(stored, &assignment.value) {
                let field = FieldView::mapped(self.stream(), &assignment.field);
                let mut error = not_of_datatype(&field, &assignment.given);
                error.message = format!("the source cannot hold this value of `{}`", field.name());
                errors.push(error);
            }
        }
        for (field, value) in after.fields.iter().zip(&after.values) {
            let old = before.map(|it| it.value(field.name()));
            let is_given = self.set.iter().any(|it| it.field == field.name());
            if is_given || old.is_some_and(|old| old == value) {
                continue;
            }
            let mut broken = Vec::new();
            check_stored(field, value, &mut broken);
            let seen = self.stream().field(field.name());
            if !broken.is_empty() && seen.is_none_or(FieldView::is_masked) {
                let message = "the record would break a rule of its mapping";
                broken = vec![FieldError::whole(FieldErrorCode::Check, message)];
            }
            errors.extend(
                broken
                    .into_iter()
                    .filter(|it| !errors.contains(it))
                    .collect::<Vec<_>>(),
            );
        }
        errors.extend(self.check_updated_grew(before, after));
        if errors.is_empty() {
            Ok(())
        } else {
            Err(WriteRefusal::Fields(errors))
        }
    }

    /// The error if a caller uses `if_updated` and `updated` did not grow: the next change would go
    /// unnoticed.
    fn check_updated_grew(
        &self,
        before: Option<&RecordImage>,
        after: &RecordImage,
    ) -> Option<FieldError> {
        self.if_updated.as_ref()?;
        let field = self.stream().updated()?;
        let (old, new) = (before?.value(field.name()), after.value(field.name()));
        new.compare(old).is_le().then(|| {
            let message = format!(
                "`{}` did not grow with this change, so `if_updated` cannot protect it; try again later",
                field.name()
            );
            FieldError::new("if_updated", FieldErrorCode::Conflict, message)
        })
    }

    /// The id of the record with a key.
    pub fn record_id(&self, key: &[Value]) -> String {
        RecordId::text_of(self.stream().connection_id(), self.stream().name(), key)
    }

    /// The values visible to the caller, by field.
    pub fn visible_values(&self, image: &RecordImage) -> Map<String, Json> {
        let fields = self.stream().fields().filter(|field| !field.is_computed());
        let shown = fields.map(|field| {
            let value = image.value(field.name());
            let shown = match field.masking() {
                None => value.to_json(),
                Some(masking) => masking.apply(value.clone()).to_json(),
            };
            (field.name().to_owned(), shown)
        });
        shown.collect()
    }
}

/// Whether two values are equal. JSON is, regardless of the order of members.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        _ => one.compare(other).is_eq(),
    }
}
