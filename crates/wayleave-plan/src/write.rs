//! Writes: a capability's call becomes an [`AuthorizedWrite`], or all that is wrong with it.
//!
//! An authorized write says what to set, which record, and what the record must be before and
//! after. Stores run it in one transaction and ask it at each step whether to go on; they decide
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
pub use schema::{IDEMPOTENCY_KEY_LENGTH, input_schema};
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
    /// The key of the record to change, or what a caller gave of the key of a new one.
    key: Vec<Option<Value>>,
    /// What a caller sets, by field.
    set: Vec<Assignment>,
    /// What `updated` must be before.
    if_updated: Option<Value>,
    /// Microseconds since 1970: what `updated` becomes, where the store does not fill it in.
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
    /// The argument as it was given.
    pub given: Json,
}

/// A record that must exist for the caller.
#[derive(Debug, Clone)]
pub struct ReferenceCheck {
    /// Reads one row where it does.
    pub exists: AuthorizedPlan,
    /// What to answer where it does not.
    pub error: FieldError,
}

/// Makes a repeated call one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Stands for the caller, the capability and the key that was given, and reveals none of them.
    pub id: Digest,
    /// Stands for the arguments: the same key with others is an error.
    pub request: Digest,
}

/// Why a write is not carried out.
#[derive(Debug, Clone, PartialEq)]
pub enum WriteRefusal {
    /// The arguments are wrong; all that is.
    Fields(Vec<FieldError>),
    /// The grant does not allow it.
    Policy(PolicyRefusal),
}

/// A write that the grant does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyRefusal {
    /// The record would not be one that the grant covers.
    OutsideGrant,
    /// The write could collide with records that the grant hides, and would tell of them.
    HiddenConflict,
    /// The source ties the record to records that no relation of the mapping leads to, and the write
    /// would tell of them or change them.
    HiddenReference,
}

impl PolicyRefusal {
    /// Its word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OutsideGrant => "outside_grant",
            Self::HiddenConflict => "hidden_conflict",
            Self::HiddenReference => "hidden_reference",
        }
    }

    /// What it means, for callers.
    pub const fn message(self) -> &'static str {
        match self {
            Self::OutsideGrant => "policy: the record would not be one that your grant covers",
            Self::HiddenConflict => {
                "policy: your grant covers some records only, and this could collide with others"
            }
            Self::HiddenReference => {
                "policy: the source ties this record to others that are not mapped, and this would \
                 tell of them"
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
    /// Plans a call of a capability, with the time in microseconds since 1970.
    pub fn new(
        capability: &CapabilityView,
        subject: &str,
        arguments: &Map<String, Json>,
        now: i64,
    ) -> Result<Self, WriteRefusal> {
        arguments::plan(capability, subject, arguments, now)
    }

    /// Where it writes: the capability's own source.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What it does.
    pub fn action(&self) -> Action {
        self.capability.action()
    }

    /// The capability.
    pub fn capability(&self) -> &CapabilityView {
        &self.capability
    }

    /// The stream that is written, as far as it may be seen.
    pub fn stream(&self) -> &StreamView {
        self.capability.stream()
    }

    /// What the caller sets.
    pub fn assignments(&self) -> &[Assignment] {
        &self.set
    }

    /// The columns of the key, in key order.
    pub fn key_columns(&self) -> Vec<Column> {
        let key = self.stream().key_fields().iter();
        key.map(crate::view::FieldView::own_column).collect()
    }

    /// The key of the record, where the caller gave all of it.
    pub fn key(&self) -> Option<Vec<Value>> {
        self.key.iter().cloned().collect()
    }

    /// Records that must exist for the caller.
    pub fn references(&self) -> &[ReferenceCheck] {
        &self.references
    }

    /// Makes a repeated call one write.
    pub fn idempotency(&self) -> Option<&IdempotencyKey> {
        self.idempotency.as_ref()
    }

    /// A suspended stream that the write would change, refer to, or strand. No writer takes it then.
    pub fn suspended(&self) -> Option<&Arc<str>> {
        let own = self.target.suspended.as_ref();
        own.or_else(|| self.capability.suspended(&self.set))
    }

    /// Whether the caller wants to know what would change, and nothing written.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }
}
