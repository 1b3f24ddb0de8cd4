//! The baseline server: the minimum that rmcp allows. No registry, no validation of arguments, no
//! limits, no panic guard. `TCP_NODELAY` is set, because otherwise the comparison would measure
//! Nagle's algorithm. It must not know `wayleave-mcp`.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rmcp::handler::server::router::tool::{ToolRoute, ToolRouter};
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use tokio::net::TcpListener;

use crate::process::LISTENING;
use crate::tools;
use crate::wire::Ask;

/// Serves `ask` over Streamable HTTP until the process ends.
pub(crate) async fn http(ask: Ask) -> Result<()> {
    match ask {
        Ask::Echo => serve_http(Echo::new()).await,
        Ask::List { tools } => serve_http(Catalogue::new(tools)).await,
    }
}

/// Serves `ask` over stdin and stdout until the client disconnects.
pub(crate) async fn stdio(ask: Ask) -> Result<()> {
    match ask {
        Ask::Echo => serve_stdio(Echo::new()).await,
        Ask::List { tools } => serve_stdio(Catalogue::new(tools)).await,
    }
}

async fn serve_http(handler: impl ServerHandler + Clone) -> Result<()> {
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    let service = TowerToHyperService::new(service);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    writeln!(
        std::io::stderr(),
        "{LISTENING}{}/mcp",
        listener.local_addr()?
    )?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service.clone();
        tokio::spawn(async move {
            // A client that disconnects mid-request does not concern the benchmark.
            let _ = Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn serve_stdio(handler: impl ServerHandler) -> Result<()> {
    let service = handler.serve(rmcp::transport::io::stdio_pipes()).await?;
    service.waiting().await.context("the stdio service")?;
    Ok(())
}

/// One hand-written tool.
#[derive(Clone)]
struct Echo {
    tool: Arc<Tool>,
}

impl Echo {
    fn new() -> Self {
        let tool = Tool::new(tools::ECHO, tools::ECHO_DESCRIPTION, tools::echo_schema());
        Self {
            tool: Arc::new(tool),
        }
    }
}

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        config()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![(*self.tool).clone()]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != self.tool.name {
            return Err(ErrorData::invalid_params("unknown tool", None));
        }
        let arguments = request.arguments.unwrap_or_default();
        let text = arguments.get("text").and_then(|text| text.as_str());
        let text = text.ok_or_else(|| ErrorData::invalid_params("`text` is missing", None))?;
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// Many tools, in rmcp's own router.
#[derive(Clone)]
struct Catalogue {
    router: Arc<ToolRouter<Catalogue>>,
}

impl Catalogue {
    fn new(count: usize) -> Self {
        let schema = Arc::new(tools::catalogue_schema());
        let mut router = ToolRouter::new();
        for index in 0..count {
            let tool = Tool::new(
                tools::name(index),
                tools::description(index),
                schema.clone(),
            );
            router.add_route(ToolRoute::new_dyn(tool, |_| {
                Box::pin(async { Ok(CallToolResult::success(Vec::new()).into()) })
            }));
        }
        Self {
            router: Arc::new(router),
        }
    }
}

impl ServerHandler for Catalogue {
    fn get_info(&self) -> ServerConfig {
        config()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.router.list_all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.router
            .call(ToolCallContext::new(self, request, context))
            .await
    }
}

fn config() -> ServerConfig {
    ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
}
