//! The model's specification, in one binary: golden files, properties, hostile input, and what
//! must not compile.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod arbitrary;
mod case;
mod compile_fail;
mod goldens;
mod hostile;
mod lifecycle;
mod properties;
mod reference;
