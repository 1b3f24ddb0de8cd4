//! Search as a caller sees it: fair over many connections, exact page by page, and silent about
//! data that is not granted.

mod asked;
mod freshness;
mod hits;
mod library;
mod malformed;
mod notes;
mod ranking;

pub use library::Library;
