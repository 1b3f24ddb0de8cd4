//! The port every store adapter implements.
//!
//! An adapter reads a store that it did not create, and changes it only through a [`Writer`]. This
//! crate defines what an adapter must offer and how it fails; it knows no driver, no dialect and no
//! DSN.

mod capabilities;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod introspect;
mod read;
mod rows;
mod write;

pub use capabilities::{Capabilities, Difference, Topic};
pub use error::{Detail, StoreError};
pub use introspect::{
    Introspect, IntrospectOptions, Limits, Progress, SampleError, Step, ignore_progress,
};
pub use read::{Answer, CallerKey, OnMalformed, ReadContext, Store, check_suspension};
pub use rows::{ReceiverGone, Row, RowSender, Rows};
pub use write::{WriteContext, WriteError, WriteOutcome, Writer, check_suspended_write};
