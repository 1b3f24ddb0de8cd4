//! Meta-capabilities: the operations by which agents author mappings, and nothing else.
//!
//! An operation is named `wayleave.meta.<namespace>.<op>` and has one implementation, which MCP
//! tools and the command line share. An operation sees catalogues, ratified mappings and its own
//! caller's proposals. None sees a row, a DSN or a token, and none ratifies, grants, connects or
//! deletes: [`MetaContext`] offers no way to.

mod context;
mod drift;
mod generate;
mod input;
mod mappings;
mod operation;
mod refusal;
mod registry;
mod shape;
mod sources;
mod table_stream;
#[cfg(test)]
mod tests;

pub use context::MetaContext;
pub use operation::{MetaOperation, MetaOperationError, OperationId};
pub use refusal::{MetaCode, MetaRefusal};
pub use registry::MetaRegistry;

use wayleave_model::grant::Scope;

use crate::Rendering;

/// The result of an operation.
pub type MetaResult = Result<Rendering, MetaRefusal>;

/// The built-in operations.
pub fn operations() -> Result<Vec<MetaOperation>, MetaOperationError> {
    let mut all = vec![MetaOperation::new(
        "wayleave.meta.ping",
        Scope::Builder,
        "Answers, so that a client knows that authoring works and which version serves it.",
        sources::ping,
    )?];
    all.extend(sources::operations()?);
    all.extend(generate::operations()?);
    all.extend(mappings::operations()?);
    all.extend(drift::operations()?);
    Ok(all)
}
