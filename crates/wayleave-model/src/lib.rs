//! The vocabulary of Wayleave.
//!
//! Everything here is a value or a pure function over values: no async, clock, file,
//! environment or network.

pub mod catalogue;
pub mod mapping;
