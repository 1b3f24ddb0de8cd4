//! Tools that do something while they run: log, report progress, fail, hang up.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use wayleave_mcp::{Call, LogLevel, SchemaError, Tool, ToolResult};

use crate::no_arguments;

/// The pause the suite wants between messages.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn tools() -> Result<Vec<Tool>, SchemaError> {
    Ok(vec![
        Tool::new("test_tool_with_logging", no_arguments(), logging)?
            .describe("Logs three messages while it runs."),
        Tool::new("test_logging_tool", no_arguments(), logging)?
            .describe("Logs only when the request asks for it."),
        Tool::new("test_tool_with_progress", no_arguments(), progress)?
            .describe("Reports progress three times while it runs."),
        Tool::new("test_error_handling", no_arguments(), |_| async {
            Ok(ToolResult::error(
                "This tool intentionally returns an error for testing",
            ))
        })?
        .describe("Always fails."),
        Tool::new("test_reconnection", no_arguments(), |call| async move {
            call.context.hang_up(PAUSE).await;
            Ok(ToolResult::text("The stream was closed and resumed."))
        })?
        .describe("Closes its stream and answers when the client comes back."),
    ])
}

async fn logging(call: Call) -> Result<ToolResult, wayleave_mcp::RpcError> {
    let log = |text: &'static str| call.context.log(LogLevel::Info, "conformance", json!(text));
    log("Tool execution started").await;
    sleep(PAUSE).await;
    log("Tool processing data").await;
    sleep(PAUSE).await;
    log("Tool execution completed").await;
    Ok(ToolResult::text("Tool with logging executed successfully"))
}

async fn progress(call: Call) -> Result<ToolResult, wayleave_mcp::RpcError> {
    call.context.progress(0.0, Some(100.0), None).await;
    sleep(PAUSE).await;
    call.context.progress(50.0, Some(100.0), None).await;
    sleep(PAUSE).await;
    call.context.progress(100.0, Some(100.0), None).await;
    Ok(ToolResult::text("Tool with progress executed successfully"))
}
