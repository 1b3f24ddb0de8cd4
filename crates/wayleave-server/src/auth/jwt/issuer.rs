//! The keys of an issuer, fetched when needed and kept for a while.

use std::{
    sync::{Arc, Mutex as StdMutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use serde::Deserialize;
use tokio::{sync::Mutex, time::Instant};
use url::Url;

use super::{
    fetch::{Fetch, FetchError},
    keys::Keys,
};
use crate::settings::{self, Issuer};

/// Keys younger than this are not asked for again, unless one is missing.
const FRESH: Duration = Duration::from_mins(5);
/// Keys older than this are not believed, even if the issuer cannot be reached.
const STALE: Duration = Duration::from_hours(1);
/// However many tokens name keys nobody knows, the issuer is asked no more often than this.
const SELDOM: Duration = Duration::from_secs(10);

/// Keys that are not to be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("cannot fetch `{url}`")]
    Fetch {
        url: Url,
        #[source]
        cause: FetchError,
    },
    #[error("`{url}` is not what its issuer should publish there")]
    Document { url: Url },
    #[error("the issuer's keys were asked for a moment ago, in vain")]
    Recently,
}

/// The keys of one issuer.
pub(crate) struct IssuerKeys {
    issuer: Issuer,
    fetch: Fetch,
    seldom: Duration,
    held: ArcSwapOption<Held>,
    asked: StdMutex<Option<Instant>>,
    /// One asks, the others wait for what it gets.
    asking: Mutex<()>,
}

struct Held {
    keys: Arc<Keys>,
    since: Instant,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl IssuerKeys {
    pub(crate) fn new(issuer: Issuer) -> Self {
        Self {
            issuer,
            fetch: Fetch::new(),
            seldom: SELDOM,
            held: ArcSwapOption::empty(),
            asked: StdMutex::default(),
            asking: Mutex::default(),
        }
    }

    pub(crate) fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// The keys, with the one called `wanted` among them if the issuer has it.
    pub(crate) async fn with(&self, wanted: Option<&str>) -> Result<Arc<Keys>, KeysError> {
        if let Some(keys) = self.good(wanted) {
            return Ok(keys);
        }
        let _asking = self.asking.lock().await;
        if let Some(keys) = self.good(wanted) {
            return Ok(keys);
        }
        let fetched = if self.may_ask() {
            self.fetched().await
        } else {
            Err(KeysError::Recently)
        };
        match fetched {
            Ok(keys) => {
                let keys = Arc::new(keys);
                self.held.store(Some(Arc::new(Held {
                    keys: Arc::clone(&keys),
                    since: Instant::now(),
                })));
                Ok(keys)
            }
            Err(error) => match self.held.load().as_deref() {
                Some(held) if held.since.elapsed() < STALE => {
                    if !matches!(error, KeysError::Recently) {
                        tracing::warn!(%error, "an issuer's keys could not be renewed");
                    }
                    Ok(Arc::clone(&held.keys))
                }
                _ => Err(error),
            },
        }
    }

    fn good(&self, wanted: Option<&str>) -> Option<Arc<Keys>> {
        let held = self.held.load();
        let held = held.as_deref()?;
        let good = held.since.elapsed() < FRESH && wanted.is_none_or(|id| held.keys.knows(id));
        good.then(|| Arc::clone(&held.keys))
    }

    fn may_ask(&self) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let may = asked.is_none_or(|at| at.elapsed() >= self.seldom);
        if may {
            *asked = Some(Instant::now());
        }
        may
    }

    async fn fetched(&self) -> Result<Keys, KeysError> {
        let url = match &self.issuer.jwks_url {
            Some(url) => url.clone(),
            None => self.discovered().await?,
        };
        let document = self.document(&url).await?;
        Keys::read(&document).ok_or(KeysError::Document { url })
    }

    /// Where the issuer's own metadata says its keys are.
    async fn discovered(&self) -> Result<Url, KeysError> {
        let base = self.issuer.issuer.trim_end_matches('/');
        let url = format!("{base}/.well-known/openid-configuration");
        let url = Url::parse(&url).map_err(|_| KeysError::Recently)?;
        let document = self.document(&url).await?;
        let metadata: Option<Metadata> = serde_json::from_slice(&document).ok();
        metadata
            .filter(|it| it.issuer == self.issuer.issuer)
            .and_then(|it| settings::endpoint(&it.jwks_uri))
            .ok_or(KeysError::Document { url })
    }

    async fn document(&self, url: &Url) -> Result<bytes::Bytes, KeysError> {
        let fetched = self.fetch.get(url).await;
        fetched.map_err(|cause| KeysError::Fetch {
            url: url.clone(),
            cause,
        })
    }
}

#[cfg(test)]
#[path = "issuer_tests.rs"]
mod tests;
