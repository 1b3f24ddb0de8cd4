//! The record of every call: one activity each, in a tamper-evident log.
//!
//! A log is a folder with one sub-folder per concurrent writer. A writer appends to segments; each
//! record is chained to the one before it, each segment to the segment before it, and a head beside
//! them states how far the log goes. Closed segments are compressed and indexed. Old segments are
//! dropped by policy, and a record of the log states what was dropped.
//!
//! This crate knows neither the protocol a call came by nor the stores it read.

mod activity;
mod archive;
mod archiver;
mod argument_keys;
mod chain;
mod codec;
mod collector;
mod copy;
mod error;
mod filter;
mod head;
mod id_source;
mod log;
mod pending;
mod prov;
mod reader;
mod segment;
mod shape;
mod verify;
mod writer;

pub use activity::{
    Activity, ActivityId, Agent, ArgumentRecord, CallOutcome, CallTransport, GrantUse, RecordList,
    SealedArguments, TraceParent,
};
pub use argument_keys::{ARGUMENT_KEYS_FILE, ArgumentKeyError, ArgumentKeys};
pub use codec::RecordDecodeError;
pub use collector::{CallCollector, CallSpan, CollectedCall, MAX_LISTED_RECORDS};
pub use error::{LogError, ReadError};
pub use filter::ActivityFilter;
pub use log::{ActivityLog, LogOptions, SealObserver, SegmentSeal};
pub use pending::PendingRecord;
pub use prov::{PROV_CONTEXT, prov_document, prov_node};
pub use reader::{ActivityReader, LogStamp};
pub use shape::{argument_shape, public_text};
pub use verify::{LogDamage, LogReport, WriterReport};
