//! The vocabulary of Wayleave.
//!
//! Everything here is a value or a pure function over values: no async, clock, file,
//! environment or network.

pub mod catalogue;
pub mod check;
mod codes;
pub mod constraint;
mod definitions;
pub mod diff;
pub mod digest;
pub mod drift;
pub mod expression;
pub mod grant;
pub mod mapping;
pub mod mask;
pub mod names;
pub mod nearest;
pub mod ontology;
pub mod parse;
pub mod print;
pub mod problem;
pub mod propose;
pub mod ranking;
pub mod ratify;
pub mod schema;
pub mod sensitive;
