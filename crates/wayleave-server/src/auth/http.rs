//! Authentication of HTTP requests.

use std::{str::FromStr as _, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{StatusCode, request::Parts};
use wayleave_mcp::{
    Caller, RpcError,
    http::{Authenticate, Rejection},
};
use wayleave_model::grant::{Scope, Scopes};
use wayleave_project::Settings;
use wayleave_surface::access::SCOPE_DENIED;

use super::{Credentials, Refusal, bearer, metadata::Metadata};

/// Accepts requests with a valid token and, if the operator allows it, those without one.
pub struct HttpAuth {
    credentials: Credentials,
    metadata: Metadata,
    anonymous: Option<Arc<Caller>>,
}

impl HttpAuth {
    /// Guards the endpoint at `path`. `anonymous` is the caller of requests without a token.
    pub fn new(
        credentials: Credentials,
        settings: &Settings,
        path: &str,
        anonymous: Option<Caller>,
    ) -> Self {
        Self {
            credentials,
            metadata: Metadata::new(settings, path),
            anonymous: anonymous.map(Arc::new),
        }
    }

    async fn caller(&self, request: &Parts) -> Result<Arc<Caller>, Refusal> {
        match (bearer::token(request)?, &self.anonymous) {
            (Some(token), _) => self.credentials.caller(token).await,
            (None, Some(anonymous)) if !is_forwarded(request) => {
                self.credentials.check_ledger().await?;
                Ok(Arc::clone(anonymous))
            }
            (None, _) => Err(Refusal::Missing),
        }
    }

    fn reject(&self, request: &Parts, refusal: Refusal) -> Rejection {
        let challenged = refusal.status() == StatusCode::UNAUTHORIZED;
        Rejection {
            status: refusal.status(),
            challenge: challenged.then(|| {
                let error = refusal.oauth_error();
                let error = error.map(|code| (code, refusal.message()));
                self.metadata.challenge(request, error, Scopes::RUNTIME)
            }),
            error: refusal.error(),
        }
    }
}

impl Authenticate for HttpAuth {
    fn authenticate<'r>(
        &'r self,
        request: &'r Parts,
    ) -> BoxFuture<'r, Result<Arc<Caller>, Rejection>> {
        Box::pin(async {
            let caller = self.caller(request).await;
            caller.map_err(|refusal| self.reject(request, refusal))
        })
    }

    fn denied(&self, request: &Parts, error: &RpcError) -> Option<Rejection> {
        let (status, code) = match error.code {
            RpcError::UNAUTHENTICATED => (StatusCode::UNAUTHORIZED, ended(error)),
            SCOPE_DENIED => (StatusCode::FORBIDDEN, Some("insufficient_scope")),
            _ => return None,
        };
        let described = code.map(|code| (code, error.message.as_ref()));
        Some(Rejection {
            status,
            challenge: Some(self.metadata.challenge(request, described, needed(error))),
            error: error.clone(),
        })
    }

    fn document(&self, request: &Parts) -> Option<Bytes> {
        self.metadata.document(request)
    }
}

/// The RFC 6750 error code for a token that expired or was revoked while its request ran.
fn ended(error: &RpcError) -> Option<&'static str> {
    let reason = error.data.as_ref()?.get("reason")?.as_str()?;
    matches!(reason, "revoked_token" | "expired_token").then_some("invalid_token")
}

/// Whether a proxy forwarded the request. Then its client only appears to be on this machine.
fn is_forwarded(request: &Parts) -> bool {
    let is_mark = |name: &str| {
        name.starts_with("x-forwarded-")
            || matches!(
                name,
                "forwarded"
                    | "via"
                    | "x-real-ip"
                    | "x-client-ip"
                    | "true-client-ip"
                    | "cf-connecting-ip"
                    | "x-original-host"
                    | "x-envoy-external-address"
            )
    };
    request.headers.keys().any(|name| is_mark(name.as_str()))
}

/// Every required scope at once: those the caller has, and the one it lacks.
fn needed(error: &RpcError) -> Scopes {
    let data = error.data.as_ref();
    let held = data.and_then(|data| data.get("caller_scopes")?.as_array());
    let required = data.and_then(|data| data.get("required_scope"));
    let names = held.into_iter().flatten().chain(required);
    let known = names.filter_map(|name| Scope::from_str(name.as_str()?).ok());
    known.collect()
}
