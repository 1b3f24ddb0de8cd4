//! Writes as a caller sees them, over real SQLite, PostgreSQL and MariaDB.

mod contract;
mod crash;
mod edges;
mod generated;
mod hidden_rules;
mod laboratory;
mod narrowing;
mod races;
