//! The search crate's specification, in one binary: ranking across indexes, its quality and size
//! beside SQLite's, and what a crash leaves.
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
