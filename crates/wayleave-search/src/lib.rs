//! Full-text indexes over any stream: built aside, swapped whole, searched as one.
//!
//! One [`Index`] holds one stream of one connection, over the mapping's `search` fields. A
//! [`search`](search()) ranks the union of many by comparable scores, using only the fields a
//! caller may see. It returns candidates: the caller must read each one at its source, under its
//! own plan, before showing it, and makes [`snippet`]s from the text read there. An index stores
//! no text.
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

pub use analyze::Analyzer;
pub use build::{Change, Document, Feed};
pub use error::IndexError;
pub use index::Index;
pub use index_root::{IndexDir, IndexRoot, IndexState, Usage};
pub use query::{MAX_PARTS, MAX_PHRASE_WORDS, MAX_QUERY_BYTES, Query};
pub use stamp::{Spec, Stamp, Watermark};
pub use union::{Candidate, Ranking, SearchedIndex, search};
pub use wayleave_model::ranking::{RankPosition, Score};
