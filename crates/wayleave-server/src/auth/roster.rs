//! Callers by their credentials: the same one as long as what it may do is the same.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::json;
use tokio::time::Instant;
use wayleave_ledger::Millis;
use wayleave_mcp::{Caller, Revocation, RpcError};
use wayleave_model::{digest::Digest, grant::Scope};
use wayleave_plan::package::{Grants, Package};
use wayleave_surface::access::Access;

use super::{jwt::Opened, limits::Budgets};

/// When there are more tokens of ours than this, those that are over are forgotten. There are never
/// more than were issued.
const MANY: usize = 4096;
/// The most access tokens of an issuer that are known at once, of which there is no end. When there
/// are more, what the one that was not used for longest holds open is ended.
const MOST_JWTS: usize = 4096;

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
pub(super) struct Roster {
    book: Mutex<Book>,
    most_jwts: usize,
}

#[derive(Default)]
struct Book {
    /// The state by which everyone was last called.
    called: u64,
    /// How often somebody came.
    visits: u64,
    tokens: HashMap<String, Known>,
    jwts: HashMap<String, Known>,
}

struct Known {
    whose: Whose,
    /// The number of its last visit.
    visit: u64,
    access: Access,
    ends: Option<Millis>,
    caller: Arc<Caller>,
    revoked: Revocation,
}

/// What a request under way is answered whose credential is good, but not for what it was.
fn superseded() -> RpcError {
    let why = "what this token may do changed while the request was under way; send it again";
    RpcError::new(RpcError::UNAUTHENTICATED, why)
        .with_data(json!({ "reason": "changed_authorization" }))
}

impl Default for Roster {
    fn default() -> Self {
        Self {
            book: Mutex::default(),
            most_jwts: MOST_JWTS,
        }
    }
}

impl Roster {
    fn locked(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
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
        book.visits = book.visits.saturating_add(1);
        let visit = book.visits;
        let known = book.like(whose);
        if let Some(before) = known.get_mut(whose.key()) {
            before.visit = visit;
            if before.is_still(&found) {
                return Ok(Arc::clone(&before.caller));
            }
            before.revoked.end(superseded());
        } else {
            match whose {
                Whose::Token(_) => forget_over(known, MANY),
                Whose::Jwt(_) => make_room(known, self.most_jwts),
            }
        }
        let entry = Known::new(whose, found, visit, budgets);
        let caller = Arc::clone(&entry.caller);
        known.insert(whose.key().to_owned(), entry);
        Ok(caller)
    }

    /// Every credential in it. From now on nobody comes in by a state older than `order`.
    pub(super) fn call(&self, order: u64) -> Vec<Whose> {
        let mut book = self.locked();
        book.called = book.called.max(order);
        let known = book.tokens.values().chain(book.jwts.values());
        known.map(|one| one.whose.clone()).collect()
    }

    /// Credentials that have changed or are over by the clock. What they hold open ends by itself
    /// when that much time has passed; a clock that was set, or a machine that slept, is ahead of it.
    pub(super) fn due(&self, now: Millis) -> Vec<Whose> {
        let book = self.locked();
        let known = book.tokens.values().chain(book.jwts.values());
        known
            .filter(|one| one.ends.is_some_and(|ends| ends <= now))
            .map(|one| one.whose.clone())
            .collect()
    }

    /// Ends whatever a credential holds open; its requests under way are told why.
    pub(super) fn end(&self, whose: &Whose, why: RpcError) {
        if let Some(ended) = self.locked().like(whose).remove(whose.key()) {
            ended.revoked.end(why);
        }
    }
}

impl Book {
    /// All credentials of the same kind.
    fn like(&mut self, whose: &Whose) -> &mut HashMap<String, Known> {
        match whose {
            Whose::Token(_) => &mut self.tokens,
            Whose::Jwt(_) => &mut self.jwts,
        }
    }
}

fn forget_over(known: &mut HashMap<String, Known>, many: usize) {
    if known.len() >= many {
        known.retain(|_, one| !one.caller.is_over());
    }
}

/// Makes room for one more: who is over leaves first, then who was away for longest.
fn make_room(known: &mut HashMap<String, Known>, most: usize) {
    forget_over(known, most);
    while known.len() >= most {
        let longest = known.iter().min_by_key(|(_, one)| one.visit);
        let Some(key) = longest.map(|(key, _)| key.clone()) else {
            return;
        };
        if let Some(ended) = known.remove(&key) {
            ended.revoked.end(superseded());
        }
    }
}

impl Known {
    fn new(whose: &Whose, found: Found, visit: u64, budgets: &Budgets) -> Self {
        let Found {
            access, ends, now, ..
        } = found;
        let revoked = Revocation::default();
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
            visit,
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

#[cfg(test)]
mod tests {
    use wayleave_model::grant::Scopes;

    use super::*;
    use crate::Settings;

    struct Visits {
        roster: Roster,
        budgets: Budgets,
    }

    impl Visits {
        fn with_room_for(most_jwts: usize) -> Self {
            Self {
                roster: Roster {
                    most_jwts,
                    ..Roster::default()
                },
                budgets: Budgets::new(Settings::parse("").unwrap().limits),
            }
        }

        fn come(&self, whose: &Whose, ends: Millis) -> Arc<Caller> {
            let package = Package {
                subject: whose.key().to_owned(),
                epoch: 0,
                grants: Grants::Only(Arc::default()),
            };
            let found = Found {
                access: Access {
                    package: Arc::new(package),
                    scopes: Scopes::RUNTIME,
                    authenticated: true,
                },
                ends: Some(ends),
                now: 0,
                order: 0,
            };
            self.roster.caller(whose, found, &self.budgets).unwrap()
        }
    }

    fn jwt(key: &str) -> Whose {
        Whose::Jwt(Arc::new(Opened::forged(key)))
    }

    const LATER: Millis = 3_600_000;

    #[test]
    fn of_too_many_access_tokens_the_one_not_used_for_longest_is_over() {
        let visits = Visits::with_room_for(2);
        let ours = visits.come(&Whose::Token("ours".to_owned()), LATER);
        let ana = visits.come(&jwt("ana"), LATER);
        let ben = visits.come(&jwt("ben"), LATER);
        assert!(Arc::ptr_eq(&ana, &visits.come(&jwt("ana"), LATER)));
        let eve = visits.come(&jwt("eve"), LATER);
        assert_eq!(
            [&ours, &ana, &ben, &eve].map(|it| it.is_over()),
            [false, false, true, false]
        );
        // Whoever had to leave may come again.
        assert!(!visits.come(&jwt("ben"), LATER).is_over());
        assert_eq!(visits.roster.call(0).len(), 3);
    }

    #[test]
    fn an_access_token_that_is_over_leaves_before_one_that_is_not() {
        let visits = Visits::with_room_for(2);
        let ana = visits.come(&jwt("ana"), LATER);
        visits.come(&jwt("ben"), 0);
        visits.come(&jwt("eve"), LATER);
        assert!(!ana.is_over());
    }
}
