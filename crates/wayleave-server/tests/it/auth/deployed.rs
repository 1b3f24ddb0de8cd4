//! The product's own tools behind authentication.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};
use wayleave_ledger::TokenRequest;
use wayleave_model::grant::{Claims, Scope, TokenKind};
use wayleave_project::{Project, source::EnvironmentVariables};
use wayleave_server::Deployment;

use crate::auth::{fixture::WHO, wire::Http};

struct DeploymentFixture {
    _folder: TempDir,
    project: Project,
    _deployment: Arc<Deployment>,
    http: Http,
    _stop: DropGuard,
}

impl DeploymentFixture {
    async fn with(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::create(folder.path(), settings).unwrap();
        let deployment = Deployment::open(&project, EnvironmentVariables::process())
            .await
            .unwrap();
        let http = deployment
            .bind("127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        let address = http.local_addr();
        let stop = CancellationToken::new();
        tokio::spawn(http.serve(stop.clone()));
        Self {
            _folder: folder,
            project,
            _deployment: Arc::new(deployment),
            http: Http::new(address),
            _stop: stop.drop_guard(),
        }
    }

    async fn client(&self, scopes: &[Scope]) -> Http {
        let request = TokenRequest {
            kind: TokenKind::Client,
            scopes: scopes.iter().copied().collect(),
            grants: BTreeSet::new(),
            claims: Claims::new(),
            label: String::new(),
            expires: None,
        };
        let issued = self
            .project
            .governance()
            .issue_token(request, WHO)
            .await
            .unwrap();
        self.http.with(issued.secret.expose())
    }
}

async fn tools(client: &Http) -> Vec<Value> {
    let listed = client
        .send(client.stateless("tools/list", &json!({}), None))
        .await
        .json();
    listed["result"]["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> BTreeSet<&str> {
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

const READING: [&str; 5] = ["aggregate", "fetch", "query_records", "schema", "search"];

#[tokio::test]
async fn a_runtime_token_sees_exactly_the_five_and_a_builder_more() {
    let deployed = DeploymentFixture::with("[serve]\ntokens = true").await;
    let reader = tools(&deployed.client(&[Scope::Runtime]).await).await;
    assert_eq!(names(&reader), BTreeSet::from(READING));
    let builder = deployed.client(&[Scope::Runtime, Scope::Builder]).await;
    let built = tools(&builder).await;
    let more: BTreeSet<_> = names(&built).difference(&names(&reader)).copied().collect();
    assert!(
        more.contains("connect_dataset") && more.contains("list_datasets"),
        "{more:?}"
    );
    // A tool that a reader does not see cannot be called either, and the error gives the reason.
    let reader = deployed.client(&[Scope::Runtime]).await;
    for tool in more {
        let denied = reader.call(tool).await;
        assert_eq!(denied.status, 403, "{tool}");
        let data =
            json!({ "tool": tool, "required_scope": "builder", "caller_scopes": ["runtime"] });
        let mut told = denied.json()["error"]["data"].clone();
        let named = told.as_object_mut().unwrap().remove("_meta").unwrap();
        assert!(named["io.wayleave/activity"].is_string(), "{named}");
        assert_eq!(told, data);
    }
    let neither = deployed.client(&[]).await;
    assert_eq!(tools(&neither).await, Vec::<Value>::new());
    for tool in READING {
        assert_eq!(neither.call(tool).await.status, 403, "{tool}");
    }
}

#[tokio::test]
async fn every_tool_says_what_kind_it_is_for_programs() {
    let deployed = DeploymentFixture::with(
        "[serve]\ntokens = true\nscopes = [\"runtime\", \"builder\", \"dev\"]",
    )
    .await;
    let all = tools(&deployed.client(&Scope::ALL).await).await;
    assert!(all.len() > READING.len());
    let mut kinds = BTreeSet::new();
    for tool in &all {
        let told = &tool["_meta"]["io.wayleave/tool"];
        let name = tool["name"].as_str().unwrap();
        let is_authoring = name.starts_with("wayleave_meta_");
        let kind = if is_authoring { "meta" } else { "runtime" };
        assert_eq!(told["kind"], kind, "{tool}");
        kinds.insert(kind);
    }
    assert_eq!(kinds.len(), 2, "tools of each kind are listed");
}

#[tokio::test]
async fn with_no_token_and_no_leave_nobody_could_connect_and_so_it_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let project = Project::create(folder.path(), "").unwrap();
    let deployment = Deployment::open(&project, EnvironmentVariables::process())
        .await
        .unwrap();
    let address = "127.0.0.1:0".parse().unwrap();
    let refused = deployment.bind(address).await.err().unwrap();
    assert!(
        refused.hint().unwrap().contains("wayleave token create"),
        "{refused}"
    );
    // One token is enough.
    let request = TokenRequest {
        kind: TokenKind::Client,
        scopes: [Scope::Runtime].into_iter().collect(),
        grants: BTreeSet::new(),
        claims: Claims::new(),
        label: String::new(),
        expires: None,
    };
    let issued = project
        .governance()
        .issue_token(request, WHO)
        .await
        .unwrap();
    assert!(deployment.bind(address).await.is_ok());
    // Beyond this machine, a listener also needs encryption.
    let refused = deployment.bind("0.0.0.0:0".parse().unwrap()).await;
    assert!(refused.err().unwrap().hint().unwrap().contains("serve.tls"));
    project
        .governance()
        .revoke_token(&issued.id, WHO, "")
        .await
        .unwrap();
    assert!(deployment.bind(address).await.is_err());
    deployment.close().await;
}
