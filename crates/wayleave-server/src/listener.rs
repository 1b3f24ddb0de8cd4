//! Address, limits and encryption of a project's listener, for any service.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
};

use rustls::ServerConfig;
use wayleave_mcp::http::{Guests, Limits};
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
    pub guests: Guests,
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
            guests: guests(settings, address),
            limits,
            tls: tls.map(|files| tls::server(folder, files)).transpose()?,
        })
    }
}

pub(crate) fn guests(settings: &Settings, address: SocketAddr) -> Guests {
    let guests = Guests::loopback();
    let guests = settings.hosts.iter().fold(guests, Guests::host);
    let guests = settings.origins.iter().fold(guests, Guests::origin);
    let guests = match settings.url.as_ref().and_then(|url| url.host_str()) {
        Some(host) => guests.host(host),
        None => guests,
    };
    // Clients without a name for this machine use its address.
    match address.ip() {
        any if any.is_unspecified() => guests,
        IpAddr::V4(address) => guests.host(address.to_string()),
        IpAddr::V6(address) => guests.host(format!("[{address}]")),
    }
}
