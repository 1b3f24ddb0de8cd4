//! The ratified model as MCP tools.
//!
//! One [`ReadService`] serves every surface alike: tools, resources and the command line. It takes
//! a caller's package and arguments, has them planned, reads the one store that the plan names, and
//! writes the answer. It makes no decision about who may read what, and knows no driver.

/// Appends formatted text to a `String`, which cannot fail.
macro_rules! say {
    ($out:expr, $($what:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($what)*);
    }};
}

pub mod access;
mod aggregate;
mod call_context;
mod case_hint;
mod cell;
mod completions;
pub mod datasets;
mod describe;
mod escape;
mod evidence;
mod failure;
mod fetch;
mod ids;
mod indexing;
mod json_bytes;
pub mod live;
pub mod meta;
pub mod operation;
mod period;
mod prompts;
mod query;
mod related;
mod repair;
mod reply;
pub mod resources;
mod search;
mod service;
mod stream_index;
mod table;
mod tools;
mod truncate;
mod views;
pub mod workup;
mod write;

pub use call_context::Stores;
pub use indexing::{Extent, UnreadableStream};
pub use reply::{MAX_ERROR_BYTES, Reply};
pub use search::{Indexes, SearchIndexState};
pub use service::{ReadLimits, ReadService, WrittenStream};
pub use tools::{instructions, tools};
pub use write::{POLICY, WriteService, Writers};
