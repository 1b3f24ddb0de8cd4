//! Constraints of a table that could reveal hidden records or masked values to a caller.
//!
//! A store refuses a write that collides with another record, or that refers to none. If that
//! record is hidden from the caller, the refusal reveals whether it exists; if a masked value takes
//! part in the collision, it reveals that value. So such a write is refused before it is tried,
//! whether or not there is such a record or value.

use wayleave_model::mapping::{Action, Relation, Stream};

use super::{AuthorizedWrite, PolicyRefusal};
use crate::value::Value;

/// The constraints that a store enforces on a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableRules {
    /// Unique constraints.
    pub unique: Vec<UniqueRule>,
    /// Foreign keys of the table.
    pub refers: Vec<ForeignKeyRule>,
    /// Foreign keys of other tables, or of its own, that lead to the table.
    pub referred: Vec<ForeignKeyRule>,
}

/// A unique constraint or index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UniqueRule {
    /// Its plain columns.
    pub columns: Vec<String>,
    /// The columns that it compares by code point, so that values that differ to a row filter also
    /// differ to it.
    pub exact: Vec<String>,
    /// Whether it involves an expression or a condition, so that other columns may matter too.
    pub is_opaque: bool,
}

/// A foreign key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignKeyRule {
    /// The other table; `None` if it is in another schema.
    pub other: Option<String>,
    /// The referring columns, each with the column it refers to.
    pub on: Vec<(String, String)>,
}

impl TableRules {
    /// The sets of columns that must be unique.
    pub fn unique_columns(&self) -> impl Iterator<Item = &[String]> {
        let plain = self.unique.iter().filter(|it| !it.is_opaque);
        plain.map(|it| it.columns.as_slice())
    }
}

impl AuthorizedWrite {
    /// Refuses a write whose outcome could depend on hidden records or masked values.
    pub fn check_rules(&self, rules: &TableRules) -> Result<(), PolicyRefusal> {
        if !rules.unique.iter().all(|it| self.shows_conflicts_of(it)) {
            return Err(PolicyRefusal::HiddenConflict);
        }
        let is_shown = |rule: &ForeignKeyRule| !self.sets_reference(rule) || self.checks(rule);
        if !rules.refers.iter().all(is_shown) {
            return Err(PolicyRefusal::HiddenReference);
        }
        let is_shown = |rule: &ForeignKeyRule| {
            !self.changes_referenced_key(rule) || self.checks_referring(rule)
        };
        if !rules.referred.iter().all(is_shown) {
            return Err(PolicyRefusal::HiddenReference);
        }
        Ok(())
    }

    fn assigns(&self, column: &str) -> bool {
        self.set.iter().any(|it| it.column.label() == column)
    }

    /// Whether the grant shows every record that a write could collide with under a constraint, and
    /// every value that it could collide by.
    fn shows_conflicts_of(&self, rule: &UniqueRule) -> bool {
        if self.action() == Action::Delete {
            return true;
        }
        let is_touched = rule.is_opaque || rule.columns.iter().any(|it| self.assigns(it));
        if !is_touched {
            return true;
        }
        // A conflict would reveal that another record has the same masked value.
        if self.capability.may_compare_masked(rule) {
            return false;
        }
        // Hidden records differ in a column that the grant's filter pins.
        !self.capability.is_narrowed()
            || rule.exact.iter().any(|column| {
                let is_pinned = self.capability.pinned(column).is_some();
                is_pinned && (self.assigns(column) || self.action() == Action::Update)
            })
    }

    /// Whether the write sets a column of a foreign key to a value outside the field's closed list.
    fn sets_reference(&self, rule: &ForeignKeyRule) -> bool {
        let stream = &self.stream().mapped;
        self.set.iter().any(|assignment| {
            let is_part = rule
                .on
                .iter()
                .any(|(ours, _)| assignment.column.label() == ours);
            let field = stream.field(&assignment.field);
            let is_listed = field.is_some_and(|it| !it.one_of.is_empty());
            is_part && !is_listed && assignment.value != Value::Null
        })
    }

    /// Whether a foreign key is also checked under the caller's grant, as a relation.
    fn checks(&self, rule: &ForeignKeyRule) -> bool {
        let references = self.capability.references().iter();
        let mut references = references.filter(|it| rule.is_to(&it.to.mapped));
        references.any(|it| rule.is_of(&it.relation, &it.to.mapped))
    }

    /// Whether the write deletes the record that a foreign key refers to, or changes a column that
    /// it refers to.
    fn changes_referenced_key(&self, rule: &ForeignKeyRule) -> bool {
        match self.action() {
            Action::Create => false,
            Action::Update => rule.on.iter().any(|(_, ours)| self.assigns(ours)),
            Action::Delete => true,
        }
    }

    /// Whether the referring records are checked before, and all of them are visible.
    fn checks_referring(&self, rule: &ForeignKeyRule) -> bool {
        let mut referring = self.capability.referring();
        self.action() == Action::Delete
            && referring.any(|(from, it)| rule.is_to(from) && rule.is_of(it, &self.stream().mapped))
    }
}

impl ForeignKeyRule {
    fn is_to(&self, stream: &Stream) -> bool {
        self.other.as_deref() == Some(stream.table.as_str())
    }

    /// Whether a relation to a stream joins the same columns as the key.
    fn is_of(&self, relation: &Relation, to: &Stream) -> bool {
        let columns = self.on.iter();
        relation.joins_columns(to, columns.map(|(from, to)| (from.as_str(), to.as_str())))
    }
}
