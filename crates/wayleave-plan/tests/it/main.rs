//! The specification of planning, in one binary: golden plans and refusals, and properties checked
//! with the reference interpreter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod computed;
mod expansions;
mod explain;
mod fixture;
mod goldens;
mod grants;
mod hostile;
mod masks;
mod neighbours;
mod requests;
mod seals;
mod selections;
mod surface;
mod values;
mod walks;
