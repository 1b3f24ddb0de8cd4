//! The port to holders of private keys.

use std::io;
use std::path::PathBuf;

use super::owner_key::OwnerKey;

/// Holds private keys. Calls may take as long as a person takes to touch a device.
pub trait Signer: Send + Sync {
    /// The public keys it can sign with.
    fn keys(&self) -> Result<Vec<OwnerKey>, SignError>;

    /// Signs these bytes. Returns the signature in SSH's encoding.
    fn sign(&self, key: &OwnerKey, bytes: &[u8]) -> Result<Vec<u8>, SignError>;
}

/// Why signing failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The agent cannot be reached.
    #[error("`ssh-agent` cannot be reached at `{}`", path.display())]
    Agent {
        /// Its socket.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The agent's answer cannot be read.
    #[error("`ssh-agent` sent an invalid response")]
    Garbled,
    /// The agent declined, or its user did.
    #[error("`ssh-agent` declined to sign")]
    Declined,
    /// The signer does not hold the key.
    #[error("the signer does not hold this key")]
    NoKey,
    /// The signature does not verify.
    #[error("the signature does not verify with its own key")]
    Unfit,
}
