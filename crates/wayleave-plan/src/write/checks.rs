//! Checks on other records when a record is written.

use std::sync::Arc;

use wayleave_model::constraint::{FieldError, FieldErrorCode};
use wayleave_model::mapping::{Action, Spanned};

use super::{AuthorizedWrite, RecordImage, TableRules, WriteRefusal};
use crate::plan::{AuthorizedPlan, Comparison, Predicate, Read, Rows, TARGET, Target};
use crate::value::Value;
use crate::view::FieldView;

/// Records that must not exist.
#[derive(Debug, Clone)]
pub struct UniqueCheck {
    /// Reads one row if such a record exists.
    pub exists: AuthorizedPlan,
    /// The errors in that case.
    pub errors: Vec<FieldError>,
}

impl AuthorizedWrite {
    /// Whether the grant shows all records that a write could collide with if these columns are
    /// unique.
    pub fn is_conflict_visible(&self, columns: &[&str]) -> bool {
        if !self.capability.is_narrowed() {
            return true;
        }
        let assigned = |column: &str| self.set.iter().find(|it| it.column.label() == column);
        if !columns.iter().any(|it| assigned(it).is_some()) {
            return true;
        }
        // Hidden records differ in a column that the grant's filter pins.
        columns.iter().any(|column| {
            let is_pinned = self.capability.pinned(column).is_some();
            is_pinned && (assigned(column).is_some() || self.action() == Action::Update)
        })
    }

    /// Reads for records with the same key, or the same values of a set that the mapping declares
    /// unique. `before` is the current record, for an update.
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
            let value = match assigned(name) {
                Some(assignment) => assignment.value.clone(),
                None => before?.value(name).clone(),
            };
            // A missing value equals nothing.
            if matches!(value, Value::Null | Value::Malformed) {
                return None;
            }
            same.push(Predicate::Compare {
                column: FieldView::mapped(self.stream(), name).own_column(),
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

    /// The predicate of every record except the one that is changed or deleted.
    #[expect(
        clippy::expect_used,
        reason = "without a part of the key, other records would count as this one"
    )]
    fn is_another(&self) -> Predicate {
        let key = self.stream().key_fields().iter().zip(&self.key);
        let differs = key.map(|(field, value)| {
            let value = value.clone();
            Predicate::Compare {
                column: field.own_column(),
                comparison: Comparison::Ne,
                value: value.expect("a change or deletion names its record"),
            }
        });
        Predicate::any(differs)
    }

    /// Reads for records that refer to a deleted one, in streams whose records are all visible.
    pub fn referring_checks(&self, before: &RecordImage) -> Vec<UniqueCheck> {
        if self.action() != Action::Delete {
            return Vec::new();
        }
        let referring = self.capability.referring();
        let checks = referring.filter_map(|(from, relation)| {
            let mut joined = Vec::new();
            for join in &relation.on {
                let value = before.value(&join.field);
                if matches!(value, Value::Null | Value::Malformed) {
                    return None;
                }
                let datatype = from.field_of_column(&join.column);
                let datatype = match datatype {
                    Some(field) => field.datatype.value,
                    None => FieldView::mapped(self.stream(), &join.field).datatype(),
                };
                joined.push(Predicate::Compare {
                    column: crate::plan::Column::stored(
                        TARGET,
                        join.column.value.clone(),
                        datatype,
                    ),
                    comparison: Comparison::Eq,
                    // A value that their column cannot hold is in none of their records.
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
            per_parent: None,
            limit: 1,
            previews: false,
        }),
    )
}

/// A constraint of the store that a write violated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreRule {
    /// Two records would have the same values.
    Unique,
    /// A value refers to no record, or other records refer to this one.
    Reference,
    /// A required column has no value.
    Required,
    /// A check constraint, or a trigger.
    Check,
    /// A value that its column cannot hold.
    Value,
}

impl AuthorizedWrite {
    /// The refusal if the record with this key does not exist, or the grant does not show it.
    pub fn not_found(&self, key: &[Value]) -> WriteRefusal {
        let fields = self.stream().key_fields().iter().zip(key);
        let message = format!("there is no record `{}`", self.record_id(key));
        let errors = fields.map(|(field, value)| {
            FieldError::new(field.name(), FieldErrorCode::NotFound, message.clone())
                .value(value.to_json())
        });
        WriteRefusal::Fields(errors.collect())
    }

    /// The refusal of a write that violated a constraint of the store, by the store's current
    /// rules. Names nothing hidden from the caller.
    pub fn refused_by(&self, rule: StoreRule, rules: &TableRules) -> WriteRefusal {
        let whole =
            |code, message: &str| WriteRefusal::Fields(vec![FieldError::whole(code, message)]);
        // These rules may be newer than those checked before the write.
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
                "a rule of the source rejects this record",
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

    /// The refusal if concurrent writes blocked this one for too long.
    pub fn serialization_conflict() -> WriteRefusal {
        let message =
            "concurrent writes conflicted with this one; nothing was written, so try again";
        WriteRefusal::Fields(vec![FieldError::whole(
            FieldErrorCode::Serialization,
            message,
        )])
    }

    /// The refusal if the source has no table for idempotency keys.
    pub fn no_idempotency_table() -> WriteRefusal {
        let message = "the source keeps no idempotency keys: its operator must add the table that \
                       `wayleave source prepare` prints";
        let error = FieldError::new("idempotency_key", FieldErrorCode::Check, message);
        WriteRefusal::Fields(vec![error])
    }

    /// The refusal if the idempotency key was used with other arguments.
    pub fn key_is_taken() -> WriteRefusal {
        let message = "this `idempotency_key` was used with other arguments";
        let error = FieldError::new("idempotency_key", FieldErrorCode::Conflict, message);
        WriteRefusal::Fields(vec![error])
    }

    fn collided(&self, rules: &TableRules) -> WriteRefusal {
        let assigned = |column: &String| self.set.iter().find(|it| it.column.label() == column);
        // Name only columns that the caller set; if several sets may collide, name none.
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
