//! Listening over HTTP and serving over stdio, each with its authentication.

use std::{net::SocketAddr, sync::Arc};

use tokio_util::sync::CancellationToken;
use wayleave_mcp::{
    StdioError,
    http::{HttpServer, Limits, Options},
};
use wayleave_project::token_rules::{self, UnknownGrant};

use super::{DeployError, Deployment};
use crate::{
    auth::{Credentials, GivenToken, HttpAuth, NonAgentToken, StdioAuth},
    listener::ListenerOptions,
};

/// Serving over stdio failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The transport failed.
    #[error(transparent)]
    Stdio(#[from] StdioError),
    /// The client showed a credential that is not an agent's.
    #[error(transparent)]
    NonAgentToken(#[from] NonAgentToken),
}

impl Deployment {
    /// The credentials its clients may use.
    pub fn credentials(&self) -> Credentials {
        Credentials::new(self.watch().clone(), &self.settings)
    }

    /// The grants that the settings name for access tokens and that do not exist.
    pub fn unknown_grants(&self) -> Vec<UnknownGrant> {
        token_rules::unknown_grants(&self.settings, &self.watch().now())
    }

    /// Listens for agents, as the settings allow.
    pub async fn bind(&self, address: SocketAddr) -> Result<HttpServer, DeployError> {
        self.bind_within(address, Limits::default()).await
    }

    /// The same with other limits than the defaults. There are never more connections than the
    /// process has file descriptors for.
    pub async fn bind_within(
        &self,
        address: SocketAddr,
        limits: Limits,
    ) -> Result<HttpServer, DeployError> {
        let credentials = self.credentials();
        let asked = self.settings.tokens || credentials.any().await?;
        self.settings.check_listener(address, asked)?;
        if !asked && !self.settings.anonymous {
            return Err(DeployError::NobodyMayConnect);
        }
        let folder = self.serving.project.folder();
        let listener = ListenerOptions::new(&self.settings, folder, address, limits)?;
        let mut options = Options {
            guests: listener.guests,
            limits: listener.limits,
            tls: listener.tls,
            ..Options::default()
        };
        let anonymous = self.settings.anonymous.then(Self::local_caller);
        let auth = HttpAuth::new(credentials, &self.settings, &options.path, anonymous);
        options.authenticate = Arc::new(auth);
        HttpServer::bind(&self.server, address, options)
            .await
            .map_err(|cause| DeployError::Bind { address, cause })
    }

    /// The URL that clients use for a listener at `address`.
    pub fn url(&self, address: SocketAddr) -> String {
        self.settings.url_at(address)
    }

    /// Serves the client at the other end of standard input and output, whose token was `given`,
    /// until it goes away or `stop` is cancelled. A client that shows a non-agent credential is
    /// disconnected.
    pub async fn serve_stdio(
        &self,
        given: GivenToken,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        let auth = StdioAuth::new(self.credentials(), given, Self::local_caller());
        self.server.serve_stdio(auth.clone(), stop).await?;
        match auth.non_agent_token() {
            Some(found) => Err(found.into()),
            None => Ok(()),
        }
    }
}
