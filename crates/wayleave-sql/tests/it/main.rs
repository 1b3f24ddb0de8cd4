//! The stores as callers meet them, in one binary, so that its tests share one server of each kind.
//!
//! A test that changes what all sessions of a server share starts one of its own.
#![allow(
    clippy::disallowed_methods,
    clippy::format_collect,
    clippy::format_push_string,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests"
)]

mod conformance;
mod documented;
mod edges;
mod exotic;
mod fixtures;
mod hostile;
mod inline_reads;
mod introspect;
mod memory;
mod propose;
mod scale;
mod sessions;
mod stopping;
mod stores;
mod times;
mod trouble;
mod walks;
