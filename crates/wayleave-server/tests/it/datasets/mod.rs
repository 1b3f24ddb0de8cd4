//! Datasets that are activated and deactivated while a deployment serves: acts of other processes,
//! failures, and the cost of very many. Real ledgers and real SQLite files.

mod authoring;
pub(crate) mod client;
pub(crate) mod fixture;
mod indexes;
mod listed;
mod many;
mod serving;
