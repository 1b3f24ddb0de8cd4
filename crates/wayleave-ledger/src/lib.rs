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
mod canonical;
mod chain;
mod clock;
mod durable;
mod error;
mod event;
mod frozen;
mod governance;
mod head;
mod ledger;
mod offload;
mod sqlite;
mod stamp;
mod state;
mod text;
pub mod verify;
mod walk;

pub use audit::AuditReport;
pub use chain::{EntryHash, Head, HeadSyntax};
pub use clock::{Clock, FixedClock, Millis, SystemClock, rfc3339};
pub use error::{Action, Cause, DiskError, GovernanceError, LedgerError, OpenError};
pub use event::{Entry, Event, NewGrant, NewToken};
pub use governance::{
    FOLDER, Freeze, Governance, Granting, Issued, Issuing, NewSource, ratification,
};
pub use ledger::Ledger;
pub use sqlite::SqliteLedger;
pub use stamp::FileStamp;
pub use state::{
    Activation, Dataset, GrantEntry, RatifiedEntry, Refusal, Revocation, Source, Standing, State,
    TokenEntry,
};
pub use text::BadText;
pub use verify::{Problem, VerifyReport, Witness};
