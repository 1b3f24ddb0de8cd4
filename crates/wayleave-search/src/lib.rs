//! Full-text indexes over any stream: built aside, swapped whole, searched as one.
//!
//! One [`Index`] holds one stream of one connection, over the mapping's `search` fields. A
//! [`search`](search()) ranks the union of many by scores that are comparable, from the fields a
//! caller may see and no others. What it gives are candidates: whoever asks reads them at their
//! source, under the caller's own plan, before showing any, and makes [`snippet`]s from what was
//! read there. No text is kept here.
//!
//! Nothing here knows of grants, stores, plans or MCP.

mod analyze;
mod build;
mod error;
mod facts;
#[cfg(test)]
mod fixture;
mod hash;
mod impact;
mod index;
mod keys;
mod malformed;
mod matching;
mod query;
mod rank;
mod segment;
mod shelf;
pub mod snippet;
mod stamp;
mod top;
mod union;
mod window;

pub use analyze::ANALYZER;
pub use build::{Change, Document, Feed};
pub use error::IndexError;
pub use index::Index;
pub use query::{MOST_BYTES, MOST_PARTS, MOST_WORDS, Query};
pub use shelf::{Found, Place, Shelf, Usage};
pub use stamp::{Reach, Spec, Stamp};
pub use union::{Candidate, Position, Ranking, Score, Source, search};
