//! Who may come in, over HTTP and over stdio.
//!
//! A credential becomes a [`Caller`] with its [`Access`], or a [`Refusal`]. It is looked up at
//! every request in the ledger as it then is: what was revoked a moment ago, by whatever process,
//! opens nothing. What an access lets its caller do is not known here.

mod bearer;
mod http;
mod jwt;
mod limits;
mod metadata;
mod refusal;
mod roster;
mod rules;
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
use wayleave_ledger::{Clock, LedgerError, Millis, SystemClock, TokenEntry, Validity};
use wayleave_mcp::Caller;
use wayleave_model::grant::{Scopes, TokenKind, TokenSecret};
use wayleave_plan::package::Package;
use wayleave_surface::access::Access;

pub use self::{
    http::HttpDoor,
    refusal::Refusal,
    rules::{UnknownGrant, unknown_grants},
    stdio::{GivenToken, NotAnAgents, StdioDoor},
};
use self::{
    jwt::Jwt,
    limits::Budgets,
    roster::{Found, Outdated, Roster, Whose},
};
use crate::{
    Settings,
    overview::with_causes,
    packages::Packages,
    watch::{LedgerWatch, Seen},
};

/// How often the clock is looked at for credentials whose time is over. What they hold open also
/// has a timer, which does not run while the machine sleeps and does not hear of a clock that is set.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// The credentials a deployment takes. Cheap to clone; every clone takes the same.
#[derive(Clone)]
pub struct Credentials(Arc<Shared>);

struct Shared {
    watch: LedgerWatch,
    packages: Packages,
    ceiling: Scopes,
    budgets: Budgets,
    roster: Roster,
    jwt: Option<Jwt>,
    clock: Arc<dyn Clock>,
    /// Ends the task that looks after revocation.
    _stop: DropGuard,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Takes the credentials the settings name, of the ledger that is watched. While any clone of
    /// this is there, whatever is revoked ends within a moment.
    pub fn new(watch: LedgerWatch, settings: &Settings) -> Self {
        Self::with_clock(watch, settings, Arc::new(SystemClock))
    }

    /// The same, by a clock of one's own.
    pub fn with_clock(watch: LedgerWatch, settings: &Settings, clock: Arc<dyn Clock>) -> Self {
        let stop = CancellationToken::new();
        let moved = watch.subscribe();
        let shared = Arc::new(Shared {
            watch,
            packages: Packages::default(),
            ceiling: settings.scopes,
            budgets: Budgets::new(settings.limits),
            roster: Roster::default(),
            jwt: settings.jwt.clone().map(|jwt| Jwt::new(jwt, &clock)),
            clock,
            _stop: stop.clone().drop_guard(),
        });
        tokio::spawn(sweep(Arc::downgrade(&shared), moved, stop));
        Self(shared)
    }

    /// Whether there is a credential at all that would be taken.
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

    /// Whether the ledger can be read now. While it cannot, nobody is let in, be it without a
    /// token: what was taken out of service could not be noticed.
    async fn check_ledger(&self) -> Result<(), Refusal> {
        self.0.fresh().await.map(drop)
    }

    /// Who brought this text. An owner's token is refused unlooked at.
    pub async fn caller(&self, text: &str) -> Result<Arc<Caller>, Refusal> {
        match TokenKind::of(text) {
            Some(TokenKind::Client) => {
                let secret = TokenSecret::parse(text).map_err(|_| Refusal::from_malformed(text))?;
                self.0.of_token(&secret).await
            }
            Some(kind @ (TokenKind::Owner | TokenKind::Control)) => Err(Refusal::NotAnAgents(kind)),
            None => match &self.0.jwt {
                Some(jwt) if jwt::looks_like_one(text) => self.0.of_jwt(jwt, text).await,
                _ => Err(Refusal::from_malformed(text)),
            },
        }
    }
}

impl Shared {
    async fn fresh(&self) -> Result<Arc<Seen>, Refusal> {
        let fresh = self.watch.look().await;
        fresh.map_err(|error| {
            let reason = with_causes(&error);
            tracing::error!(reason, "the ledger cannot be read; nobody is let in");
            Refusal::Unavailable
        })
    }

    async fn of_token(&self, secret: &TokenSecret) -> Result<Arc<Caller>, Refusal> {
        let seen = self.fresh().await?;
        let hash = secret.hash();
        self.admitted(seen, |seen| {
            let token = seen.state().token(&hash).ok_or(Refusal::Invalid)?;
            self.of_entry(seen, token)
        })
    }

