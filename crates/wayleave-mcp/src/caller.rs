//! Who is asking: the authorization of one request, as the embedder established it.

use std::{fmt, sync::Arc};

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
/// let caller = Caller::new("token:7f3a").with_view("builder").with(Scopes(vec!["builder"]));
/// assert_eq!(caller.subject(), "token:7f3a");
/// assert_eq!(caller.get::<Scopes>(), Some(&Scopes(vec!["builder"])));
/// ```
#[derive(Clone)]
pub struct Caller {
    subject: Arc<str>,
    view: Option<Arc<str>>,
    attachment: Option<Arc<dyn std::any::Any + Send + Sync>>,
}

impl Caller {
    /// A caller known by `subject`, an id that is safe to log: never a credential.
    pub fn new(subject: impl Into<Arc<str>>) -> Self {
        Self {
            subject: subject.into(),
            view: None,
            attachment: None,
        }
    }

    /// The caller of a transport that asks for no credential.
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
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.attachment = Some(Arc::new(value));
        self
    }

    /// Who this is.
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
