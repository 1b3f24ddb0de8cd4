//! The ledger's specification, in one binary: what it records and refuses, what a crash leaves,
//! and how tampering shows.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod authority;
mod crash;
mod freeze;
mod ledger;
mod owners;
mod processes;
mod project;
mod replaced;
mod tamper;
