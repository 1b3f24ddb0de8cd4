//! Composition: a project folder, its settings, its sources, and what serves them.
//!
//! This crate joins the others; it holds no rule of its own about what may be read.

pub mod activation;
pub mod auth;
pub mod check;
pub mod datasets;
pub mod deployment;
mod descriptors;
pub mod doctor;
pub mod draft;
pub mod draft_cache;
pub mod index_status;
pub mod indexes;
pub mod keys;
pub mod overview;
pub mod packages;
pub mod project;
pub mod proposal;
pub mod review;
pub mod settings;
pub mod source;
pub mod source_probe;
mod stores;
pub mod tls;
pub mod token_rules;
pub mod watch;

pub use deployment::{DeployError, Deployment};
pub use project::{Project, ProjectError};
pub use settings::{Settings, SettingsError};
