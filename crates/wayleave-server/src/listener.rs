//! Address, limits and encryption of a project's listener, for any service.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
};

use rustls::ServerConfig;
use wayleave_mcp::http::{AllowedHosts, Limits};
use wayleave_project::Settings;

use crate::{
    descriptors,
    tls::{self, TlsError},
};

/// The listener options in the settings of a project. They depend neither on what is served there
/// nor on who may use it.
#[derive(Clone)]
pub struct ListenerOptions {
    /// The accepted hosts and origins.
    pub allowed_hosts: AllowedHosts,
    /// Limits on the number and slowness of connections. There are never more than the process has
    /// file descriptors for.
    pub limits: Limits,
    /// The TLS configuration, whose certificate is reloaded when its files change.
    pub tls: Option<Arc<ServerConfig>>,
}

impl ListenerOptions {
    /// The options of a listener at `address`, for the project in `folder`.
    pub fn new(
        settings: &Settings,
        folder: &Path,
        address: SocketAddr,
        mut limits: Limits,
    ) -> Result<Self, TlsError> {
        let tls = settings.tls.as_ref();
        limits.connections = limits.connections.min(descriptors::for_connections());
        Ok(Self {
            allowed_hosts: allowed_hosts(settings, address),
            limits,
            tls: tls.map(|files| tls::server(folder, files)).transpose()?,
        })
    }
}

pub(crate) fn allowed_hosts(settings: &Settings, address: SocketAddr) -> AllowedHosts {
    let allowed_hosts = AllowedHosts::loopback();
    let allowed_hosts = settings
        .hosts
        .iter()
        .fold(allowed_hosts, AllowedHosts::host);
    let allowed_hosts = settings
        .origins
        .iter()
        .fold(allowed_hosts, AllowedHosts::origin);
    let allowed_hosts = match settings.url.as_ref().and_then(|url| url.host_str()) {
        Some(host) => allowed_hosts.host(host),
        None => allowed_hosts,
    };
    // Clients without a name for this machine use its address.
    match address.ip() {
        any if any.is_unspecified() => allowed_hosts,
        IpAddr::V4(address) => allowed_hosts.host(address.to_string()),
        IpAddr::V6(address) => allowed_hosts.host(format!("[{address}]")),
    }
}
