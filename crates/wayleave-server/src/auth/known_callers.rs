//! Known callers by credential: a caller stays the same as long as its access stays the same.

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

use wayleave_project::{Settings, settings::Limits};

use super::{jwt::JwtAccess, limits::Budgets};
use crate::active_settings::ActiveSettings;

/// Number of callers of our own tokens above which ended ones are removed. There are never more
/// callers than issued tokens.
const TOKENS_BEFORE_CLEANUP: usize = 4096;
/// Maximum number of known access tokens of an issuer. Beyond it, the least recently used one is
/// ended.
const MAX_JWTS: usize = 4096;

/// Identifies a credential without holding its secret.
#[derive(Debug, Clone)]
pub(super) enum CredentialKey {
    /// One of our tokens, by its id.
    Token(String),
    /// An access token of an issuer.
    Jwt(Arc<JwtAccess>),
}

impl CredentialKey {
    fn key(&self) -> &str {
        match self {
            Self::Token(id) => id,
            Self::Jwt(jwt) => &jwt.key,
        }
    }
}

/// The access of a credential in one snapshot of the ledger.
pub(super) struct ResolvedAccess {
    /// The access itself.
    pub(super) access: Access,
    /// The settings it was resolved under.
    pub(super) settings: Arc<Settings>,
    /// When the access ends.
    pub(super) ends: Option<Millis>,
    /// When it was resolved.
    pub(super) now: Millis,
    /// The revision of the snapshot it was resolved in.
    pub(super) revision: u64,
}

/// The access was resolved in a snapshot of the ledger older than the last sweep, or under settings
/// that are no longer in force, and must not be used.
#[derive(Debug)]
pub(super) struct StaleState;

/// All callers that may still have open streams or requests.
///
/// No caller is admitted by a snapshot older than that of the last sweep, so that a caller ended by
/// the sweep does not come back.
pub(super) struct KnownCallers {
    tables: Mutex<CallerTables>,
    max_jwts: usize,
    settings: Arc<ActiveSettings>,
}

#[derive(Default)]
struct CallerTables {
    /// The revision of the last sweep.
    swept: u64,
    /// Counts uses of any credential.
    uses: u64,
    tokens: HashMap<String, KnownCaller>,
    jwts: HashMap<String, KnownCaller>,
}

struct KnownCaller {
    credential: CredentialKey,
    /// The use counter at its last use.
    last_used: u64,
    access: Access,
    limits: Limits,
    ends: Option<Millis>,
    caller: Arc<Caller>,
    revoked: Revocation,
}

/// The error for a running request whose credential is still valid, but has another access now.
fn superseded() -> RpcError {
    let why = "what this token may do changed while the request was under way; send it again";
    RpcError::new(RpcError::UNAUTHENTICATED, why)
        .with_data(json!({ "reason": "changed_authorization" }))
}

impl KnownCallers {
    /// An empty table; callers are admitted under these settings.
    pub(super) fn new(settings: Arc<ActiveSettings>) -> Self {
        Self {
            tables: Mutex::default(),
            max_jwts: MAX_JWTS,
            settings,
        }
    }

    fn locked(&self) -> MutexGuard<'_, CallerTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller with this access. Any other caller of the credential is ended.
    pub(super) fn caller(
        &self,
        credential: &CredentialKey,
        resolved: ResolvedAccess,
        budgets: &Budgets,
    ) -> Result<Arc<Caller>, StaleState> {
        let mut tables = self.locked();
        // Compare under the lock, so that no caller of older settings replaces one of newer
        // settings.
        if resolved.revision < tables.swept
            || !Arc::ptr_eq(&resolved.settings, &self.settings.now())
        {
            return Err(StaleState);
        }
        tables.uses = tables.uses.saturating_add(1);
        let last_used = tables.uses;
        let known = tables.table(credential);
        if let Some(before) = known.get_mut(credential.key()) {
            before.last_used = last_used;
            if before.has_same_access(&resolved) {
                if before.limits == resolved.settings.limits {
                    return Ok(Arc::clone(&before.caller));
                }
                // The same rights with other limits: running requests continue, under the same
                // revocation.
                let revoked = before.revoked.clone();
                *before = KnownCaller::new(credential, resolved, last_used, budgets, revoked);
                return Ok(Arc::clone(&before.caller));
            }
            before.revoked.end(superseded());
        } else {
            match credential {
                CredentialKey::Token(_) => remove_ended(known, TOKENS_BEFORE_CLEANUP),
                CredentialKey::Jwt(_) => make_room(known, self.max_jwts),
            }
        }
        let revoked = Revocation::default();
        let entry = KnownCaller::new(credential, resolved, last_used, budgets, revoked);
        let caller = Arc::clone(&entry.caller);
        known.insert(credential.key().to_owned(), entry);
        Ok(caller)
    }

