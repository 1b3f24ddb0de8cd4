//! The server under test: `wayleave-mcp` on its own transports, with its default limits and checks.
//! It offers what the bare server offers, and nothing is switched off for the benchmark.

use std::io::Write as _;

use anyhow::Result;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use wayleave_mcp::http::{HttpServer, Options};
use wayleave_mcp::{Batch, Caller, Identity, Registry, Server, Tool, ToolResult};

use crate::process::LISTENING;
use crate::tools;
use crate::wire::Ask;

/// Serves `ask` over Streamable HTTP until the process ends.
pub(crate) async fn http(ask: Ask) -> Result<()> {
    let http = HttpServer::bind(&server(ask)?, "127.0.0.1:0", Options::default()).await?;
    writeln!(std::io::stderr(), "{LISTENING}{}/mcp", http.local_addr())?;
    http.serve(CancellationToken::new()).await;
    Ok(())
}

/// Serves `ask` over stdin and stdout until the client disconnects.
pub(crate) async fn stdio(ask: Ask) -> Result<()> {
    let server = server(ask)?;
    server
        .serve_stdio(Caller::anonymous(), CancellationToken::new())
        .await?;
    Ok(())
}

fn server(ask: Ask) -> Result<Server> {
    let registry = Registry::new();
    registry.commit(match ask {
        Ask::Echo => Batch::new().add_tool(echo()?),
        Ask::List { tools } => catalogue(tools)?,
    });
    Ok(Server::new(
        registry,
        Identity::new("wayleave-bench", env!("CARGO_PKG_VERSION")),
    ))
}

fn echo() -> Result<Tool> {
    let tool = Tool::new(
        tools::ECHO,
        Value::Object(tools::echo_schema()),
        |call| async move { Ok(ToolResult::text(call.text("text"))) },
    )?;
    Ok(tool.describe(tools::ECHO_DESCRIPTION))
}

fn catalogue(count: usize) -> Result<Batch> {
    let schema = Value::Object(tools::catalogue_schema());
    let mut batch = Batch::new();
    for index in 0..count {
        let tool = Tool::new(tools::name(index), schema.clone(), |_| async {
            Ok(ToolResult::default())
        })?;
        batch = batch.add_tool(tool.describe(tools::description(index)));
    }
    Ok(batch)
}
