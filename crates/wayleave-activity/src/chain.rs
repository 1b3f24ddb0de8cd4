//! The hash chain: the state after a record is the hash of the state before it and the record's
//! bytes.

use sha2::{Digest as _, Sha256};

/// Number of bytes of the state stored with each record. The head, the header of the next segment
/// and the ledger store the whole state.
pub(crate) const TAG_BYTES: usize = 16;

/// The state of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ChainState(pub(crate) [u8; 32]);

impl ChainState {
    /// The state after `bytes`.
    pub(crate) fn after(self, bytes: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(bytes);
        Self(hash.finalize().into())
    }

    pub(crate) fn tag(&self) -> [u8; TAG_BYTES] {
        let mut tag = [0; TAG_BYTES];
        for (to, from) in tag.iter_mut().zip(self.0) {
            *to = from;
        }
        tag
    }
}

/// The SHA-256 of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
