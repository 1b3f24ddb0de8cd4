//! Stores through their public interface, in one binary, so that its tests share one server of each
//! kind.
//!
//! A test that changes state shared by all sessions of a server starts its own server.
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

mod change_tokens;
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
mod samples;
mod scale;
mod sessions;
mod stopping;
mod stores;
mod times;
mod tpch;
mod trouble;
mod walks;
mod writes;
