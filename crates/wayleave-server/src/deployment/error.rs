//! Why a project cannot be served.

use std::{io, net::SocketAddr};

use wayleave_activity::ArgumentKeyError;
use wayleave_ledger::LedgerError;
use wayleave_mcp::{SchemaError, TemplateError};
use wayleave_project::{SettingsError, keys::KeyError, meta::MetaOperationError};

use crate::tls::TlsError;

/// Why a project cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The keys that seal the arguments of recorded calls are not available.
    #[error(transparent)]
    ArgumentKeys(#[from] ArgumentKeyError),
    /// A bug: a built-in resource cannot be registered.
    #[error(transparent)]
    Resource(#[from] TemplateError),
    /// The keys that seal cursors are not available.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// A bug: a built-in tool cannot be registered.
    #[error(transparent)]
    Tool(#[from] SchemaError),
    /// An operation cannot be registered.
    #[error(transparent)]
    Operation(#[from] MetaOperationError),
    /// The settings forbid the listener.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No client could connect: there is no client token, and no anonymous access.
    #[error("no client could connect: there is no client token, and `serve.anonymous` is not set")]
    NobodyMayConnect,
    /// The console would be open to other machines.
    #[error("the console listens on this machine alone; that address is not a loopback one")]
    ConsoleExposed,
    /// The address cannot be listened on.
    #[error("cannot listen on `{address}`")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        cause: io::Error,
    },
}

impl DeployError {
    /// What the operator can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NobodyMayConnect => Some(
                "issue one with `wayleave token create`; or set `anonymous = true` under `[serve]` to let clients on this machine in",
            ),
            Self::Settings(error) => error.listener_hint(),
            Self::ConsoleExposed => Some("use `127.0.0.1` and reach it through a tunnel"),
            Self::Bind { .. } => Some("choose another with `--http ADDRESS:PORT`"),
            Self::Keys(error) => Some(error.hint()),
            _ => None,
        }
    }
}
