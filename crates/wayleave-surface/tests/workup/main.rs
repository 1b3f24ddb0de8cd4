//! Workups, as a caller sees them: over real SQLite files, with facts planted to be found.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_collect,
    clippy::format_push_string,
    clippy::print_stdout,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

mod citations;
mod facts;
mod fixture;
mod granted;
mod hostile;
mod limits;
mod load;
mod meaning;
mod mutation;
mod tools;
