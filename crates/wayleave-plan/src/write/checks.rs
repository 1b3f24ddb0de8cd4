//! What must hold of other records when a record is written.

use std::sync::Arc;

use wayleave_model::constraint::{FieldError, FieldErrorCode};
use wayleave_model::mapping::{Action, Spanned};

use super::{AuthorizedWrite, RecordImage, TableRules, WriteRefusal};
use crate::plan::{AuthorizedPlan, Comparison, Predicate, Read, Rows, TARGET, Target};
use crate::value::Value;
use crate::view::FieldView;

/// Records that there must be none of.
#[derive(Debug, Clone)]
pub struct UniqueCheck {
    /// Reads one row where there is one.
    pub exists: AuthorizedPlan,
    /// What to answer then.
    pub errors: Vec<FieldError>,
}

impl AuthorizedWrite {
    /// Whether all records that a write could collide with, because no two may have the same values
    /// of these columns, are records that the grant shows.
    pub fn is_conflict_visible(&self, columns: &[&str]) -> bool {
        if !self.capability.is_narrowed() {
            return true;
        }
        let assigned = |column: &str| self.set.iter().find(|it| it.column.label() == column);
        if !columns.iter().any(|it| assigned(it).is_some()) {
            return true;
        }
        // Records that the grant hides have another value of a column that its filter fixes.
        columns.iter().any(|column| {
            let is_pinned = self.capability.pinned(column).is_some();
            is_pinned && (assigned(column).is_some() || self.action() == Action::Update)
        })
    }

    /// The records that would collide with the record as it would be, by the mapping's own word.
    /// `before` is the record as it is, of an update.
    pub fn unique_checks(&self, before: Option<&RecordImage>) -> Vec<UniqueCheck> {
        let stream = &self.stream().mapped;
        let key = (self.action() == Action::Create).then_some(stream.key.as_slice());
        let declared = stream.unique.iter().map(|set| set.value.as_slice());
        let sets = key.into_iter().chain(declared);
        sets.filter_map(|set| self.unique_check(set, before))
            .collect()
    }

    fn unique_check(
        &self,
        names: &[Spanned<String>],
        before: Option<&RecordImage>,
    ) -> Option<UniqueCheck> {
        let assigned = |name: &str| self.set.iter().find(|it| it.field == name);
        let set: Vec<_> = names.iter().filter_map(|it| assigned(it)).collect();
        if set.is_empty() {
            return None;
        }
        let mut same = Vec::new();
        for name in names {
            let field = FieldView::mapped(self.stream(), name)?;
            let value = match assigned(name) {
                Some(assignment) => assignment.value.clone(),
                None => before?.value(name)?.clone(),
            };
            // What is not there is equal to nothing.
            if matches!(value, Value::Null | Value::Malformed) {
                return None;
            }
            same.push(Predicate::Compare {
                column: field.stored(TARGET)?,
                comparison: Comparison::Eq,
                value,
            });
        }
        let other = before.map_or(Predicate::True, |_| self.is_another());
        let rows = self.stream().granted_rows();
        let exists = self.plan(Predicate::all([Predicate::all(same), other, rows]));
        let shown: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
        let constraint: Vec<&str> = names.iter().map(|it| it.as_str()).collect();
        let errors = set.into_iter().map(|it| {
            let message = format!("another record has the same {}", shown.join(" and "));
            FieldError::new(&it.field, FieldErrorCode::Unique, message)
                .value(it.given.clone())
                .constraint(constraint.clone())
        });
        Some(UniqueCheck {
            exists,
            errors: errors.collect(),
        })
    }

    /// Every record but the one that is written.
    fn is_another(&self) -> Predicate {
        let key = self.stream().key_fields().iter().zip(&self.key);
        let differs = key.filter_map(|(field, value)| {
            Some(Predicate::Compare {
                column: field.own_column(),
                comparison: Comparison::Ne,
                value: value.clone()?,
            })
        });
        Predicate::any(differs)
    }

    /// The records that refer to the one that is deleted, in streams that the grant shows whole.
    pub fn referring_checks(&self, before: &RecordImage) -> Vec<UniqueCheck> {
        if self.action() != Action::Delete {
            return Vec::new();
        }
        let referring = self.capability.referring();
        let checks = referring.filter_map(|(from, relation)| {
            let mut joined = Vec::new();
            for join in &relation.on {
                let value = before.value(&join.field)?;
                if matches!(value, Value::Null | Value::Malformed) {
                    return None;
                }
                let datatype = from.field_of_column(&join.column);
                let datatype = match datatype {
                    Some(field) => field.datatype.value,
                    None => self.stream().mapped.field(&join.field)?.datatype.value,
                };
                joined.push(Predicate::Compare {
                    column: crate::plan::Column::stored(
                        TARGET,
                        join.column.value.clone(),
                        datatype,
                    ),
                    comparison: Comparison::Eq,
                    value: Value::from_text(datatype, &value.to_text()?).ok()?,
                });
            }
            // A record may refer to itself.
            if from.name == self.stream().mapped.name {
                joined.push(self.is_another());
            }
            let target = Target {
                table: from.table.value.clone(),
                ..self.target().clone()
            };
            let columns = from.key_fields().filter_map(|field| {
                let name = field.column()?.value.clone();
                Some(crate::plan::Column::stored(
                    TARGET,
                    name,
                    field.datatype.value,
                ))
            });
            let exists = rows(Arc::new(target), columns.collect(), Predicate::all(joined));
            let name = from.name.as_str();
            let message = format!("records of `{name}` refer to this one");
            let error = FieldError::whole(FieldErrorCode::Referenced, message);
            Some(UniqueCheck {
                exists,
                errors: vec![error.constraint(name)],
            })
        });
        checks.collect()
    }

