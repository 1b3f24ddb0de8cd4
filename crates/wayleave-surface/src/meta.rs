//! Meta-capabilities as tools: `wayleave.meta.gen.mapping` is `wayleave_meta_gen_mapping`.
//!
//! The project defines the operations; this module turns them into tools for callers with the right
//! scope.

use std::sync::Arc;

use serde_json::{Map, json};
use wayleave_mcp::{Behaviour, Call, Caller, SchemaError, Tool};
use wayleave_project::meta::{MetaContext, MetaOperation};

use crate::access;
use crate::escape;
use crate::reply::Reply;

/// What these tools require of a deployment.
pub trait Authoring: Send + Sync + 'static {
    /// The context of a caller's operations.
    fn context(&self, caller: &Caller) -> MetaContext;
}

/// The tool of an operation.
pub fn tool(
    operation: &MetaOperation,
    authoring: &Arc<dyn Authoring>,
) -> Result<Tool, SchemaError> {
    let id = operation.id();
    let name = id.tool();
    let visibility = access::requires(operation.scope(), name.as_str());
    let mark = json!({
        "kind": "meta",
        "scope": operation.scope(),
        "namespace": id.namespace(),
        "op": id.op(),
        "idempotent": operation.is_idempotent(),
    });
    let behaviour = if id.op() == "propose" {
        Behaviour {
            read_only: Some(false),
            ..Behaviour::READ
        }
    } else {
        Behaviour::READ
    };
    let description = operation.description();
    let schema = operation.input_schema().clone();
    let (operation, authoring) = (operation.clone(), Arc::clone(authoring));
    let tool = Tool::new(name, schema, move |call: Call| {
        let (operation, authoring) = (operation.clone(), Arc::clone(&authoring));
        async move {
            let context = authoring.context(call.context.caller());
            Ok(match operation.run(context, call.arguments).await {
                Ok(rendering) => Reply::done(rendering.text(), rendering.document()),
                Err(refusal) => refused(&refusal.document()),
            })
        }
    })?;
    Ok(tool
        .describe(description)
        .behaving(Behaviour {
            idempotent: behaviour.idempotent,
            ..behaviour
        })
        .with_meta(Map::from_iter([("io.wayleave/tool".to_owned(), mark)]))
        // The operation validates its input strictly, and its refusals suggest corrections.
        .checking_arguments()
        .visible(visibility))
}

fn refused(document: &serde_json::Value) -> Reply {
    let error = document.get("error").unwrap_or(document);
    Reply {
        text: escape::json(error),
        structured: document.clone().into(),
        is_error: true,
    }
}
