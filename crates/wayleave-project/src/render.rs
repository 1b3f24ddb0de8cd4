//! The texts about results, for people, tools and the console.
//!
//! Decides nothing and reads nothing: each function turns a value of this crate into a
//! [`Rendering`](crate::Rendering) or an [`Explanation`](crate::Explanation).

pub mod activation;
pub mod activity;
pub mod audit;
pub mod backup;
pub mod catalogue;
pub mod check;
pub mod datasets;
pub mod doctor;
pub mod granting;
pub mod grants;
pub mod inbox;
pub mod indexes;
pub mod init;
pub mod issuing;
pub mod keys;
mod listing;
pub mod owners;
pub mod proposal;
pub mod retirement;
pub mod review;
pub mod serving;
pub mod sources;
pub mod tokens;
pub mod upkeep;

use wayleave_ledger::{Millis, rfc3339};

/// A time in RFC 3339, to the second.
pub fn moment(at: Millis) -> String {
    rfc3339(at.saturating_sub(at.rem_euclid(1000)))
}
