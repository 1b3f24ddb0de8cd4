//! TPC-H, the database of a wholesale supplier: its tables, a mapping, and the questions that a
//! single call can answer.

mod data;
mod questions;

pub use data::sql;
pub use questions::{Question, questions};

/// The streams of a mapping, with the computed fields and measures an owner would write.
pub const STREAMS: &str = include_str!("tpch/mapping.toml");