    /// Returns all known credentials. From now on no caller is admitted by a snapshot older than
    /// `revision`.
    pub(super) fn sweep(&self, revision: u64) -> Vec<CredentialKey> {
        let mut tables = self.locked();
        tables.swept = tables.swept.max(revision);
        let known = tables.tokens.values().chain(tables.jwts.values());
        known.map(|one| one.credential.clone()).collect()
    }

    /// Credentials whose access has ended by the clock. Their streams also end by a timer, but the
    /// clock is ahead of it after it was set or the machine slept.
    pub(super) fn expired(&self, now: Millis) -> Vec<CredentialKey> {
        let tables = self.locked();
        let known = tables.tokens.values().chain(tables.jwts.values());
        known
            .filter(|one| one.ends.is_some_and(|ends| ends <= now))
            .map(|one| one.credential.clone())
            .collect()
    }

    /// Ends all streams and requests of a credential; running requests are answered with `why`.
    pub(super) fn end(&self, credential: &CredentialKey, why: RpcError) {
        if let Some(ended) = self.locked().table(credential).remove(credential.key()) {
            ended.revoked.end(why);
        }
    }
}

impl CallerTables {
    /// All credentials of the same kind.
    fn table(&mut self, credential: &CredentialKey) -> &mut HashMap<String, KnownCaller> {
        match credential {
            CredentialKey::Token(_) => &mut self.tokens,
            CredentialKey::Jwt(_) => &mut self.jwts,
        }
    }
}

fn remove_ended(known: &mut HashMap<String, KnownCaller>, many: usize) {
    if known.len() >= many {
        known.retain(|_, one| !one.caller.is_over());
    }
}

/// Makes room for one more caller: removes ended ones first, then the least recently used.
fn make_room(known: &mut HashMap<String, KnownCaller>, max: usize) {
    remove_ended(known, max);
    while known.len() >= max {
        let longest = known.iter().min_by_key(|(_, one)| one.last_used);
        let Some(key) = longest.map(|(key, _)| key.clone()) else {
            return;
        };
        if let Some(ended) = known.remove(&key) {
            ended.revoked.end(superseded());
        }
    }
}

impl KnownCaller {
    fn new(
        credential: &CredentialKey,
        resolved: ResolvedAccess,
        last_used: u64,
        budgets: &Budgets,
        revoked: Revocation,
    ) -> Self {
        let limits = resolved.settings.limits;
        let ResolvedAccess {
            access, ends, now, ..
        } = resolved;
        let subject: Arc<str> = access.package.subject.as_str().into();
        let caller = Caller::new(Arc::clone(&subject))
            .with_view(view(&access))
            .with_budget(budgets.budget(&subject, limits))
            .with_revocation(revoked.clone())
            .with_attachment(access.clone());
        let left = ends.map(|ends| u64::try_from(ends.saturating_sub(now)).unwrap_or(0));
        // An end beyond the clock's range needs no timer.
        let over = left.and_then(|left| Instant::now().checked_add(Duration::from_millis(left)));
        let caller = match over {
            Some(at) => caller.with_expiry(at),
            None => caller,
        };
        Self {
            credential: credential.clone(),
            last_used,
            access,
            limits,
            ends,
            caller: Arc::new(caller),
            revoked,
        }
    }