    fn plan(&self, predicate: Predicate) -> AuthorizedPlan {
        rows(Arc::clone(&self.target), self.key_columns(), predicate)
    }
}

pub(super) fn rows(
    target: Arc<Target>,
    columns: Vec<crate::plan::Column>,
    predicate: Predicate,
) -> AuthorizedPlan {
    AuthorizedPlan::new(
        target,
        Arc::default(),
        Read::Rows(Rows {
            columns: Arc::new(columns),
            predicate,
            order: Vec::new(),
            after: None,
            each: None,
            limit: 1,
            previews: false,
        }),
    )
}

/// A rule of the store's own that a write broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreRule {
    /// Two records would have the same values.
    Unique,
    /// A value refers to nothing, or something refers to the record.
    Reference,
    /// A column without a value must have one.
    Required,
    /// A condition on a record, or a trigger.
    Check,
    /// A value is none that its column can hold.
    Value,
}

impl AuthorizedWrite {
    /// What to answer where there is no such record, or none that the grant shows.
    pub fn not_found(&self) -> WriteRefusal {
        let fields = self.stream().key_fields().iter().zip(&self.key);
        let id = self.key().map(|key| self.record_id(&key));
        let message = format!("there is no record `{}`", id.unwrap_or_default());
        let errors = fields.map(|(field, value)| {
            let value = value.as_ref().map(Value::to_json);
            FieldError::new(field.name(), FieldErrorCode::NotFound, message.clone())
                .value(value.unwrap_or_default())
        });
        WriteRefusal::Fields(errors.collect())
    }

    /// What to answer where the store refused, by the rules that it has now. Names nothing that the
    /// caller does not see.
    pub fn refused_by(&self, rule: StoreRule, rules: &TableRules) -> WriteRefusal {
        let whole =
            |code, message: &str| WriteRefusal::Fields(vec![FieldError::whole(code, message)]);
        // The rules may be newer than those that the write was checked by.
        if let Err(refusal) = self.check_rules(rules) {
            return refusal.into();
        }
        match rule {
            StoreRule::Unique => self.collided(rules),
            StoreRule::Reference if self.action() == Action::Delete => whole(
                FieldErrorCode::Referenced,
                "other records refer to this one",
            ),
            StoreRule::Reference => self.refers_to_nothing(),
            StoreRule::Required => {
                let message = "the source needs a value that this call cannot give";
                whole(FieldErrorCode::Required, message)
            }
            StoreRule::Check => whole(
                FieldErrorCode::Check,
                "a rule of the source refuses this record",
            ),
            StoreRule::Value => {
                let [one] = self.set.as_slice() else {
                    let message = "the source cannot hold one of these values";
                    return whole(FieldErrorCode::Datatype, message);
                };
                let message = format!("the source cannot hold this value of `{}`", one.field);
                let error = FieldError::new(&one.field, FieldErrorCode::Datatype, message);
                WriteRefusal::Fields(vec![error.value(one.given.clone())])
            }
        }
    }

    /// What to answer where other writes were in the way for too long.
    pub fn overtaken() -> WriteRefusal {
        let message = "other writes were in the way; nothing was written, so try again";
        WriteRefusal::Fields(vec![FieldError::whole(
            FieldErrorCode::Serialization,
            message,
        )])
    }

    /// What to answer where the source has no table for idempotency keys.
    pub fn keeps_no_keys() -> WriteRefusal {
        let message = "the source keeps no idempotency keys: its operator must add the table that \
                       `wayleave source prepare` prints";
        let error = FieldError::new("idempotency_key", FieldErrorCode::Check, message);
        WriteRefusal::Fields(vec![error])
    }

    /// What to answer where the key was used for another call.
    pub fn key_is_taken() -> WriteRefusal {
        let message = "this `idempotency_key` was used with other arguments";
        let error = FieldError::new("idempotency_key", FieldErrorCode::Conflict, message);
        WriteRefusal::Fields(vec![error])
    }

    fn collided(&self, rules: &TableRules) -> WriteRefusal {
        let assigned = |column: &String| self.set.iter().find(|it| it.column.label() == column);
        // Only what the caller set is named; of several sets nobody knows which it was.
        let touched = rules
            .unique_columns()
            .filter(|set| set.iter().any(|it| assigned(it).is_some()));
        let touched: Vec<&[String]> = touched.collect();
        let is_plain = rules.unique.iter().all(|it| !it.is_opaque);
        let message = "another record has the same values";
        match touched.as_slice() {
            [one] if is_plain && one.iter().all(|it| assigned(it).is_some()) => {
                let named = one.iter().filter_map(assigned);
                let errors = named.map(|it| {
                    FieldError::new(&it.field, FieldErrorCode::Unique, message)
                        .value(it.given.clone())
                });
                WriteRefusal::Fields(errors.collect())
            }
            _ => WriteRefusal::Fields(vec![FieldError::whole(FieldErrorCode::Unique, message)]),
        }
    }
}
