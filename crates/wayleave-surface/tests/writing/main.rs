//! Writes as a caller sees them, over real SQLite, PostgreSQL and MariaDB.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::too_many_lines,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

mod contract;
mod crash;
mod edges;
mod generated;
mod hidden_rules;
mod laboratory;
mod narrowing;
mod races;
