//! The ledger: who ratified what, which sources exist, what is live, who may read what.
//!
//! Everything that a person decides is an entry in one append-only, hash-chained record; what is
//! true now is the fold of its entries and is never stored beside them. The exact bytes that
//! were ratified are kept as frozen files, named by their digest.
//!
//! - [`Governance`]: the acts of people upon a project folder.
//! - [`Ledger`]: the port; [`SqliteLedger`] keeps it in `.wayleave/ledger.db`.
//! - [`State`]: what is true now, and the rules of what may follow.
//! - [`verify`]: what a check of the chain can find, and what it cannot.
//!
//! This crate must not know how mappings are drafted or shown, nor anything of MCP.

mod audit;
mod blocking;
mod canonical;
mod chain;
mod clock;
mod durable;
mod error;
mod event;
mod file_stamp;
mod frozen_mappings;
mod governance;
mod head;
mod ledger;
mod sqlite;
mod state;
mod text;
pub mod verify;
mod walk;

pub use audit::AuditReport;
pub use chain::{EntryHash, Head, HeadSyntax};
pub use clock::{Clock, FixedClock, Millis, SystemClock, rfc3339};
pub use error::{Action, Cause, DiskError, GovernanceError, LedgerError, OpenError};
pub use event::{Entry, Event, NewGrant, NewToken};
pub use file_stamp::FileStamp;
pub use governance::{
    FOLDER, Governance, GrantRequest, IssuedToken, NewSource, RatifyRequest, TokenRequest,
};
pub use ledger::Ledger;
pub use sqlite::SqliteLedger;
pub use state::{
    Activation, Dataset, GrantEntry, RatificationEntry, Refusal, Revocation, Source, State,
    TokenEntry, Validity,
};
pub use text::BadText;
pub use verify::{Problem, VerifyReport, Witness};
