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
#[cfg(test)]
mod fixture;
mod hash;
mod impact;
mod index;
mod index_root;
mod keys;
mod malformed;
mod part_postings;
mod prune;
mod query;
mod rank;
mod segment;
mod segment_stats;
pub mod snippet;
mod stamp;
mod top_k;
mod union;
mod window;

pub use analyze::ANALYZER;
pub use build::{Change, Document, Feed};
pub use error::IndexError;
pub use index::Index;
pub use index_root::{IndexDir, IndexRoot, IndexState, Usage};
pub use query::{MAX_PARTS, MAX_PHRASE_WORDS, MAX_QUERY_BYTES, Query};
pub use stamp::{Spec, Stamp, Watermark};
pub use union::{Candidate, RankCursor, Ranking, Score, Source, search};
