//! Reads, writes, workups and replaced datasets as a caller sees them, over real databases.
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

mod live;
mod reading;
mod versions;
mod workup;
mod writing;
