//! Callers by their credentials: the same one as long as what it may do is the same.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wayleave_ledger::Millis;
use wayleave_mcp::Caller;
use wayleave_model::{digest::Digest, grant::Scope};
use wayleave_plan::package::{Grants, Package};
use wayleave_surface::access::Access;

use super::{jwt::Opened, limits::Budgets};

/// When there are more than this, those that are over are forgotten.
const MANY: usize = 4096;

/// A credential, by what is safe to keep of it.
#[derive(Debug, Clone)]
pub(super) enum Whose {
    /// A token of ours, by its id.
    Token(String),
    /// An access token of an issuer.
    Jwt(Arc<Opened>),
}

impl Whose {
    fn key(&self) -> &str {
        match self {
            Self::Token(id) => id,
            Self::Jwt(opened) => &opened.key,
        }
    }
}

/// What was found of a credential.
pub(super) struct Found {
    /// What it lets its caller do.
    pub(super) access: Access,
    /// When that ends.
    pub(super) ends: Option<Millis>,
    /// When it was found.
    pub(super) now: Millis,
    /// The place of the ledger's state it was found in.
    pub(super) order: u64,
}

/// The ledger has moved, and everyone was called since: what was found is not to be used.
#[derive(Debug)]
pub(super) struct Outdated;

/// Everyone who came in and may still hold something open.
///
/// Nobody comes in by an older state of the ledger than the one by which everyone was last called:
/// what that ended does not begin again.
#[derive(Default)]
pub(super) struct Roster(Mutex<Book>);

#[derive(Default)]
struct Book {
    /// The state by which everyone was last called.
    called: u64,
    known: HashMap<String, Known>,
}

struct Known {
    whose: Whose,
    access: Access,
    ends: Option<Millis>,
    caller: Arc<Caller>,
    revoked: CancellationToken,
}

impl Roster {
    fn locked(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller with this access. Any other the credential had before is over.
    pub(super) fn caller(
        &self,
        whose: &Whose,
        found: Found,
        budgets: &Budgets,
    ) -> Result<Arc<Caller>, Outdated> {
        let mut book = self.locked();
        if found.order < book.called {
            return Err(Outdated);
        }
        let known = &mut book.known;
        if let Some(before) = known.get(whose.key()) {
            if before.is_still(&found) {
                return Ok(Arc::clone(&before.caller));
            }
            before.revoked.cancel();
        }
        if known.len() >= MANY {
            known.retain(|_, one| !one.caller.is_over());
        }
        let entry = Known::new(whose, found, budgets);
        let caller = Arc::clone(&entry.caller);
        known.insert(whose.key().to_owned(), entry);
        Ok(caller)
    }

    /// Every credential in it. From now on nobody comes in by a state older than `order`.
    pub(super) fn call(&self, order: u64) -> Vec<Whose> {
        let mut book = self.locked();
        book.called = book.called.max(order);
        let known = book.known.values();
        known.map(|one| one.whose.clone()).collect()
    }

    /// Ends whatever a credential holds open.
    pub(super) fn end(&self, whose: &Whose) {
        if let Some(ended) = self.locked().known.remove(whose.key()) {
            ended.revoked.cancel();
        }
    }
}

impl Known {
    fn new(whose: &Whose, found: Found, budgets: &Budgets) -> Self {
        let Found {
            access, ends, now, ..
        } = found;
        let revoked = CancellationToken::new();
        let subject: Arc<str> = access.package.subject.as_str().into();
        let caller = Caller::new(Arc::clone(&subject))
            .with_view(view(&access))
            .within(budgets.of(&subject))
            .until(revoked.clone())
            .with(access.clone());
        let left = ends.map(|ends| u64::try_from(ends.saturating_sub(now)).unwrap_or(0));
        // A clock that can go no further has no such moment.
        let over = left.and_then(|left| Instant::now().checked_add(Duration::from_millis(left)));
        let caller = match over {
            Some(at) => caller.until_at(at),
            None => caller,
        };
        Self {
            whose: whose.clone(),
            access,
            ends,
            caller: Arc::new(caller),
            revoked,
        }
    }

    fn is_still(&self, found: &Found) -> bool {
        same_package(&self.access.package, &found.access.package)
            && self.access.scopes == found.access.scopes
            && self.ends == found.ends
    }
}

fn same_package(ours: &Arc<Package>, theirs: &Arc<Package>) -> bool {
    Arc::ptr_eq(ours, theirs) || ours == theirs
}

/// A name for what this caller sees of the lists, which its scopes and its grants decide.
fn view(access: &Access) -> String {
    let scopes: Vec<_> = access.scopes.iter().map(Scope::as_str).collect();
    let grants = match &access.package.grants {
        Grants::Everything => "everything".to_owned(),
        only @ Grants::Only(_) => Digest::of(&serde_json::to_vec(only).unwrap_or_default()).hex(),
    };
    format!("{}:{grants}", scopes.join("+"))
}
