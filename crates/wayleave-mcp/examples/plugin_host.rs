//! A plugin host: tools, resources, templates and prompts that come and go while clients watch.
//!
//! ```text
//! cargo run -p wayleave-mcp --example plugin_host -- --http 127.0.0.1:8123
//! ```
//!
//! Call `load_plugin {"name": "demo"}` from one client, and every other client is notified that its
//! lists changed.

use clap::Parser;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use wayleave_mcp::{
    Batch, Caller, Completion, CompletionRef, Identity, Prompt, PromptMessage, Registry, Resource,
    ResourceContents, ResourceTemplate, RpcError, Server, Tool, ToolResult,
    http::{HttpServer, Options},
};

#[derive(Parser)]
struct Arguments {
    /// Serve one client over standard input and output.
    #[arg(long, conflicts_with = "http")]
    stdio: bool,
    /// Serve over Streamable HTTP at this address.
    #[arg(long, default_value = "127.0.0.1:0")]
    http: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let registry = Registry::new();
    registry.commit(
        Batch::new()
            .add_tool(load(&registry)?)
            .add_tool(unload(&registry)?),
    );
    let server = Server::new(
        registry,
        Identity::new("plugin-host", env!("CARGO_PKG_VERSION")),
    );
    let stop = CancellationToken::new();
    let on_signal = stop.clone();
    tokio::spawn(async move {
        stopped().await;
        on_signal.cancel();
    });
    if arguments.stdio {
        server.serve_stdio(Caller::anonymous(), stop).await?;
    } else {
        let http = HttpServer::bind(&server, &arguments.http, Options::default()).await?;
        announce(&format!("listening on http://{}/mcp", http.local_addr()));
        http.serve(stop).await;
    }
    Ok(())
}

/// Waits for Ctrl-C, or for the signal that service managers send.
async fn stopped() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated => {}
    }
}

#[allow(
    clippy::print_stderr,
    reason = "a program tells its user where it listens"
)]
fn announce(line: &str) {
    eprintln!("{line}");
}

fn named(what: &str) -> serde_json::Value {
    json!({
        "type": "object",
        "properties": { "name": { "type": "string", "pattern": "^[a-z]{1,16}$", "description": what } },
        "required": ["name"],
        "additionalProperties": false
    })
}

fn load(registry: &Registry) -> anyhow::Result<Tool> {
    let registry = registry.clone();
    let tool = Tool::new("load_plugin", named("Plugin to load"), move |call| {
        let registry = registry.clone();
        async move {
            let name = call.text("name").to_owned();
            let plugin =
                plugin(&name).map_err(|error| RpcError::invalid_params(error.to_string()))?;
            let commit = registry.commit(plugin);
            Ok(ToolResult::text(format!(
                "loaded {name} at revision {}",
                commit.revision
            )))
        }
    })?;
    Ok(tool.describe("Loads a plugin: its tool, resources and prompt appear for every client."))
}

fn unload(registry: &Registry) -> anyhow::Result<Tool> {
    let registry = registry.clone();
    let tool = Tool::new("unload_plugin", named("Plugin to unload"), move |call| {
        let registry = registry.clone();
        async move {
            let name = call.text("name");
            let commit = registry.commit(
                Batch::new()
                    .remove_tool(format!("{name}_echo"))
                    .remove_resource(format!("plugin://{name}/about"))
                    .remove_template(template(name))
                    .remove_prompt(format!("{name}_prompt"))
                    .remove_completion(CompletionRef::prompt(format!("{name}_prompt"))),
            );
            Ok(ToolResult::text(format!(
                "unloaded {name} at revision {}",
                commit.revision
            )))
        }
    })?;
    Ok(tool.describe("Unloads a plugin: what it brought disappears for every client."))
}

fn template(name: &str) -> String {
    format!("plugin://{name}/{{item}}")
}

/// All primitives of a plugin as one batch.
fn plugin(name: &str) -> anyhow::Result<Batch> {
    let echo = Tool::new(
        format!("{name}_echo"),
        json!({
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
            "additionalProperties": false
        }),
        |call| async move { Ok(ToolResult::text(call.text("text"))) },
    )?
    .describe("Returns the text it is given.");
    let about = Resource::new(
        format!("plugin://{name}/about"),
        "about",
        |read| async move { Ok(ResourceContents::text(read.uri, "text/plain", "A plugin.")) },
    )
    .of_type("text/plain")
    .subscribable();
    let items = ResourceTemplate::new(template(name), "item", |read| async move {
        let item = read.variables.get("item").cloned().unwrap_or_default();
        Ok(ResourceContents::text(
            read.uri,
            "text/plain",
            format!("item {item}"),
        ))
    })?;
    let prompt = Prompt::new(format!("{name}_prompt"), |call| async move {
        Ok(PromptMessage::user(format!(
            "Tell me about {}.",
            call.text("topic")
        )))
    })
    .describe("Asks about a topic.")
    .required("topic", "What to ask about");
    let topics = Completion::new(
        CompletionRef::prompt(format!("{name}_prompt")),
        |completing| async move {
            let topics = ["alpha", "beta", "gamma"];
            Ok(topics
                .iter()
                .filter(|topic| topic.starts_with(&completing.value))
                .map(ToString::to_string)
                .collect())
        },
    );
    Ok(Batch::new()
        .add_tool(echo)
        .add_resource(about)
        .add_template(items)
        .add_prompt(prompt)
        .add_completion(topics))
}
