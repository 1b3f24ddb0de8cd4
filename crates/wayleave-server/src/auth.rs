//! Authentication over HTTP and over stdio.
//!
//! A credential becomes a [`Caller`] with its [`Access`], or a [`Refusal`]. Every request looks it
//! up in the current state of the ledger: a credential revoked a moment ago, by any process, is
//! refused. This module must not know what an access allows.

mod bearer;
mod http;
pub(crate) mod jwt;
mod known_callers;
mod limits;
mod metadata;
mod refusal;
mod stdio;

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use wayleave_ledger::{
    Clock, LedgerError, Millis, MonotonicClock, SystemClock, TokenEntry, Validity,
};
use wayleave_mcp::Caller;
use wayleave_model::grant::{Scopes, TokenKind, TokenSecret};
use wayleave_plan::package::Package;
use wayleave_project::{Settings, explanation::with_causes};
use wayleave_surface::access::Access;

pub use self::{
    http::HttpAuth,
    refusal::Refusal,
    stdio::{NonAgentToken, ProcessToken, StdioAuth},
};
use self::{
    jwt::Jwt,
    known_callers::{CredentialKey, KnownCallers, ResolvedAccess, StaleState},
    limits::Budgets,
};
use crate::{
    active_settings::ActiveSettings,
    packages::PackageCache,
    watch::{LedgerSnapshot, LedgerWatch},
};

/// Interval at which credentials are checked for expiry by the clock. Open streams also have a
/// timer, but timers do not run while the machine sleeps, and do not follow a clock that is set.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// The credentials a deployment accepts. Cheap to clone; every clone accepts the same.
#[derive(Clone)]
pub struct Credentials(Arc<Shared>);

struct Shared {
    watch: LedgerWatch,
    packages: PackageCache,
    settings: Arc<ActiveSettings>,
    budgets: Budgets,
    known_callers: KnownCallers,
    jwt: Option<Jwt>,
    clock: Arc<dyn Clock>,
    /// Ends the task that watches for revocation.
    _stop: DropGuard,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Accepts the tokens of the watched ledger, and those of the issuer in the settings. While any
    /// clone of this exists, a revocation takes effect within a moment.
    pub fn new(watch: LedgerWatch, settings: &Settings) -> Self {
        Self::with_clock(watch, settings, Arc::new(SystemClock))
    }

    /// The same, with a given clock.
    pub fn with_clock(watch: LedgerWatch, settings: &Settings, clock: Arc<dyn Clock>) -> Self {
        let settings = Arc::new(ActiveSettings::fixed(settings.clone()));
        Self::with_active_settings(watch, settings, clock)
    }

    /// The same, with settings that may change meanwhile. Each request is admitted under one
    /// snapshot of them.
    pub fn with_active_settings(
        watch: LedgerWatch,
        settings: Arc<ActiveSettings>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        // A credential that has expired stays so while this process runs, even if the clock is set
        // back.
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new(clock));
        let jwt = settings.now().jwt.clone();
        let edited = settings.changes();
        let stop = CancellationToken::new();
        let moved = watch.subscribe();
        let shared = Arc::new(Shared {
            watch,
            packages: PackageCache::default(),
            budgets: Budgets::default(),
            known_callers: KnownCallers::new(Arc::clone(&settings)),
            settings,
            jwt: jwt.map(|jwt| Jwt::new(jwt, &clock)),
            clock,
            _stop: stop.clone().drop_guard(),
        });
        tokio::spawn(sweep(Arc::downgrade(&shared), moved, edited, stop));
        Self(shared)
    }

    /// Whether any credential would be accepted now.
    pub async fn any(&self) -> Result<bool, LedgerError> {
        if self.0.jwt.is_some() {
            return Ok(true);
        }
        let state = self.0.watch.fresh().await?;
        let now = state.now(self.0.clock.now());
        Ok(state
            .tokens()
            .values()
            .any(|token| token.kind == TokenKind::Client && token.validity(now) == Validity::Live))
    }

    /// Checks that the ledger can be read now. While it cannot, nobody is admitted, not even
    /// without a token: a revocation could not be noticed.
    async fn check_ledger(&self) -> Result<(), Refusal> {
        self.0.fresh().await.map(drop)
    }

    /// The caller with this credential. Refuses an owner's or a control token without a lookup.
    pub async fn caller(&self, text: &str) -> Result<Arc<Caller>, Refusal> {
        match TokenKind::from_prefix_of(text) {
            Some(TokenKind::Client) => {
                let secret = TokenSecret::parse(text).map_err(|_| Refusal::from_malformed(text))?;
                self.0.caller_by_token(&secret).await
            }
            Some(kind @ (TokenKind::Owner | TokenKind::Control)) => {
                Err(Refusal::NonAgentToken(kind))
            }
            None => match &self.0.jwt {
                Some(jwt) if jwt::looks_like_jwt(text) => self.0.caller_by_jwt(jwt, text).await,
                _ => Err(Refusal::from_malformed(text)),
            },
        }
    }
}

impl Shared {
    async fn fresh(&self) -> Result<Arc<LedgerSnapshot>, Refusal> {
        let fresh = self.watch.refresh().await;
        fresh.map_err(|error| {
            let reason = with_causes(&error);
            tracing::error!(
                reason,
                "the ledger cannot be read; all requests are refused"
            );
            Refusal::Unavailable
        })
    }

    async fn caller_by_token(&self, secret: &TokenSecret) -> Result<Arc<Caller>, Refusal> {
        let snapshot = self.fresh().await?;
        let hash = secret.hash();
        self.admitted(snapshot, |snapshot| {
            let token = snapshot.state().token(&hash).ok_or(Refusal::Invalid)?;
            self.caller_of_token(snapshot, token)
        })
    }

