//! The life of a mapping as types: `Draft` → `Proposed` → `Ratified`.
//!
//! **The invariant.** A [`Ratified`] value exists only if, in this process, the digest of the exact
//! bytes was compared with a [`Ratification`] and those bytes were parsed without a problem. Its
//! fields are private to this module, it has no `Default`, `Clone`, `Deserialize` or mutable
//! access, and the two functions that build one, [`ratify`] and [`verify`], both make that
//! comparison. Code that serves records takes a `Ratified<Mapping>`, so nothing else can be served.
//!
//! This module does not know where bytes or ratifications are stored, nor what time it is: the
//! ledger and the caller do.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::check;
use crate::digest::Digest;
use crate::mapping::Mapping;
use crate::ontology::Ontology;
use crate::problem::Problem;

/// A mapping as someone wrote it: bytes that nobody has checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    bytes: Vec<u8>,
}

impl Draft {
    /// A draft of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: bytes.into(),
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Checks the draft; a draft with problems stays a draft.
    pub fn propose(self, ontology: Option<&Ontology>) -> Result<Proposed, RejectedDraft> {
        match check::check(&self.bytes, ontology) {
            Ok(mapping) => Ok(Proposed {
                digest: Digest::from_bytes(&self.bytes),
                mapping,
                bytes: self.bytes,
            }),
            Err(problems) => Err(RejectedDraft {
                draft: self,
                problems,
            }),
        }
    }
}

/// A draft that failed the check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the mapping has {} problem(s)", problems.len())]
pub struct RejectedDraft {
    /// The draft, unchanged.
    pub draft: Draft,
    /// Its problems; never empty.
    pub problems: Vec<Problem>,
}

/// A mapping that passed the check and waits for a human's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    bytes: Vec<u8>,
    mapping: Mapping,
    digest: Digest,
}

impl Proposed {
    /// The mapping.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// The exact bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The digest of the exact bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// A human's agreement that these bytes define the dataset. The value alone has no effect: it
/// becomes binding in the ledger, whose entry has the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ratification {
    /// The dataset's name.
    pub dataset: String,
    /// The digest of the bytes the human read.
    pub digest: Digest,
    /// The digest it replaces; `None` for a dataset's first ratification.
    pub replaces: Option<Digest>,
    /// Who ratified.
    pub who: String,
    /// Why, in the human's words.
    pub note: String,
}

/// Something a human has agreed to, byte for byte. See the [module](self) for what holding one
/// proves.
///
/// ```compile_fail
/// use wayleave_model::mapping::Mapping;
/// use wayleave_model::ratify::Ratified;
///
/// fn forge(mapping: Mapping) -> Ratified<Mapping> {
///     Ratified { value: mapping }
/// }
/// ```
#[derive(Debug)]
pub struct Ratified<T> {
    value: T,
    bytes: Box<[u8]>,
    ratification: Ratification,
}

impl<T> Ratified<T> {
    /// The ratification of the value.
    pub fn ratification(&self) -> &Ratification {
        &self.ratification
    }

    /// The digest of the exact bytes.
    pub fn digest(&self) -> Digest {
        self.ratification.digest
    }

    /// The exact bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T> Deref for Ratified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Why bytes cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The bytes are not the ones that were ratified.
    #[error("the bytes are {found}, and {expected} was ratified")]
    Digest {
        /// The ratified digest.
        expected: Digest,
        /// The digest of the bytes.
        found: Digest,
    },
    /// The bytes name another dataset than the ratification.
    #[error("the mapping names dataset `{found}`, and `{expected}` was ratified")]
    Dataset {
        /// The ratified dataset.
        expected: String,
        /// The dataset that the bytes name.
        found: String,
    },
    /// The bytes are the ratified ones, yet this version does not accept them.
    #[error("the ratified mapping has {} problem(s)", problems.len())]
    Problems {
        /// The problems; never empty.
        problems: Vec<Problem>,
    },
}

/// Ratifies a proposal that a human has read: the ratification must name its digest and dataset.
pub fn ratify(
    proposed: Proposed,
    ratification: Ratification,
) -> Result<Ratified<Mapping>, VerifyError> {
    // A proposal's digest and mapping were computed from its bytes, yet they are checked
    // again here: this function and `verify` must hold the invariant by themselves.
    verify_owned(proposed.bytes, ratification)
}

/// Verifies frozen bytes against their ratification: compares the digest and parses, every time.
///
/// Ignores the ontology: it is a drafting aid, and a mapping ratified under an older one stays
/// ratified.
pub fn verify(bytes: &[u8], ratification: &Ratification) -> Result<Ratified<Mapping>, VerifyError> {
    verify_owned(bytes.to_vec(), ratification.clone())
}

fn verify_owned(
    bytes: Vec<u8>,
    ratification: Ratification,
) -> Result<Ratified<Mapping>, VerifyError> {
    let found = Digest::from_bytes(&bytes);
    if found != ratification.digest {
        return Err(VerifyError::Digest {
            expected: ratification.digest,
            found,
        });
    }
    let value =
        check::check(&bytes, None).map_err(|problems| VerifyError::Problems { problems })?;
    if value.dataset.name != ratification.dataset.as_str() {
        return Err(VerifyError::Dataset {
            expected: ratification.dataset,
            found: value.dataset.name.value,
        });
    }
    Ok(Ratified {
        value,
        bytes: bytes.into_boxed_slice(),
        ratification,
    })
}
