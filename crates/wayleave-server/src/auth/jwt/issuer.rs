//! The keys of an issuer, fetched when needed, and cached.
//!
//! No request waits for keys that are still valid: they are renewed in the background. Only
//! requests that need an unknown key wait, all of them for one answer of the issuer.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use serde::Deserialize;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use url::Url;
use wayleave_ledger::{Clock, Millis};
use wayleave_project::settings::{self, Issuer};

use super::{
    fetch::{FetchError, Fetcher},
    keys::Keys,
};

/// Validity of cached keys, and intervals and deadline of their fetches.
#[derive(Debug, Clone, Copy)]
struct KeyTiming {
    /// Keys younger than this are not fetched again, unless one is missing.
    refresh_after: Duration,
    /// Keys older than this are not trusted, even if the issuer cannot be reached.
    max_age: Duration,
    /// Shortest interval between two fetches, however many tokens name unknown keys.
    min_fetch_interval: Duration,
    /// Deadline of a renewal, with all its fetches.
    fetch_timeout: Duration,
}

impl Default for KeyTiming {
    fn default() -> Self {
        Self {
            refresh_after: Duration::from_mins(5),
            max_age: Duration::from_hours(1),
            min_fetch_interval: Duration::from_secs(10),
            fetch_timeout: Duration::from_secs(5),
        }
    }
}

/// Why keys are not available.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("cannot fetch `{url}`")]
    Fetcher {
        url: Url,
        #[source]
        cause: FetchError,
    },
    #[error("`{url}` is not what its issuer should publish there")]
    Document { url: Url },
    #[error("the issuer took too long")]
    Slow,
    #[error("the last fetch of the issuer's keys failed; waiting before the next")]
    Recently,
}

/// The keys of one issuer.
pub(crate) struct IssuerKeys {
    shared: Arc<Shared>,
    fetch_state: Mutex<FetchState>,
}

struct Shared {
    issuer: Issuer,
    fetch: Fetcher,
    timing: KeyTiming,
    clock: Arc<dyn Clock>,
    held: ArcSwapOption<CachedKeys>,
}

struct CachedKeys {
    keys: Arc<Keys>,
    since: Instant,
    /// The same by the wall clock, which keeps running while the machine sleeps.
    fetched_at: Millis,
}

impl CachedKeys {
    /// Their age: the greater of those by the two clocks.
    fn age(&self, clock: &dyn Clock) -> Duration {
        // The wall clock may have been set back.
        let wall_age = u64::try_from(clock.now().saturating_sub(self.fetched_at)).unwrap_or(0);
        self.since.elapsed().max(Duration::from_millis(wall_age))
    }
}

/// The outcome of a fetch; `None` while it runs.
type Outcome = Option<Result<(), Arc<KeysError>>>;

#[derive(Default)]
struct FetchState {
    last: Option<Instant>,
    /// The last fetch. It is aborted when the keys are dropped.
    under_way: Option<(watch::Receiver<Outcome>, AbortOnDropHandle<()>)>,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl IssuerKeys {
    pub(crate) fn new(issuer: Issuer, clock: Arc<dyn Clock>) -> Self {
        Self::with_times(issuer, KeyTiming::default(), clock)
    }

    fn with_times(issuer: Issuer, timing: KeyTiming, clock: Arc<dyn Clock>) -> Self {
        Self {
            shared: Arc::new(Shared {
                issuer,
                fetch: Fetcher::new(),
                timing,
                clock,
                held: ArcSwapOption::empty(),
            }),
            fetch_state: Mutex::default(),
        }
    }

    pub(crate) fn issuer(&self) -> &Issuer {
        &self.shared.issuer
    }

    /// The keys, including the one with the id `wanted` if the issuer has it.
    pub(crate) async fn with(&self, wanted: Option<&str>) -> Result<Arc<Keys>, Arc<KeysError>> {
        if let Some(held) = self.shared.valid_keys() {
            let fresh = held.age(&*self.shared.clock) < self.shared.timing.refresh_after;
            if wanted.is_none_or(|id| held.keys.knows(id)) {
                if !fresh {
                    drop(self.ask());
                }
                return Ok(Arc::clone(&held.keys));
            }
        }
        let asked = match self.ask() {
            Some(outcome) => fetch_outcome(outcome).await,
            None => Err(Arc::new(KeysError::Recently)),
        };
        // Another request may have fetched them meanwhile, and older keys are better than none.
        match self.shared.valid_keys() {
            Some(held) => Ok(Arc::clone(&held.keys)),
            None => Err(asked.err().unwrap_or_else(|| Arc::new(KeysError::Slow))),
        }
    }

    fn fetch_state(&self) -> MutexGuard<'_, FetchState> {
        self.fetch_state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a fetch, or joins the running one. `None` if the last one began too recently.
    fn ask(&self) -> Option<watch::Receiver<Outcome>> {
        let mut fetch_state = self.fetch_state();
        if let Some((outcome, _)) = &fetch_state.under_way
            && outcome.borrow().is_none()
            && outcome.has_changed().is_ok()
        {
            return Some(outcome.clone());
        }
        let min_fetch_interval = self.shared.timing.min_fetch_interval;
        if fetch_state
            .last
            .is_some_and(|at| at.elapsed() < min_fetch_interval)
        {
            return None;
        }
        fetch_state.last = Some(Instant::now());
        let (sender, outcome) = watch::channel(None);
        let shared = Arc::clone(&self.shared);
        let task = tokio::spawn(async move {
            let renewed = shared.renew().await.map_err(Arc::new);
            sender.send_replace(Some(renewed));
        });
        fetch_state.under_way = Some((outcome.clone(), AbortOnDropHandle::new(task)));
        Some(outcome)
    }
}

/// Waits for the outcome of a fetch.
#[expect(
    clippy::expect_used,
    reason = "`wait_for` returns only a value for which `is_some` holds"
)]
async fn fetch_outcome(mut outcome: watch::Receiver<Outcome>) -> Result<(), Arc<KeysError>> {
    match outcome.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone().expect("the fetch has ended"),
        Err(_) => Err(Arc::new(KeysError::Slow)),
    }
}

