//! Wayleave as a library: serve a project from a Rust program of your own, with operations of your
//! own beside its datasets.
//!
//! ```no_run
//! use wayleave::{Deployment, EnvironmentVariables, Operation, Project};
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let project = Project::open(".".as_ref())?;
//! let deployment = Deployment::open(&project, EnvironmentVariables::process()).await?;
//! deployment.register(Operation::new("ping", |_, _: Nothing| async { Ok("pong") }))?;
//! # Ok(())
//! # }
//! # #[derive(serde::Deserialize, schemars::JsonSchema)]
//! # struct Nothing {}
//! ```
//!
//! The guide `docs/guide/embedding.md` walks through the example `embedding`.

pub use wayleave_model::constraint::{FieldError, FieldErrorCode};
pub use wayleave_model::grant::Scope;
pub use wayleave_project::{Project, source::EnvironmentVariables};
pub use wayleave_server::{DeployError, Deployment, auth::ProcessToken};
pub use wayleave_surface::Reply;
pub use wayleave_surface::operation::{
    Operation, OperationCall, OperationError, OperationNotRegistered, SideEffects,
};