    async fn of_jwt(&self, jwt: &Jwt, text: &str) -> Result<Arc<Caller>, Refusal> {
        let opened = jwt.opened(text, self.clock.now()).await?;
        let seen = self.fresh().await?;
        self.admitted(seen, |seen| {
            if opened.is_over(seen.state().now(self.clock.now())) {
                return Err(Refusal::Expired);
            }
            Ok(self.of_opened(seen, &opened))
        })
    }

    /// Whoever `find` finds in what was seen of the ledger. If everyone has been looked at since
    /// in a later state, that state decides.
    fn admitted(
        &self,
        mut seen: Arc<Seen>,
        find: impl Fn(&Seen) -> Result<Result<Arc<Caller>, Outdated>, Refusal>,
    ) -> Result<Arc<Caller>, Refusal> {
        loop {
            match find(&seen)? {
                Ok(caller) => return Ok(caller),
                Err(Outdated) => seen = self.watch.last(),
            }
        }
    }

    /// Whoever brought this token, if it counts now.
    fn of_entry(
        &self,
        seen: &Seen,
        token: &TokenEntry,
    ) -> Result<Result<Arc<Caller>, Outdated>, Refusal> {
        let state = seen.state();
        let now = state.now(self.clock.now());
        match (token.kind, token.validity(now)) {
            (TokenKind::Client, Validity::Live) => {}
            (TokenKind::Client, Validity::Expired) => return Err(Refusal::Expired),
            (TokenKind::Client, Validity::Revoked) => return Err(Refusal::Revoked),
            (kind, _) => return Err(Refusal::NotAnAgents(kind)),
        }
        let grants = token.grants.iter().filter_map(|id| state.grant(id));
        let ends = grants
            .filter(|grant| grant.validity(now) == Validity::Live)
            .map(|grant| grant.expires)
            .chain([token.expires])
            .flatten()
            .min();
        let package = self.packages.of(state, token, now);
        let found = self.found(seen, package, token.scopes, ends, now);
        let whose = Whose::Token(token.id.clone());
        Ok(self.roster.caller(&whose, found, &self.budgets))
    }

    fn of_opened(&self, seen: &Seen, opened: &Arc<jwt::Opened>) -> Result<Arc<Caller>, Outdated> {
        let now = seen.state().now(self.clock.now());
        let (package, ends) = opened.package(seen.state(), now);
        let found = self.found(seen, package, opened.scopes, Some(ends), now);
        let whose = Whose::Jwt(Arc::clone(opened));
        self.roster.caller(&whose, found, &self.budgets)
    }

    fn found(
        &self,
        seen: &Seen,
        package: Arc<Package>,
        scopes: Scopes,
        ends: Option<Millis>,
        now: Millis,
    ) -> Found {
        Found {
            access: Access {
                package,
                scopes: self.ceiling.intersection(scopes),
                authenticated: true,
            },
            ends,
            now,
            order: seen.order(),
        }
    }

    /// Ends what callers hold open whose access has changed, or is over.
    fn end_changed(&self) {
        let seen = self.watch.last();
        for whose in self.roster.call(seen.order()) {
            self.reconsider(&seen, &whose);
        }
    }

    /// The same, where the clock says so.
    fn end_due(&self) {
        let due = self.roster.due(self.clock.now());
        if due.is_empty() {
            return;
        }
        let seen = self.watch.last();
        for whose in due {
            self.reconsider(&seen, &whose);
        }
    }

    fn reconsider(&self, seen: &Seen, whose: &Whose) {
        // A changed access replaces the one before it in the roster, and so ends it.
        let over = match whose {
            Whose::Token(id) => match seen.state().tokens().get(id) {
                Some(token) => self.of_entry(seen, token).err(),
                None => Some(Refusal::Invalid),
            },
            Whose::Jwt(opened) => {
                let _ = self.of_opened(seen, opened);
                let expired = opened.is_over(seen.state().now(self.clock.now()));
                expired.then_some(Refusal::Expired)
            }
        };
        if let Some(refusal) = over {
            self.roster.end(whose, refusal.error());
        }
    }
}

/// Looks again at everyone who is in, whenever the ledger has moved, and at those whose time is
/// over.
async fn sweep(shared: Weak<Shared>, mut moved: watch::Receiver<u64>, stop: CancellationToken) {
    let mut ticks = interval(EXPIRY_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let by_the_clock = tokio::select! {
            () = stop.cancelled() => return,
            moved = moved.changed() => match moved {
                Ok(()) => false,
                Err(_) => return,
            },
            _ = ticks.tick() => true,
        };
        match shared.upgrade() {
            Some(shared) if by_the_clock => shared.end_due(),
            Some(shared) => shared.end_changed(),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests;
