//! Reads as a caller sees them: the tools over real SQLite files.

mod analysis;
mod arguments;
mod budgets;
mod canary;
mod client;
pub mod database;
mod discovery;
mod failures;
pub mod fixture;
mod goldens;
mod injection;
mod long_values;
mod mistakes;
mod narrowing;
mod patience;
mod records;
mod resources;
mod search;
