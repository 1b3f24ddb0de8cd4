//! A server with one of every primitive behind authentication, which counts dispatched calls.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};
use wayleave_ledger::{
    Clock, FOLDER, FixedClock, Governance, Millis, NewSource, SystemClock, TokenRequest,
};
use wayleave_mcp::{
    Batch, Caller, Completion, CompletionRef, Identity, Prompt, PromptMessage, PromptReply,
    ReadReply, Registry, Resource, ResourceContents, Server, Tool, ToolResult,
    http::{HttpServer, Options},
};
use wayleave_model::{
    grant::{Claims, Scope, TokenKind},
    mapping::SourceKind,
};
use wayleave_project::{Settings, source::EnvironmentVariables};
use wayleave_server::{
    auth::{Credentials, HttpAuth, ProcessToken, StdioAuth},
    watch::{self, LedgerWatch},
};
use wayleave_surface::access::{self, Access};

use crate::auth::{
    forge::{AUDIENCE, SigningKey, jwks},
    issuer::AuthorizationServer,
    wire::{Http, Pipe},
};

pub(crate) const WHO: &str = "ana";

pub(crate) struct AuthFixture {
    folder: TempDir,
    pub(crate) governance: Governance,
    pub(crate) credentials: Credentials,
    pub(crate) server: Server,
    pub(crate) issuer: AuthorizationServer,
    pub(crate) key: SigningKey,
    dispatched: Arc<AtomicUsize>,
    pub(crate) http: Http,
    _stop: DropGuard,
}

/// Settings that accept tokens of `issuer`, with the settings in `more`.
fn settings(issuer: &str, more: &str) -> Settings {
    let text = format!(
        "{more}\n[auth.jwt]\nissuer = \"{issuer}\"\naudience = \"{AUDIENCE}\"\n\
         [[auth.jwt.packages]]\nclaim = \"groups\"\ncontains = \"support\"\ngrants = []\n\
         [[auth.jwt.packages]]\nclaim = \"scope\"\ncontains = \"build\"\ngrants = []\n\
         scopes = [\"runtime\", \"builder\"]\n"
    );
    Settings::parse(&text).unwrap()
}

impl AuthFixture {
    pub(crate) async fn new() -> Self {
        Self::with("").await
    }

    /// A fixture with additional settings.
    pub(crate) async fn with(more: &str) -> Self {
        Self::by_clock(more, Arc::new(SystemClock)).await
    }

    /// Like [`with`](Self::with), checking credentials against a given clock.
    pub(crate) async fn by_clock(more: &str, clock: Arc<dyn Clock>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let open = || Governance::open(folder.path(), Arc::new(SystemClock)).unwrap();
        let governance = open();
        // Tokens are issued and revoked by one process, and looked up by another.
        let stop = CancellationToken::new();
        let watch = LedgerWatch::start(open(), watch::POLL_INTERVAL, stop.clone())
            .await
            .unwrap();
        let key = SigningKey::ed25519("current");
        let issuer = AuthorizationServer::start(jwks(&[&key])).await;
        let settings = settings(&issuer.issuer, more);
        let credentials = Credentials::with_clock(watch, &settings, clock);
        let (server, dispatched) = served();
        let options = Options::default();
        let anonymous = settings.anonymous.then(local);
        let door = HttpAuth::new(credentials.clone(), &settings, &options.path, anonymous);
        let options = Options {
            authenticate: Arc::new(door),
            ..options
        };
        let http = HttpServer::bind(&server, "127.0.0.1:0", options)
            .await
            .unwrap();
        let address = http.local_addr();
        tokio::spawn(http.serve(stop.clone()));
        Self {
            folder,
            governance,
            credentials,
            server,
            issuer,
            key,
            dispatched,
            http: Http::new(address),
            _stop: stop.drop_guard(),
        }
    }

    /// Number of handlers that ran.
    pub(crate) fn dispatched(&self) -> usize {
        self.dispatched.load(Ordering::SeqCst)
    }

    /// Issues a token; returns it and its id.
    pub(crate) async fn issue(
        &self,
        kind: TokenKind,
        scopes: &[Scope],
        expires: Option<Millis>,
    ) -> (String, String) {
        let request = TokenRequest {
            kind,
            scopes: scopes.iter().copied().collect(),
            grants: std::collections::BTreeSet::new(),
            claims: Claims::new(),
            label: String::new(),
            expires,
        };
        let issued = self.governance.issue_token(request, WHO).await.unwrap();
        (issued.secret.expose().to_owned(), issued.id)
    }

    pub(crate) async fn reader(&self) -> String {
        self.issue(TokenKind::Client, &[Scope::Runtime], None)
            .await
            .0
    }

    pub(crate) async fn revoke(&self, id: &str) {
        self.governance.revoke_token(id, WHO, "").await.unwrap();
    }

    /// Records an act with a clock that is ahead of the system clock.
    pub(crate) async fn act_ahead(&self, ahead: Millis) {
        let clock = FixedClock(SystemClock.now() + ahead);
        let other = Governance::open(self.folder.path(), Arc::new(clock)).unwrap();
        let source = NewSource {
            name: format!("source-{ahead}"),
            kind: SourceKind::Sqlite,
            env: "SOURCE_DSN".to_owned(),
        };
        other.add_source(source, WHO).await.unwrap();
    }

