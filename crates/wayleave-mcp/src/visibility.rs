//! Which callers may see a primitive, and what the others get instead.

use std::{fmt, sync::Arc};

use crate::{Caller, RpcError};

/// The access of a caller to one primitive.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Listed and usable.
    Allow,
    /// Not listed; using it answers exactly as if it did not exist.
    Hide,
    /// Not listed; using it answers with this error, because its existence is no secret.
    Deny(RpcError),
}

type Rule = dyn Fn(&Caller) -> Decision + Send + Sync;

/// A predicate on the request's authorization.
///
/// It depends on the [`Caller`] alone, never on the connection or on earlier requests. The list
/// filter and the check at the call are this same predicate.
///
/// ```
/// use wayleave_mcp::{Caller, Decision, Visibility};
///
/// let only_alice = Visibility::when(|caller| caller.subject() == "alice");
/// assert_eq!(only_alice.decide(&Caller::new("alice")), Decision::Allow);
/// assert_eq!(only_alice.decide(&Caller::new("mallory")), Decision::Hide);
/// ```
#[derive(Clone, Default)]
pub struct Visibility(Option<Arc<Rule>>);

impl Visibility {
    /// Visible to everyone.
    pub fn everyone() -> Self {
        Self(None)
    }

    /// Visible to callers for whom `visible` holds; for the others it does not exist.
    pub fn when(visible: impl Fn(&Caller) -> bool + Send + Sync + 'static) -> Self {
        Self::rule(move |caller| {
            if visible(caller) {
                Decision::Allow
            } else {
                Decision::Hide
            }
        })
    }

    /// A full decision per caller.
    pub fn rule(decide: impl Fn(&Caller) -> Decision + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(decide)))
    }

    /// The decision for `caller`.
    pub fn decide(&self, caller: &Caller) -> Decision {
        self.0.as_ref().map_or(Decision::Allow, |rule| rule(caller))
    }

    pub(crate) fn allows(&self, caller: &Caller) -> bool {
        self.decide(caller) == Decision::Allow
    }

    /// Whether both are the same predicate. Closures cannot be compared by meaning.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            _ => false,
        }
    }
}

impl fmt::Debug for Visibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Visibility(rule)"
        } else {
            "Visibility(everyone)"
        })
    }
}
