//! Datasets that come and go while a deployment serves: what other processes do to the ledger,
//! what goes wrong, and what very many cost. Real ledgers and real SQLite files.

mod client;
mod fixture;
mod indexes;
mod listed;
mod many;
mod serving;
