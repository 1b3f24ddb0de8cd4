//! The suite every adapter runs: the same records and the same requests must give the same answers
//! as the reference interpreter, byte for byte.
//!
//! An adapter's test loads [`fixture::rows`] into its store under [`fixture::mapping`], and calls
//! [`run`]. A difference that the store cannot hide is an [`Exclusion`] with a reason; an exclusion
//! that is no longer needed fails the suite.

pub mod fixture;
mod malformed;
mod questions;
mod requests;
mod run;
mod seeded_rng;

pub use malformed::{MalformedReport, run_malformed};
pub use questions::{QuestionsReport, run_questions};
pub use run::{ConformanceError, Exclusion, Options, Report, ServedMapping, run};
pub use seeded_rng::SeededRng;
