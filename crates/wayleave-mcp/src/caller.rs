//! The caller: the authorization of one request, as the embedder established it.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{Budget, RpcError};

/// Ends an authorization, once. Every clone ends the same one.
#[derive(Debug, Clone, Default)]
pub struct Revocation {
    ended: CancellationToken,
    why: Arc<OnceLock<RpcError>>,
}

impl Revocation {
    /// Ends the authorization. Its running requests are answered with `why`.
    pub fn end(&self, why: RpcError) {
        let _ = self.why.set(why);
        self.ended.cancel();
    }
}

impl From<CancellationToken> for Revocation {
    fn from(ended: CancellationToken) -> Self {
        Self {
            ended,
            why: Arc::default(),
        }
    }
}

/// The authorization of one request.
///
/// The transport's [`Authenticate`](crate::http::Authenticate) makes one for every request.
/// Handlers and visibility predicates read it; this crate only compares its subject, so that
/// nobody can use a session another subject opened.
///
/// ```
/// use wayleave_mcp::Caller;
///
/// #[derive(Debug, PartialEq)]
/// struct Scopes(Vec<&'static str>);
///
/// let caller = Caller::new("token:7f3a").with_view("builder").with_attachment(Scopes(vec!["builder"]));
/// assert_eq!(caller.subject(), "token:7f3a");
/// assert_eq!(caller.get::<Scopes>(), Some(&Scopes(vec!["builder"])));
/// ```
#[derive(Clone)]
pub struct Caller {
    subject: Arc<str>,
    view: Option<Arc<str>>,
    attachment: Option<Arc<dyn std::any::Any + Send + Sync>>,
    revoked: Option<Revocation>,
    expires: Option<Instant>,
    budget: Option<Arc<Budget>>,
}

impl Caller {
    /// A caller known by `subject`, an id that is safe to log: never a credential.
    pub fn new(subject: impl Into<Arc<str>>) -> Self {
        Self {
            subject: subject.into(),
            view: None,
            attachment: None,
            revoked: None,
            expires: None,
            budget: None,
        }
    }

    /// The caller of a transport that requires no credential.
    pub fn anonymous() -> Self {
        Self::new("anonymous").with_view("anonymous")
    }

    /// Names the view this caller has of the lists.
    ///
    /// Two callers with equal views must get the same decision from every
    /// [`Visibility`](crate::Visibility); their lists are then serialized once and shared.
    #[must_use]
    pub fn with_view(mut self, view: impl Into<Arc<str>>) -> Self {
        self.view = Some(view.into());
        self
    }

    /// Attaches the embedder's own value (a grant, a set of scopes), replacing any before it.
    #[must_use]
    pub fn with_attachment<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.attachment = Some(Arc::new(value));
        self
    }

    /// Ends this authorization when `revoked`, a revocation or a cancellation token, is triggered:
    /// its streams, sessions and running requests end at that moment, not at its next request.
    #[must_use]
    pub fn with_revocation(mut self, revoked: impl Into<Revocation>) -> Self {
        self.revoked = Some(revoked.into());
        self
    }

    /// Ends this authorization at the moment `expires`.
    #[must_use]
    pub fn with_expiry(mut self, expires: Instant) -> Self {
        self.expires = Some(expires);
        self
    }

    /// Counts this caller's requests against a budget.
    #[must_use]
    pub fn with_budget(mut self, budget: Arc<Budget>) -> Self {
        self.budget = Some(budget);
        self
    }

    /// The subject: an id that is safe to log.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The view whose lists this caller shares, when the embedder named one.
    pub fn view(&self) -> Option<&str> {
        self.view.as_deref()
    }

    /// The attached value, when it is a `T`.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.attachment.as_deref()?.downcast_ref()
    }

    /// Whether this authorization has ended.
    pub fn is_over(&self) -> bool {
        self.is_revoked() || self.is_expired()
    }

    fn is_revoked(&self) -> bool {
        let revoked = self.revoked.as_ref();
        revoked.is_some_and(|revoked| revoked.ended.is_cancelled())
    }

    fn is_expired(&self) -> bool {
        self.expires
            .is_some_and(|expires| expires <= Instant::now())
    }

    /// The error for a request whose authorization has ended; `None` while it has not.
    pub(crate) fn why_over(&self) -> Option<RpcError> {
        if self.is_revoked() {
            let told = self.revoked.as_ref().and_then(|revoked| revoked.why.get());
            return Some(told.cloned().unwrap_or_else(RpcError::revoked));
        }
        self.is_expired().then(RpcError::expired)
    }

    /// Waits until this authorization has ended; waits for ever if it has no end.
    pub(crate) async fn over(&self) {
        let revoked = async {
            match &self.revoked {
                Some(revoked) => revoked.ended.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let expired = async {
            match self.expires {
                Some(expires) => sleep_until(expires).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = revoked => {}
            () = expired => {}
        }
    }

    pub(crate) fn budget(&self) -> Option<&Arc<Budget>> {
        self.budget.as_ref()
    }

    /// Whether both are the same authorization, not merely of the same subject.
    pub(crate) fn same(&self, other: &Self) -> bool {
        let attachments = (&self.attachment, &other.attachment);
        Arc::ptr_eq(&self.subject, &other.subject)
            && match attachments {
                (None, None) => true,
                (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
                _ => false,
            }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The attachment may hold a credential.
        f.debug_struct("Caller")
            .field("subject", &self.subject)
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}
