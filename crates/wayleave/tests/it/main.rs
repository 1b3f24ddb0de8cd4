//! The command line as its users see it: the real program, real stores, real files.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests"
)]

mod analysis;
mod backup;
mod client;
mod client_crash;
mod client_told;
mod client_words;
mod contract;
mod crash;
mod credentials;
mod exposure;
mod findings;
mod grants;
mod guide;
mod hostile;
mod index;
mod json;
mod languages;
mod masks;
mod newcomer;
mod replaced;
mod same_words;
mod samples;
mod secrets;
mod serving;
mod session;
mod stores;
mod tamper;
mod terminal;
mod upkeep;
mod write_crash;
