//! A deployment as seen by its clients: real ledgers, real stores, a real issuer.
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
