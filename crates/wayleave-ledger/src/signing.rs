//! Owners' keys and their signatures.
//!
//! A decision is signed over the entry that records it and the head of the chain it follows, in the
//! format of `ssh-keygen -Y sign` (SSHSIG) under a namespace of our own: a signature made for
//! another purpose is invalid here, and one made here is invalid elsewhere. Keys and signatures are
//! in SSH's encoding, so an owner's key may be an SSH key in `ssh-agent` ([`SshAgent`]) or a key
//! file of our own ([`OwnerKeyFile`]).
//!
//! This module must not know what an entry means.

mod envelope;
mod key_file;
mod owner_key;
mod signature;
mod signer;
mod ssh_agent;
#[cfg(test)]
mod tests;
mod wire;

pub use key_file::{KeyFileError, MIN_PASSPHRASE_CHARS, OwnerKeyFile, UnlockedKey};
pub use owner_key::{KeyFingerprint, OwnerKey, ParseOwnerKeyError};
pub use signature::EntrySignature;
pub use signer::{SignError, Signer};
pub use ssh_agent::SshAgent;
