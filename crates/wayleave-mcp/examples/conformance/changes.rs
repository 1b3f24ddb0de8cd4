//! Tools that change the registry, so that listening clients are notified.

use wayleave_mcp::{Batch, Prompt, PromptMessage, Registry, SchemaError, Tool, ToolResult};

use crate::no_arguments;

const TOOL: &str = "test_dynamic_tool";
const PROMPT: &str = "test_dynamic_prompt";

pub(crate) fn tools(registry: &Registry) -> Result<Vec<Tool>, SchemaError> {
    Ok(vec![changing_tools(registry)?, changing_prompts(registry)?])
}

fn changing_tools(registry: &Registry) -> Result<Tool, SchemaError> {
    let registry = registry.clone();
    let dynamic = Tool::new(TOOL, no_arguments(), |_| async {
        Ok(ToolResult::text("Here for now."))
    })?
    .describe("Comes and goes.");
    let trigger = Tool::new("test_trigger_tool_change", no_arguments(), move |_| {
        let (registry, dynamic) = (registry.clone(), dynamic.clone());
        async move {
            // Adding an existing tool changes no list.
            let added = registry.add_tool(dynamic).tools;
            if !added {
                registry.remove_tool(TOOL);
            }
            Ok(said(TOOL, added))
        }
    })?;
    Ok(trigger.describe("Adds a tool, or removes it if it exists."))
}

fn changing_prompts(registry: &Registry) -> Result<Tool, SchemaError> {
    let registry = registry.clone();
    let dynamic = Prompt::new(PROMPT, |_| async {
        Ok(PromptMessage::user("Here for now."))
    })
    .describe("Comes and goes.");
    let trigger = Tool::new("test_trigger_prompt_change", no_arguments(), move |_| {
        let (registry, dynamic) = (registry.clone(), dynamic.clone());
        async move {
            let added = registry.commit(Batch::new().add_prompt(dynamic)).prompts;
            if !added {
                registry.commit(Batch::new().remove_prompt(PROMPT));
            }
            Ok(said(PROMPT, added))
        }
    })?;
    Ok(trigger.describe("Adds a prompt, or removes it if it exists."))
}

fn said(what: &str, added: bool) -> ToolResult {
    let did = if added { "added" } else { "removed" };
    ToolResult::text(format!("{did} {what}"))
}
