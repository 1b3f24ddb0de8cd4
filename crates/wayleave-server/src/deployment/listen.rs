//! Listening over HTTP and serving over stdio, each with its authentication.

use std::{net::SocketAddr, sync::Arc};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use wayleave_ledger::SystemClock;
use wayleave_mcp::{
    StdioError,
    http::{HttpServer, Limits, Options, serve_http},
};
use wayleave_project::token_rules::{self, UnknownGrant};

use super::{DeployError, Deployment};
use crate::{
    activity,
    auth::{Credentials, HttpAuth, NonAgentToken, ProcessToken, StdioAuth},
    listener::{self, ListenerOptions},
    telemetry::StatusService,
};

/// Why serving over stdio failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The transport failed.
    #[error(transparent)]
    Stdio(#[from] StdioError),
    /// The client presented a credential that is not an agent's.
    #[error(transparent)]
    NonAgentToken(#[from] NonAgentToken),
}

impl Deployment {
    /// The credentials that its clients may use.
    pub fn credentials(&self) -> Credentials {
        let (watch, settings) = (self.watch().clone(), Arc::clone(&self.settings));
        Credentials::with_active_settings(watch, settings, Arc::new(SystemClock))
    }

    /// The grants that the settings name for access tokens and that do not exist.
    pub fn unknown_grants(&self) -> Vec<UnknownGrant> {
        token_rules::unknown_grants(&self.settings.now(), &self.watch().now())
    }

    /// Listens for agents, as the settings allow.
    pub async fn bind(&self, address: SocketAddr) -> Result<HttpServer, DeployError> {
        self.bind_within(address, Limits::default()).await
    }

    /// The same, with the given limits. There are never more connections than the process has file
    /// descriptors for.
    pub async fn bind_within(
        &self,
        address: SocketAddr,
        limits: Limits,
    ) -> Result<HttpServer, DeployError> {
        let settings = self.settings.now();
        let credentials = self.credentials();
        let asked = settings.tokens || credentials.any().await?;
        settings.check_listener(address, asked)?;
        if !asked && !settings.anonymous {
            return Err(DeployError::NobodyMayConnect);
        }
        activity::prepare(&self.serving.project, &self.log).await;
        let folder = self.serving.project.folder();
        let listener = ListenerOptions::new(&settings, folder, address, limits)?;
        let mut options = Options {
            allowed_hosts: listener.allowed_hosts,
            limits: listener.limits,
            tls: listener.tls,
            ..Options::default()
        };
        let anonymous = settings.anonymous.then(Self::local_caller);
        let auth = HttpAuth::new(credentials, &settings, &options.path, anonymous);
        options.authenticate = Arc::new(auth);
        HttpServer::bind(&self.server, address, options)
            .await
            .map_err(|cause| DeployError::Bind { address, cause })
    }

    /// Serves the operator's endpoints at the address of `telemetry.listen`, if set, until `stop`.
    pub async fn serve_status(&self, stop: CancellationToken) -> Result<(), DeployError> {
        let settings = self.settings.now();
        let Some(address) = settings.telemetry else {
            return Ok(());
        };
        let listening = TcpListener::bind(address).await;
        let listener = listening.map_err(|cause| DeployError::Bind { address, cause })?;
        let is_any = address.ip().is_unspecified();
        let service = StatusService {
            metrics: Arc::clone(&self.metrics),
            log: self.log.clone(),
            is_required: settings.audit.required,
            allowed_hosts: (!is_any).then(|| listener::allowed_hosts(&settings, address)),
        };
        let limits = Limits::default();
        tokio::spawn(serve_http(Arc::new(service), listener, limits, None, stop));
        Ok(())
    }

    /// The URL that clients use for a listener at `address`.
    pub fn url(&self, address: SocketAddr) -> String {
        self.settings.now().url_at(address)
    }

    /// Serves the client at the other end of standard input and output, with the token `given`,
    /// until it disconnects or `stop` is cancelled. Disconnects a client that presents a non-agent
    /// credential.
    pub async fn serve_stdio(
        &self,
        given: ProcessToken,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        activity::prepare(&self.serving.project, &self.log).await;
        let auth = StdioAuth::new(self.credentials(), given, Self::local_caller());
        self.server.serve_stdio(auth.clone(), stop).await?;
        match auth.non_agent_token() {
            Some(found) => Err(found.into()),
            None => Ok(()),
        }
    }
}
