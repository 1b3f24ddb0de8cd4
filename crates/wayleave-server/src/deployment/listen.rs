//! Listening over HTTP and serving over stdio, each with its authentication.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;
use wayleave_mcp::{
    StdioError,
    http::{Guests, HttpServer, Limits, Options},
};

use super::{DeployError, Deployment};
use crate::{
    auth::{Credentials, GivenToken, HttpAuth, NonAgentToken, StdioAuth},
    descriptors, tls,
};
use wayleave_project::token_rules::{self, UnknownGrant};

/// Serving over stdio failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The transport did.
    #[error(transparent)]
    Stdio(#[from] StdioError),
    /// The client showed a credential that is not an agent's.
    #[error(transparent)]
    NonAgentToken(#[from] NonAgentToken),
}

impl Deployment {
    /// The credentials its clients can bring.
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

    /// The same within other limits than the usual ones. There are never more connections than the
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
        let guests = Guests::loopback();
        let guests = self.settings.hosts.iter().fold(guests, Guests::host);
        let guests = self.settings.origins.iter().fold(guests, Guests::origin);
        let guests = match self.settings.url.as_ref().and_then(|url| url.host_str()) {
            Some(host) => guests.host(host),
            None => guests,
        };
        // Clients without a name for this machine use its address.
        let guests = match address.ip() {
            any if any.is_unspecified() => guests,
            IpAddr::V4(address) => guests.host(address.to_string()),
            IpAddr::V6(address) => guests.host(format!("[{address}]")),
        };
        let mut options = Options {
            guests,
            limits: Limits {
                connections: limits.connections.min(descriptors::for_connections()),
                ..limits
            },
            ..Options::default()
        };
        let anonymous = self.settings.anonymous.then(Self::local_caller);
        let auth = HttpAuth::new(credentials, &self.settings, &options.path, anonymous);
        options.authenticate = Arc::new(auth);
        if let Some(files) = &self.settings.tls {
            options.tls = Some(tls::server(self.serving.project.folder(), files)?);
        }
        HttpServer::bind(&self.server, address, options)
            .await
            .map_err(|cause| DeployError::Bind { address, cause })
    }

    /// The address clients use of a listener at `address`.
    pub fn url(&self, address: SocketAddr) -> String {
        self.settings.url_at(address)
    }

    /// Serves the client at the other end of standard input and output, whose token was `given`,
    /// until it goes away or `stop` is cancelled. One that shows a credential which is not an
    /// agent's is hung up on.
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
