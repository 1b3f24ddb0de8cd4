//! The specification of search, in one binary: ranking across indexes, its quality and size
//! compared with SQLite's, and crashes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod analyzers;
mod crash;
mod relevance;
mod size;
mod union;
