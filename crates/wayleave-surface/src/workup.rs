//! `workup`: what is known about one entity of one dataset, statement by statement, each with the
//! records that support it. No model is involved: the same data gives the same text.
//!
//! A workup reads through the caller's own plans, in a view that holds its dataset and nothing
//! else. `check_citations` tells whether a note written from a workup keeps to its evidence.

mod ambiguity;
mod answer;
mod citations;
mod conflicts;
mod gap;
mod node;
mod prose;
mod quote;
mod reader;
mod relations;
mod render;
mod resolve;
mod sections;
mod statement;

use std::sync::OnceLock;

use wayleave_mcp::{Behaviour, Call, SchemaError, Tool, ToolResult};
use wayleave_model::mapping::Dataset;
use wayleave_plan::request::{CitationsRequest, WorkupRequest};

use crate::access::Access;
use crate::service::ReadService;
use crate::tools;

/// The name of the tool for any dataset.
pub const WORKUP: &str = "workup";
/// The name of the tool that checks a note.
pub const CHECK_CITATIONS: &str = "check_citations";

/// `workup(dataset, entity, …)`, for callers with the `builder` scope.
pub fn tool(service: &ReadService) -> Result<Tool, SchemaError> {
    let description = "What is known of one entity of a dataset, every statement cited as [g1]: \
        its record, relations, timeline, texts, conflicts and gaps. Deterministic; no model.";
    tool_of(service, WORKUP, description, None)
}

/// `workup_<name>(entity, …)`: the workup of one dataset, for callers with the `builder` scope.
pub fn tool_for(service: &ReadService, dataset: &Dataset) -> Result<Tool, SchemaError> {
    let description = format!(
        "What is known of one entity of dataset {}, every statement cited as [g1]: its \
         record, relations, timeline, texts, conflicts and gaps. Deterministic; no model.",
        dataset.name
    );
    let own = Some(dataset.name.value.clone());
    tool_of(service, &dataset.workup_tool(), &description, own)
}

fn tool_of(
    service: &ReadService,
    name: &str,
    description: &str,
    dataset: Option<String>,
) -> Result<Tool, SchemaError> {
    let shape = match dataset {
        None => None,
        Some(_) => Some(shape()?),
    };
    let (service, tool) = (service.clone(), name.to_owned());
    let handler = move |call: Call| {
        let (service, tool, dataset) = (service.clone(), tool.clone(), dataset.clone());
        async move {
            let package = &Access::from_caller(call.context.caller()).package;
            let read = WorkupRequest::parse(&tool, dataset.as_deref(), &call.arguments);
            Ok(match read {
                Ok(request) => service.workup(package, &request).await,
                Err(refusal) => refusal.into(),
            })
        }
    };
    let tool = match shape {
        None => Tool::new(name.to_owned(), WorkupRequest::input_schema(true), handler)?,
        Some(shape) => shape.like(name.to_owned(), handler)?,
    };
    Ok(tools::for_builders(tool, description, Behaviour::READ))
}

/// The schema that the workups of all datasets share, compiled once.
fn shape() -> Result<Tool, SchemaError> {
    static SHAPE: OnceLock<Tool> = OnceLock::new();
    if let Some(shape) = SHAPE.get() {
        return Ok(shape.clone());
    }
    let schema = WorkupRequest::input_schema(false);
    let shape = Tool::new(WORKUP, schema, |_| async { Ok(ToolResult::default()) })?;
    Ok(SHAPE.get_or_init(|| shape).clone())
}

/// `check_citations(note, workup)`, for callers with the `builder` scope.
pub fn check_citations(service: &ReadService) -> Result<Tool, SchemaError> {
    let description = "Whether a note keeps to the evidence of a workup: citations that lead \
        nowhere, evidence unused, claims without a citation.";
    let service = service.clone();
    let handler = move |call: Call| {
        let package = &Access::from_caller(call.context.caller()).package;
        let reply = service.check_citations(package, &call.arguments);
        async move { Ok(reply) }
    };
    let schema = CitationsRequest::input_schema();
    let tool = Tool::new(CHECK_CITATIONS, schema, handler)?;
    Ok(tools::for_builders(tool, description, Behaviour::READ))
}
