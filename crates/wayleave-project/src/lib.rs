//! A project folder: its settings, drafts, sources and ledger, and every operation on them short of
//! serving.
//!
//! The command line, MCP tools and the console all call this crate, so that all show the same. It
//! must not know clients, listeners or tools.

pub mod activation;
pub mod activity_log;
pub mod adapters;
mod atomic_file;
pub mod backup;
pub mod call_summary;
pub mod change_triggers;
pub mod check;
pub mod columns;
pub mod datasets;
pub mod doctor;
pub mod draft;
pub mod draft_cache;
pub mod explanation;
pub mod file_diff;
pub mod inbox;
pub mod index_status;
pub mod input_schema;
pub mod keys;
pub mod meta;
pub mod overview;
pub mod project;
pub mod proposal;
pub mod ratified_mappings;
pub mod render;
pub mod rendering;
pub mod review;
pub mod row_access;
pub mod sanitize;
pub mod serving_status;
pub mod settings;
pub mod source;
pub mod source_probe;
pub mod suspension;
pub mod token_rules;
pub mod trust;
pub mod whole_grants;

pub use explanation::Explanation;
pub use project::{Project, ProjectError};
pub use rendering::Rendering;
pub use settings::{Settings, SettingsError};
