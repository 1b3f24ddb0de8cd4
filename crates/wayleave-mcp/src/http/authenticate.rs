//! Identifies the caller of a request.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{StatusCode, request::Parts};

use crate::{Caller, RpcError};

/// Establishes who sent a request, before anything else reads it.
///
/// It runs for every request of every verb, also within a session: a session id is no credential.
pub trait Authenticate: Send + Sync + 'static {
    /// The caller, or the rejection.
    fn authenticate<'r>(
        &'r self,
        request: &'r Parts,
    ) -> BoxFuture<'r, Result<Arc<Caller>, Rejection>>;

    /// The response for a caller that may not use the primitive it named, if that has an HTTP
    /// status of its own. Without one, the error is sent like any other answer.
    fn denied(&self, request: &Parts, error: &RpcError) -> Option<Rejection> {
        let _ = (request, error);
        None
    }

    /// A public JSON document at this path, for instance on where to get a credential.
    fn document(&self, request: &Parts) -> Option<Bytes> {
        let _ = request;
        None
    }
}

/// A request that is refused before its message is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    /// Usually 401 or 403.
    pub status: StatusCode,
    /// The `WWW-Authenticate` header.
    pub challenge: Option<String>,
    /// The body.
    pub error: RpcError,
}

/// Admits everyone as one caller.
#[derive(Debug, Clone)]
pub struct Anonymous(Arc<Caller>);

impl Anonymous {
    /// Treats everyone as `caller`.
    pub fn as_caller(caller: Caller) -> Self {
        Self(Arc::new(caller))
    }
}

impl Default for Anonymous {
    fn default() -> Self {
        Self::as_caller(Caller::anonymous())
    }
}

impl Authenticate for Anonymous {
    fn authenticate<'r>(
        &'r self,
        _request: &'r Parts,
    ) -> BoxFuture<'r, Result<Arc<Caller>, Rejection>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}
