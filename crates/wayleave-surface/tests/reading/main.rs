//! Reading, as a caller sees it: the tools over real SQLite files.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_collect,
    clippy::format_push_string,
    clippy::print_stdout,
    clippy::too_many_lines,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

mod arguments;
mod budgets;
mod canary;
mod client;
mod database;
mod discovery;
mod failures;
mod fixture;
mod goldens;
mod injection;
mod long;
mod narrowing;
mod patience;
mod records;
mod search;
