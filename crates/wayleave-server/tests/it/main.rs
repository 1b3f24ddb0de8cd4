//! A deployment as its clients see it: real ledgers, real stores, a real issuer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod auth;
mod datasets;
mod upkeep;
