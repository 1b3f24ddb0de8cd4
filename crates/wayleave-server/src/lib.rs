//! Composition: a project folder, its settings, its sources, and what serves them.
//!
//! This crate joins the others; it holds no rule of its own about what may be read.

pub mod auth;
pub mod deployment;
mod descriptors;
pub mod indexes;
pub mod packages;
mod stores;
pub mod tls;
pub mod watch;

pub use deployment::{DeployError, Deployment};
pub use wayleave_project::{
    Project, ProjectError, Settings, SettingsError, activation, check, datasets, doctor, draft,
    draft_cache, index_status, keys, overview, project, proposal, review, settings, source,
    source_probe, token_rules,
};
