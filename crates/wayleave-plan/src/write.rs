//! Writes: a call of a capability becomes an [`AuthorizedWrite`], or the list of all its errors.
//!
//! An authorized write contains the values to set, the record, and what must hold of it before and
//! after. Stores run it in one transaction and ask it at each step whether to continue; they decide
//! nothing themselves.

mod arguments;
mod capability_view;
mod checks;
mod description;
mod image;
mod reference;
mod schema;
mod table_rules;
mod value;

use std::sync::Arc;

use serde_json::{Map, Value as Json};
use wayleave_model::constraint::FieldError;
use wayleave_model::digest::Digest;
use wayleave_model::mapping::Action;

pub use capability_view::CapabilityView;
pub use checks::{StoreRule, UniqueCheck};
pub use description::{WriteHints, description, hints, meta};
pub use image::RecordImage;
pub use schema::{MAX_IDEMPOTENCY_KEY_CHARS, input_schema};
pub use table_rules::{ForeignKeyRule, TableRules, UniqueRule};

use crate::plan::{AuthorizedPlan, Column, Target};
use crate::value::Value;
use crate::view::StreamView;

/// A write that policy has allowed. Nothing outside this crate can build or change one, and no
/// store takes anything else:
///
/// ```compile_fail,E0451
/// use wayleave_plan::write::{AuthorizedWrite, CapabilityView};
///
/// fn forge(capability: CapabilityView) -> AuthorizedWrite {
///     AuthorizedWrite { capability }
/// }
/// ```
///
/// ```compile_fail,E0616
/// use wayleave_plan::value::Value;
/// use wayleave_plan::write::AuthorizedWrite;
///
/// fn widen(write: &mut AuthorizedWrite) {
///     write.set.clear();
/// }
/// ```
#[derive(Debug, Clone)]
pub struct AuthorizedWrite {
    capability: CapabilityView,
    target: Arc<Target>,
    /// The key of the record to change, or the given parts of a new record's key.
    key: Vec<Option<Value>>,
    /// The values that the caller sets.
    set: Vec<Assignment>,
    /// The value that `updated` must have before the write.
    if_updated: Option<Value>,
    /// The current time in microseconds since 1970, for `updated` if the store does not fill it in.
    now: i64,
    idempotency: Option<IdempotencyKey>,
    references: Vec<ReferenceCheck>,
    dry_run: bool,
}

/// A value that a write sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The field.
    pub field: String,
    /// The column it is stored in.
    pub column: Column,
    /// The value; NULL to clear it.
    pub value: Value,
    /// The argument as given.
    pub given: Json,
}

/// A record that must exist and be visible to the caller.
#[derive(Debug, Clone)]
pub struct ReferenceCheck {
    /// Reads one row if the record exists.
    pub exists: AuthorizedPlan,
    /// The error if the record is missing.
    pub error: FieldError,
}

/// Makes repeated calls count as one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// A digest of the caller, the capability and the given key, which reveals none of them.
    pub id: Digest,
    /// A digest of the arguments. The same key with other arguments is an error.
    pub request: Digest,
}

/// The reason that a write is refused.
#[derive(Debug, Clone, PartialEq)]
pub enum WriteRefusal {
    /// The arguments are wrong; lists all errors.
    Fields(Vec<FieldError>),
    /// The grant does not allow it.
    Policy(PolicyRefusal),
}

/// The rule by which the grant refuses a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyRefusal {
    /// The written record would be outside the grant.
    OutsideGrant,
    /// The write could collide with records or masked values that the grant hides, and so reveal
    /// them.
    HiddenConflict,
    /// The source links the record to records that no relation of the mapping leads to, and the
    /// write would reveal or change them.
    HiddenReference,
}

impl PolicyRefusal {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OutsideGrant => "outside_grant",
            Self::HiddenConflict => "hidden_conflict",
            Self::HiddenReference => "hidden_reference",
        }
    }

    /// The message for callers.
    pub const fn message(self) -> &'static str {
        match self {
            Self::OutsideGrant => "policy: the record would not be one that your grant covers",
            Self::HiddenConflict => "policy: this could collide with values that your grant hides",
            Self::HiddenReference => {
                "policy: the source links this record to unmapped ones, and this would reveal them"
            }
        }
    }
}

impl From<PolicyRefusal> for WriteRefusal {
    fn from(refusal: PolicyRefusal) -> Self {
        Self::Policy(refusal)
    }
}

impl AuthorizedWrite {
    /// Plans a call of a capability at a time in microseconds since 1970.
    pub fn new(
        capability: &CapabilityView,
        subject: &str,
        arguments: &Map<String, Json>,
        now: i64,
    ) -> Result<Self, WriteRefusal> {
        arguments::plan(capability, subject, arguments, now)
    }

    /// The table that it writes, in the capability's own source.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The action of the capability.
    pub fn action(&self) -> Action {
        self.capability.action()
    }

    /// The capability.
    pub fn capability(&self) -> &CapabilityView {
        &self.capability
    }

    /// The stream of the record, as the caller sees it.
    pub fn stream(&self) -> &StreamView {
        self.capability.stream()
    }

    /// The values that the caller sets.
    pub fn assignments(&self) -> &[Assignment] {
        &self.set
    }

    /// The columns of the key, in key order.
    pub fn key_columns(&self) -> Vec<Column> {
        let key = self.stream().key_fields().iter();
        key.map(crate::view::FieldView::own_column).collect()
    }

    /// The key of the record, if the caller gave all of it.
    pub fn key(&self) -> Option<Vec<Value>> {
        self.key.iter().cloned().collect()
    }

    /// The records that must exist and be visible to the caller.
    pub fn references(&self) -> &[ReferenceCheck] {
        &self.references
    }

    /// The key that makes repeated calls count as one write.
    pub fn idempotency(&self) -> Option<&IdempotencyKey> {
        self.idempotency.as_ref()
    }

    /// A suspended stream that the write would change, refer to, or leave dangling. Writers refuse
    /// such a write.
    pub fn suspended_stream(&self) -> Option<&Arc<str>> {
        let own = self.target.suspended.as_ref();
        own.or_else(|| self.capability.suspended_stream(&self.set))
    }

    /// Whether to report the change without writing it.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }
}
