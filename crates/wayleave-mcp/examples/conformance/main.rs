//! A server with the fixtures that the official conformance suite expects, built on this crate.
//!
//! ```text
//! cargo run -p wayleave-mcp --example conformance -- --port 8101
//! npx @modelcontextprotocol/conformance server --url http://127.0.0.1:8101/mcp
//! ```
//!
//! The suite defines the names and texts; none of them belongs to a product.

mod asking;
mod changes;
mod content;
mod elicitation;
mod input_required;
mod media;
mod prompts;
mod resources;
mod running;

use std::net::Ipv4Addr;

use clap::Parser;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use wayleave_mcp::{
    Batch, Identity, Registry, Server,
    http::{HttpServer, Options},
};

#[derive(Parser)]
struct Arguments {
    /// Where to listen on 127.0.0.1; 0 takes any free port.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let registry = Registry::new();
    registry.commit(everything(&registry)?);
    let mut identity = Identity::new("conformance", env!("CARGO_PKG_VERSION"));
    identity.logging = true;
    let server = Server::new(registry, identity);
    let address = (Ipv4Addr::LOCALHOST, arguments.port);
    let http = HttpServer::bind(&server, address, Options::default()).await?;
    let stop = CancellationToken::new();
    tokio::spawn(on_signal(
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        stop.clone(),
    ));
    announce(&format!("listening on http://{}/mcp", http.local_addr()));
    http.serve(stop).await;
    Ok(())
}

async fn on_signal(
    mut terminate: tokio::signal::unix::Signal,
    mut interrupt: tokio::signal::unix::Signal,
    stop: CancellationToken,
) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    stop.cancel();
}

#[allow(
    clippy::print_stderr,
    reason = "a program tells its user where it listens"
)]
fn announce(line: &str) {
    eprintln!("{line}");
}

/// All fixtures as one batch.
fn everything(registry: &Registry) -> anyhow::Result<Batch> {
    let tools = [
        content::tools()?,
        running::tools()?,
        elicitation::tools()?,
        input_required::tools()?,
        changes::tools(registry)?,
    ];
    let batch = tools
        .into_iter()
        .flatten()
        .fold(Batch::new(), Batch::add_tool);
    let batch = resources::add(batch)?;
    Ok(prompts::add(batch))
}

/// The schema of a tool without arguments.
fn no_arguments() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}