    fn has_same_access(&self, resolved: &ResolvedAccess) -> bool {
        same_package(&self.access.package, &resolved.access.package)
            && self.access.scopes == resolved.access.scopes
            && self.access.max_own_tools == resolved.access.max_own_tools
            && self.ends == resolved.ends
    }
}

fn same_package(ours: &Arc<Package>, theirs: &Arc<Package>) -> bool {
    Arc::ptr_eq(ours, theirs) || ours == theirs
}

/// The name of the lists this caller sees, made of its scopes, its grants and its number of tools.
fn view(access: &Access) -> String {
    let scopes: Vec<_> = access.scopes.iter().map(Scope::as_str).collect();
    let grants = match &access.package.grants {
        Grants::Everything => "everything".to_owned(),
        only @ Grants::Only(_) => {
            // Without this text, all packages would share one view.
            #[expect(clippy::expect_used, reason = "grants are text under text")]
            let text = serde_json::to_vec(only).expect("grants are written as JSON");
            Digest::from_bytes(&text).hex()
        }
    };
    let own_tools = access.max_own_tools;
    format!("{}:{own_tools:?}:{grants}", scopes.join("+"))
}

#[cfg(test)]
mod tests {
    use wayleave_model::grant::Scopes;

    use super::*;

    struct Fixture {
        known_callers: KnownCallers,
        budgets: Budgets,
        settings: Arc<ActiveSettings>,
    }

    impl Fixture {
        fn with_room_for(max_jwts: usize) -> Self {
            let settings = Settings::parse("").unwrap();
            let settings = Arc::new(ActiveSettings::fixed(settings));
            Self {
                known_callers: KnownCallers {
                    max_jwts,
                    ..KnownCallers::new(Arc::clone(&settings))
                },
                budgets: Budgets::default(),
                settings,
            }
        }

        fn caller(&self, credential: &CredentialKey, ends: Millis) -> Arc<Caller> {
            let package = Package {
                subject: credential.key().to_owned(),
                epoch: 0,
                grants: Grants::Only(Arc::default()),
            };
            let resolved = ResolvedAccess {
                access: Access {
                    package: Arc::new(package),
                    scopes: Scopes::RUNTIME,
                    authenticated: true,
                    max_own_tools: None,
                },
                settings: self.settings.now(),
                ends: Some(ends),
                now: 0,
                revision: 0,
            };
            self.known_callers
                .caller(credential, resolved, &self.budgets)
                .unwrap()
        }
    }

    fn jwt(key: &str) -> CredentialKey {
        CredentialKey::Jwt(Arc::new(JwtAccess::forged(key)))
    }

    const LATER: Millis = 3_600_000;

    #[test]
    fn of_too_many_access_tokens_the_one_not_used_for_longest_is_over() {
        let uses = Fixture::with_room_for(2);
        let ours = uses.caller(&CredentialKey::Token("ours".to_owned()), LATER);
        let ana = uses.caller(&jwt("ana"), LATER);
        let ben = uses.caller(&jwt("ben"), LATER);
        assert!(Arc::ptr_eq(&ana, &uses.caller(&jwt("ana"), LATER)));
        let eve = uses.caller(&jwt("eve"), LATER);
        assert_eq!(
            [&ours, &ana, &ben, &eve].map(|it| it.is_over()),
            [false, false, true, false]
        );
        // An evicted caller may come again.
        assert!(!uses.caller(&jwt("ben"), LATER).is_over());
        assert_eq!(uses.known_callers.sweep(0).len(), 3);
    }

    #[test]
    fn an_access_token_that_is_over_leaves_before_one_that_is_not() {
        let uses = Fixture::with_room_for(2);
        let ana = uses.caller(&jwt("ana"), LATER);
        uses.caller(&jwt("ben"), 0);
        uses.caller(&jwt("eve"), LATER);
        assert!(!ana.is_over());
    }
}
