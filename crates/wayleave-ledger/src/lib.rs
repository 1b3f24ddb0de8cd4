//! The ledger: who ratified what, which sources exist, what is live, who may read what.
//!
//! Every decision of a person is an entry in one append-only, hash-chained record. The current
//! state is the fold of its entries and is never stored beside them. The exact ratified bytes are
//! stored as frozen files, named by their digest.
//!
//! - [`Governance`]: the acts of people upon a project folder.
//! - [`Ledger`]: the port; [`SqliteLedger`] keeps it in `.wayleave/ledger.db`.
//! - [`State`]: the current state, and the rules that admit an entry.
//! - [`Signer`]: whatever holds an owner's key; owners sign decisions.
//! - [`verify`]: what a check of the chain can find, and what it cannot.
//!
//! This crate must not know how mappings are drafted or shown, or anything about MCP.

mod audit;
mod blocking;
mod canonical;
mod chain;
mod clock;
mod copy;
mod durable;
mod error;
mod event;
mod file_stamp;
mod frozen_mappings;
mod governance;
mod head;
mod ledger;
mod signing;
mod sqlite;
mod state;
mod text;
pub mod verify;
mod walk;

pub use audit::AuditReport;
pub use chain::{EntryHash, Head, ParseHeadError};
pub use clock::{Clock, FixedClock, Millis, MonotonicClock, SystemClock, rfc3339};
pub use error::{Cause, DiskAction, DiskError, GovernanceError, LedgerError, OpenError};
pub use event::{Entry, Event, NewGrant, NewToken};
pub use file_stamp::FileStamp;
pub use governance::{
    FOLDER, Governance, GrantRequest, IssuedToken, NewSource, RatifyRequest, TokenRequest,
};
pub use ledger::Ledger;
pub use secrecy::SecretString;
pub use signing::{
    EntrySignature, KeyFileError, KeyFingerprint, MIN_PASSPHRASE_CHARS, OwnerKey, OwnerKeyFile,
    ParseOwnerKeyError, SignError, Signer, SshAgent, UnlockedKey,
};
pub use sqlite::SqliteLedger;
pub use state::{
    Activation, Dataset, GrantEntry, OwnerEntry, RatificationEntry, Refusal, Revocation, Source,
    State, TokenEntry, Validity,
};
pub use text::InvalidText;
pub use verify::{Problem, TrustAnchor, VerifyReport, Witness};
