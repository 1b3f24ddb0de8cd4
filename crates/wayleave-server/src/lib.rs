//! Composition: serves a project to agents.
//!
//! This crate joins the others; it holds no rule of its own about what may be read.

pub mod active_settings;
pub mod activity;
pub mod auth;
pub mod console;
pub mod deployment;
mod descriptors;
pub mod indexes;
pub mod listener;
pub mod packages;
mod stores;
pub mod telemetry;
pub mod tls;
pub mod watch;

pub use deployment::{DeployError, Deployment};
