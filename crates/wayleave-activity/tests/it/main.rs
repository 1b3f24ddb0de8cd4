//! Tests of the activity log through its public interface: files, damage, crashes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests"
)]

mod calls;
mod crash;
mod damage;
mod keys;
mod search;
mod writing;