    async fn caller_by_jwt(&self, jwt: &Jwt, text: &str) -> Result<Arc<Caller>, Refusal> {
        let jwt_access = jwt.access(text, self.clock.now()).await?;
        let snapshot = self.fresh().await?;
        self.admitted(snapshot, |snapshot| {
            if jwt_access.is_over(snapshot.state().now(self.clock.now())) {
                return Err(Refusal::Expired);
            }
            Ok(self.caller_of_jwt(snapshot, &jwt_access))
        })
    }

    /// The caller that `find` resolves in a snapshot of the ledger. If all callers have since been
    /// swept with a later snapshot, that snapshot decides.
    fn admitted(
        &self,
        mut snapshot: Arc<LedgerSnapshot>,
        find: impl Fn(&LedgerSnapshot) -> Result<Result<Arc<Caller>, StaleState>, Refusal>,
    ) -> Result<Arc<Caller>, Refusal> {
        loop {
            match find(&snapshot)? {
                Ok(caller) => return Ok(caller),
                Err(StaleState) => snapshot = self.watch.snapshot(),
            }
        }
    }

    /// The caller of this token, if it is valid now.
    fn caller_of_token(
        &self,
        snapshot: &LedgerSnapshot,
        token: &TokenEntry,
    ) -> Result<Result<Arc<Caller>, StaleState>, Refusal> {
        let state = snapshot.state();
        let now = state.now(self.clock.now());
        match (token.kind, token.validity(now)) {
            (TokenKind::Client, Validity::Live) => {}
            (TokenKind::Client, Validity::Expired) => return Err(Refusal::Expired),
            (TokenKind::Client, Validity::Revoked) => return Err(Refusal::Revoked),
            (kind, _) => return Err(Refusal::NonAgentToken(kind)),
        }
        let grants = token.grants.iter().filter_map(|id| state.grant(id));
        let ends = grants
            .filter(|grant| grant.validity(now) == Validity::Live)
            .map(|grant| grant.expires)
            .chain([token.expires])
            .flatten()
            .min();
        let package = self.packages.get(state, token, now);
        let resolved = self.resolve(snapshot, package, token.scopes, ends, now);
        let credential = CredentialKey::Token(token.id.clone());
        Ok(self
            .known_callers
            .caller(&credential, resolved, &self.budgets))
    }

    fn caller_of_jwt(
        &self,
        snapshot: &LedgerSnapshot,
        jwt_access: &Arc<jwt::JwtAccess>,
    ) -> Result<Arc<Caller>, StaleState> {
        let now = snapshot.state().now(self.clock.now());
        let (package, ends) = jwt_access.package(snapshot.state(), now);
        let resolved = self.resolve(snapshot, package, jwt_access.scopes, Some(ends), now);
        let credential = CredentialKey::Jwt(Arc::clone(jwt_access));
        self.known_callers
            .caller(&credential, resolved, &self.budgets)
    }

    fn resolve(
        &self,
        snapshot: &LedgerSnapshot,
        package: Arc<Package>,
        scopes: Scopes,
        ends: Option<Millis>,
        now: Millis,
    ) -> ResolvedAccess {
        let settings = self.settings.now();
        ResolvedAccess {
            access: Access {
                package,
                scopes: settings.scopes.intersection(scopes),
                authenticated: true,
                max_own_tools: Some(settings.dataset_tools),
            },
            settings,
            ends,
            now,
            revision: snapshot.revision(),
        }
    }

    /// Ends the open streams and requests of callers whose access has changed or ended.
    fn sweep_changed(&self) {
        let snapshot = self.watch.snapshot();
        for credential in self.known_callers.sweep(snapshot.revision()) {
            self.reconsider(&snapshot, &credential);
        }
    }

    /// The same for credentials that expired by the clock.
    fn sweep_expired(&self) {
        let expired = self.known_callers.expired(self.clock.now());
        if expired.is_empty() {
            return;
        }
        let snapshot = self.watch.snapshot();
        for credential in expired {
            self.reconsider(&snapshot, &credential);
        }
    }

    fn reconsider(&self, snapshot: &LedgerSnapshot, credential: &CredentialKey) {
        // Resolving a changed access replaces the known caller, which ends it.
        let over = match credential {
            CredentialKey::Token(id) => match snapshot.state().tokens().get(id) {
                Some(token) => self.caller_of_token(snapshot, token).err(),
                None => Some(Refusal::Invalid),
            },
            CredentialKey::Jwt(jwt_access) => {
                let _ = self.caller_of_jwt(snapshot, jwt_access);
                let expired = jwt_access.is_over(snapshot.state().now(self.clock.now()));
                expired.then_some(Refusal::Expired)
            }
        };
        if let Some(refusal) = over {
            self.known_callers.end(credential, refusal.error());
        }
    }
}

/// Resolves all known callers again whenever the ledger or the settings have changed, and expired
/// ones by the clock.
async fn sweep(
    shared: Weak<Shared>,
    mut moved: watch::Receiver<u64>,
    mut edited: watch::Receiver<u64>,
    stop: CancellationToken,
) {
    let mut ticks = interval(EXPIRY_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let by_the_clock = tokio::select! {
            () = stop.cancelled() => return,
            moved = moved.changed() => match moved {
                Ok(()) => false,
                Err(_) => return,
            },
            edited = edited.changed() => match edited {
                Ok(()) => false,
                Err(_) => return,
            },
            _ = ticks.tick() => true,
        };
        match shared.upgrade() {
            Some(shared) if by_the_clock => shared.sweep_expired(),
            Some(shared) => shared.sweep_changed(),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests;
