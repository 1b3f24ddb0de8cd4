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

/// Everyone who came in and may still hold something open.
#[derive(Default)]
pub(super) struct Roster(Mutex<HashMap<String, Known>>);

struct Known {
    whose: Whose,
    access: Access,
    ends: Option<Millis>,
    caller: Arc<Caller>,
    revoked: CancellationToken,
}

impl Roster {
    fn locked(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller with this access. Any other the credential had before is over.
    pub(super) fn caller(
        &self,
        whose: &Whose,
        access: Access,
        ends: Option<Millis>,
        now: Millis,
        budgets: &Budgets,
    ) -> Arc<Caller> {
        let mut known = self.locked();
        if let Some(before) = known.get(whose.key()) {
            let same = same_package(&before.access.package, &access.package)
                && before.access.scopes == access.scopes
                && before.ends == ends;
            if same {
                return Arc::clone(&before.caller);
            }
            before.revoked.cancel();
        }
        if known.len() >= MANY {
            known.retain(|_, one| !one.caller.is_over());
        }
        let revoked = CancellationToken::new();
        let subject: Arc<str> = access.package.subject.as_str().into();
        let caller = Caller::new(Arc::clone(&subject))
            .with_view(view(&access))
            .within(budgets.of(&subject))
            .until(revoked.clone())
            .with(access.clone());
        let left = ends.map(|ends| u64::try_from(ends.saturating_sub(now)).unwrap_or(0));
        let caller = match left {
            // A clock that can go no further has no such moment.
            Some(left) => match Instant::now().checked_add(Duration::from_millis(left)) {
                Some(at) => caller.until_at(at),
                None => caller,
            },
            None => caller,
        };
        let caller = Arc::new(caller);
        let entry = Known {
            access,
            ends,
            caller: Arc::clone(&caller),
            revoked,
            whose: whose.clone(),
        };
        known.insert(whose.key().to_owned(), entry);
        caller
    }

    /// Every credential in it.
    pub(super) fn known(&self) -> Vec<Whose> {
        self.locked()
            .values()
            .map(|one| one.whose.clone())
            .collect()
    }

    /// Ends whatever a credential holds open.
    pub(super) fn end(&self, whose: &Whose) {
        if let Some(ended) = self.locked().remove(whose.key()) {
            ended.revoked.cancel();
        }
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