impl Shared {
    /// The cached keys, if they are not too old.
    fn valid_keys(&self) -> Option<Arc<CachedKeys>> {
        let held = self.held.load_full()?;
        (held.age(&*self.clock) < self.timing.max_age).then_some(held)
    }

    /// Fetches the keys, and caches them.
    async fn renew(&self) -> Result<(), KeysError> {
        let fetched = timeout(self.timing.fetch_timeout, self.fetched()).await;
        match fetched.unwrap_or(Err(KeysError::Slow)) {
            Ok(keys) => {
                let held = CachedKeys {
                    keys: Arc::new(keys),
                    since: Instant::now(),
                    fetched_at: self.clock.now(),
                };
                self.held.store(Some(Arc::new(held)));
                Ok(())
            }
            Err(error) => {
                if self.held.load().is_some() {
                    tracing::warn!(%error, "an issuer's keys could not be renewed");
                }
                Err(error)
            }
        }
    }

    async fn fetched(&self) -> Result<Keys, KeysError> {
        let url = match &self.issuer.jwks_url {
            Some(url) => url.clone(),
            None => self.discovered().await?,
        };
        let document = self.document(&url).await?;
        Keys::read(&document).ok_or(KeysError::Document { url })
    }

    /// The key set URL in the issuer's own metadata: first by the rules of `OpenID` Connect, then
    /// by those of RFC 8414.
    async fn discovered(&self) -> Result<Url, KeysError> {
        let base = self.issuer.issuer.trim_end_matches('/');
        let url = format!("{base}/.well-known/openid-configuration");
        let url = Url::parse(&url).map_err(|_| KeysError::Recently)?;
        let missing = match self.key_set_of(url).await {
            Ok(keys) => return Ok(keys),
            Err(missing) => missing,
        };
        let mut url = Url::parse(base).map_err(|_| KeysError::Recently)?;
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("/.well-known/oauth-authorization-server{path}"));
        // Most issuers have the first address, so its failure is the one to report.
        self.key_set_of(url).await.map_err(|_| missing)
    }

    /// The key set URL in the metadata at this address.
    async fn key_set_of(&self, url: Url) -> Result<Url, KeysError> {
        let document = self.document(&url).await?;
        let metadata: Option<Metadata> = serde_json::from_slice(&document).ok();
        metadata
            .filter(|it| it.issuer == self.issuer.issuer)
            .and_then(|it| settings::endpoint(&it.jwks_uri))
            .ok_or(KeysError::Document { url })
    }

    async fn document(&self, url: &Url) -> Result<bytes::Bytes, KeysError> {
        let fetched = self.fetch.get(url).await;
        fetched.map_err(|cause| KeysError::Fetcher {
            url: url.clone(),
            cause,
        })
    }
}

#[cfg(test)]
#[path = "issuer_tests.rs"]
mod tests;