    /// A token that has just expired.
    pub(crate) async fn expired(&self) -> String {
        let past = SystemClock.now() - 1;
        self.issue(TokenKind::Client, &[Scope::Runtime], Some(past))
            .await
            .0
    }

    /// Makes the ledger unreadable, or readable again: moves its folder away, or back.
    pub(crate) fn set_ledger_readable(&self, is_readable: bool) {
        let folder = self.folder.path();
        let (there, aside) = (folder.join(FOLDER), folder.join("aside"));
        let (from, to) = if is_readable {
            (aside, there)
        } else {
            (there, aside)
        };
        std::fs::rename(from, to).unwrap();
    }

    /// A client on a pipe, whose server has these environment variables.
    pub(crate) fn pipe(&self, variables: &[(&str, &str)]) -> (Pipe, StdioAuth) {
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let given = ProcessToken::read(&EnvironmentVariables::with(variables.collect())).unwrap();
        self.pipe_with(given)
    }

    /// A client on a pipe, whose server was given this token.
    pub(crate) fn pipe_with(&self, given: ProcessToken) -> (Pipe, StdioAuth) {
        let door = StdioAuth::new(self.credentials.clone(), given, local());
        (Pipe::new(&self.server, door.clone()), door)
    }
}

pub(crate) fn local() -> Caller {
    Caller::new("local")
        .with_view("runtime")
        .with_attachment(Access::local())
}

pub(crate) fn seconds() -> i64 {
    SystemClock.now() / 1000
}

/// A server with one of every primitive, and a count of the handlers that ran.
fn served() -> (Server, Arc<AtomicUsize>) {
    let dispatched = Arc::new(AtomicUsize::new(0));
    let counted = || {
        let dispatched = dispatched.clone();
        move || {
            dispatched.fetch_add(1, Ordering::SeqCst);
        }
    };
    let tool = |name: &'static str, scope: Scope| {
        let count = counted();
        Tool::new(name, json!({ "type": "object" }), move |_| {
            count();
            async { Ok(ToolResult::text("done")) }
        })
        .unwrap()
        .visible(access::requires(scope, name))
    };
    let count = counted();
    let resource = Resource::new("test://one", "one", move |_| {
        count();
        async {
            let text = ResourceContents::text("test://one", "text/plain", "one");
            Ok(ReadReply::from(text))
        }
    })
    .subscribable();
    let count = counted();
    let prompt = Prompt::new("greet", move |_| {
        count();
        async { Ok(PromptReply::from(vec![PromptMessage::user("hello")])) }
    });
    let count = counted();
    let completion = Completion::new(CompletionRef::Prompt("greet".into()), move |_| {
        count();
        async { Ok(vec!["ana".to_owned()]) }
    });
    let registry = Registry::new();
    registry.commit(
        Batch::new()
            .add_tool(tool("echo", Scope::Runtime))
            .add_tool(tool("build", Scope::Builder))
            .add_tool(tool("author", Scope::Dev))
            .add_resource(resource)
            .add_prompt(prompt)
            .add_completion(completion),
    );
    let identity = Identity::new("fixture", "1.0.0");
    (Server::new(registry, identity), dispatched)
}

/// A method, its parameters, and the value of its `Mcp-Name` header if it has one.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) params: Value,
    pub(crate) named: Option<&'static str>,
}

fn method(name: &'static str, params: Value, named: Option<&'static str>) -> Method {
    Method {
        name,
        params,
        named,
    }
}

/// The methods of both eras.
fn common() -> Vec<Method> {
    let complete = json!({
        "ref": { "type": "ref/prompt", "name": "greet" },
        "argument": { "name": "who", "value": "a" },
    });
    vec![
        method("tools/list", json!({}), None),
        method(
            "tools/call",
            json!({ "name": "echo", "arguments": {} }),
            Some("echo"),
        ),
        method("resources/list", json!({}), None),
        method("resources/templates/list", json!({}), None),
        method(
            "resources/read",
            json!({ "uri": "test://one" }),
            Some("test://one"),
        ),
        method("prompts/list", json!({}), None),
        method("prompts/get", json!({ "name": "greet" }), Some("greet")),
        method("completion/complete", complete, None),
        method("no/such/method", json!({}), None),
    ]
}

/// Every method of a session, except `initialize`.
pub(crate) fn session_methods() -> Vec<Method> {
    let uri = json!({ "uri": "test://one" });
    let mut methods = common();
    methods.extend([
        method("ping", json!({}), None),
        method("resources/subscribe", uri.clone(), None),
        method("resources/unsubscribe", uri, None),
        method("logging/setLevel", json!({ "level": "info" }), None),
    ]);
    methods
}

/// Every method of the stateless era.
pub(crate) fn stateless_methods() -> Vec<Method> {
    let all = json!({ "notifications": { "toolsListChanged": true } });
    let mut methods = common();
    methods.extend([
        method("server/discover", json!({}), None),
        method("subscriptions/listen", all, None),
    ]);
    methods
}

pub(crate) fn hello() -> Value {
    json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "0" },
    })
}

/// Every scope.
pub(crate) const ALL: [Scope; 3] = Scope::ALL;
