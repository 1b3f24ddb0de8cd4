//! The console of a deployment: its own listener, on loopback only.

mod backend;
mod service;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use wayleave_console::{Console, ConsoleOptions};
pub use wayleave_console::{ConsoleSigning, LinkError, LoginLinks, console_address};
use wayleave_mcp::http::{self, Limits};

use crate::deployment::{DeployError, Deployment};
use backend::DeploymentBackend;
use service::ConsoleService;

/// Maximum number of connections to the console: a few browsers.
const MAX_CONNECTIONS: usize = 128;
/// Interval at which live datasets are compared with their sources.
const COMPARE_INTERVAL: Duration = Duration::from_mins(5);

/// A listening console.
pub struct ConsoleServer {
    listener: TcpListener,
    console: Arc<Console>,
    address: SocketAddr,
}

impl Deployment {
    /// Binds the console of this deployment. Refuses addresses that are not loopback ones.
    pub async fn bind_console(
        &self,
        address: SocketAddr,
        agents_url: Option<String>,
        signing: ConsoleSigning,
    ) -> Result<ConsoleServer, DeployError> {
        if !address.ip().is_loopback() {
            return Err(DeployError::ConsoleExposed);
        }
        let bound = TcpListener::bind(address).await;
        let listener = bound.map_err(|cause| DeployError::Bind { address, cause })?;
        let local = listener.local_addr();
        let address = local.map_err(|cause| DeployError::Bind { address, cause })?;
        let backend = DeploymentBackend {
            serving: self.serving(),
            indexes: self.index_root(),
            agents_url,
        };
        let options = ConsoleOptions {
            port: address.port(),
            signing,
        };
        let console = Console::new(self.project().clone(), Arc::new(backend), options);
        Ok(ConsoleServer {
            listener,
            console: Arc::new(console),
            address,
        })
    }
}

/// Compares live datasets with their sources at intervals, so that no page has to wait for a
/// source.
async fn compare(console: Arc<Console>) {
    loop {
        console.compare_live().await;
        tokio::time::sleep(COMPARE_INTERVAL).await;
    }
}

impl ConsoleServer {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Issues a one-time sign-in link for `who`.
    pub fn link(&self, who: &str) -> Result<String, LinkError> {
        self.console.link(who)
    }

    /// Serves the console until `stop` is cancelled.
    pub async fn serve(self, stop: CancellationToken) {
        let limits = Limits {
            connections: MAX_CONNECTIONS,
            unauthenticated: MAX_CONNECTIONS,
            ..Limits::default()
        };
        let compared = stop
            .clone()
            .run_until_cancelled_owned(compare(Arc::clone(&self.console)));
        let service = Arc::new(ConsoleService::new(self.console));
        let served = http::serve_http(service, self.listener, limits, None, stop);
        tokio::join!(served, compared);
    }
}
