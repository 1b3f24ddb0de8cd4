//! Pages of a project whose records cannot be read, and the words they share with the command line.

use std::{collections::BTreeSet, fs, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, StatusCode, header};
use serde_json::{Map, Value};
use tempfile::TempDir;
use wayleave_activity::{Activity, LogStamp};
use wayleave_ledger::{
    FOLDER, GrantRequest, KeyFileError, RatifyRequest, SecretString, TokenRequest, UnlockedKey,
};
use wayleave_model::{
    grant::{Claims, Scopes, TokenKind},
    mapping::Mapping,
    ratify::{Draft, Proposed, Ratified},
};
use wayleave_plan::{package::GrantSelection, read_tool::ReadTool};
use wayleave_project::{
    Explanation, Project, Rendering,
    call_summary::{CallQuery, CallSummary, RecentUse},
    index_status::{IndexFault, IndexReadiness, IndexStatus, IndexStatuses},
    row_access::ROW_ACCESS_FILE,
    source_probe::SourceProbe,
};

use crate::{Console, ConsoleBackend, ConsoleOptions, ConsoleSigning, ReadTrial, SampleRows};

const PORT: u16 = 7412;

const MAPPING: &str = "[dataset]\nname = \"crm\"\nkind = \"sqlite\"\n\n\
                       [[connections]]\nid = \"crm-eu\"\nsource = \"store\"\n\n\
                       [streams.things]\ntype = \"Thing\"\nkey = [\"id\"]\ntitle = \"name\"\n\n\
                       [streams.things.fields.id]\ndatatype = \"integer\"\n\n\
                       [streams.things.fields.name]\ndatatype = \"string\"\n";

/// A backend without calls, whose record of recent use cannot be read.
#[derive(Default)]
struct FailingBackend {
    probe: SourceProbe,
    /// The indexes, if they can be read.
    indexes: Option<IndexStatuses>,
}

fn failure() -> Explanation {
    Explanation::new("the disk is gone")
}

#[async_trait]
impl ConsoleBackend for FailingBackend {
    fn probe(&self) -> &SourceProbe {
        &self.probe
    }

    async fn connect(&self, _: &str, _: &str) -> Result<Rendering, Explanation> {
        Err(failure())
    }

    async fn disconnect(&self, _: &str, _: &str) -> Result<Rendering, Explanation> {
        Err(failure())
    }

    async fn sample(&self, _: &Proposed, _: &str) -> Result<SampleRows, Explanation> {
        Err(failure())
    }

    async fn try_read(
        &self,
        _: Option<&str>,
        _: ReadTool,
        _: Map<String, Value>,
    ) -> Result<ReadTrial, Explanation> {
        Err(failure())
    }

    async fn indexes(&self) -> Result<IndexStatuses, Explanation> {
        self.indexes.clone().ok_or_else(failure)
    }

    async fn calls(&self, _: CallQuery) -> Result<CallSummary, Explanation> {
        Ok(CallSummary::default())
    }

    async fn call(&self, _: &str) -> Result<Option<Activity>, Explanation> {
        Err(failure())
    }

    async fn recent_use(&self) -> Result<RecentUse, Explanation> {
        Err(failure())
    }

    async fn verify_calls(&self) -> Result<Rendering, Explanation> {
        Err(failure())
    }

    async fn calls_since(
        &self,
        _: u64,
        _: &LogStamp,
    ) -> Result<Option<(LogStamp, usize)>, Explanation> {
        Err(failure())
    }

    fn agents_url(&self) -> Option<String> {
        None
    }

    async fn unlock(&self, path: PathBuf, _: SecretString) -> Result<UnlockedKey, KeyFileError> {
        Err(KeyFileError::Disk {
            path,
            doing: "opened",
            source: std::io::Error::other("the disk is gone"),
        })
    }

    fn listening(&self) -> usize {
        0
    }
}

/// A console and a signed-in person.
struct Visit {
    folder: TempDir,
    project: Project,
    console: Console,
    cookie: String,
}

impl Visit {
    fn new(backend: FailingBackend) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::create(folder.path(), "").unwrap();
        let options = ConsoleOptions {
            port: PORT,
            signing: ConsoleSigning::default(),
        };
        let console = Console::new(project.clone(), Arc::new(backend), options);
        let session = console.sessions.begin("ana", console.now()).unwrap();
        let cookie = format!("{}={session}", console.cookie());
        Self {
            folder,
            project,
            console,
            cookie,
        }
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        let request = Request::get(path)
            .header(header::HOST, format!("127.0.0.1:{PORT}"))
            .header(header::COOKIE, &self.cookie)
            .body(Bytes::new());
        let response = self.console.respond(request.unwrap()).await;
        let status = response.status();
        let page = String::from_utf8(response.into_body().to_vec()).unwrap();
        (status, page)
    }

    /// The page at `path`, which is there.
    async fn page(&self, path: &str) -> String {
        let (status, page) = self.get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {page}");
        page
    }

    /// Makes the dataset `crm` live.
    async fn connect(&self) -> Ratified<Mapping> {
        let governance = self.project.governance();
        let request = RatifyRequest {
            proposed: Draft::new(MAPPING).propose(None).unwrap(),
            replaces: None,
            who: "ana".to_owned(),
            note: String::new(),
        };
        let mapping = governance.ratify(request).await.unwrap();
        governance.activate(&mapping, "ana").await.unwrap();
        mapping
    }

    /// Grants all of a dataset.
    async fn grant(&self, mapping: &Ratified<Mapping>) -> String {
        let request = GrantRequest {
            terms: GrantSelection::default().terms(mapping).unwrap(),
            expires: None,
            purpose: String::new(),
        };
        self.project
            .governance()
            .grant(request, "ana")
            .await
            .unwrap()
    }
}

#[track_caller]
fn says(page: &str, words: &[&str]) {
    for words in words {
        assert!(page.contains(words), "`{words}` is not in:\n{page}");
    }
}

fn index(stream: &str) -> IndexStatus {
    IndexStatus {
        dataset: "crm".to_owned(),
        connection_id: "crm-eu".to_owned(),
        stream: stream.to_owned(),
        state: IndexReadiness::Ready,
        documents: Some(2),
        malformed: None,
        bytes: 10,
        as_of: None,
        analyzer: "none",
        fields: Vec::new(),
        follows_changes: false,
    }
}

#[tokio::test]
async fn an_inbox_that_cannot_be_read_is_not_shown_as_empty() {
    let visit = Visit::new(FailingBackend::default());
    let empty = visit.page("/grants").await;
    assert!(!empty.contains("class=\"count\""), "{empty}");
    fs::write(visit.folder.path().join(FOLDER).join("inbox"), "").unwrap();
    let page = visit.page("/grants").await;
    says(
        &page,
        &["<span class=\"count\">?</span>", "the inbox cannot be read"],
    );
    let (status, page) = visit.get("/inbox").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    says(&page, &["The inbox cannot be read."]);
}

#[tokio::test]
async fn a_record_of_row_views_that_cannot_be_read_is_not_shown_as_empty() {
    let visit = Visit::new(FailingBackend::default());
    fs::create_dir(visit.folder.path().join(FOLDER).join(ROW_ACCESS_FILE)).unwrap();
    let page = visit.page("/activity").await;
    says(
        &page,
        &["The record of people who looked at rows cannot be read."],
    );
}

#[tokio::test]
async fn use_that_cannot_be_read_is_not_shown_as_none() {
    let visit = Visit::new(FailingBackend::default());
    let mapping = visit.connect().await;
    visit.grant(&mapping).await;
    let grants = visit.page("/grants").await;
    says(
        &grants,
        &["When they were last used is unknown.", "The disk is gone."],
    );
    assert!(!grants.contains("not in 24 hours"), "{grants}");
    for path in ["/datasets", "/datasets/crm"] {
        let page = visit.page(path).await;
        says(
            &page,
            &[
                "What was called is unknown.",
                "The search indexes cannot be read.",
                "The disk is gone.",
            ],
        );
    }
}

#[tokio::test]
async fn an_index_that_cannot_be_read_counts_as_not_ready() {
    let fault = IndexFault {
        dataset: "crm".to_owned(),
        connection_id: "crm-eu".to_owned(),
        stream: "things".to_owned(),
        why: Explanation::new("the index `crm-eu/things` cannot be read"),
    };
    let visit = Visit::new(FailingBackend {
        indexes: Some(IndexStatuses {
            known: vec![index("others")],
            faults: vec![fault],
        }),
        ..FailingBackend::default()
    });
    visit.connect().await;
    let all = visit.page("/datasets").await;
    says(
        &all,
        &["1 of 2 ready", "Not all of the search indexes are known."],
    );
    let one = visit.page("/datasets/crm").await;
    says(
        &one,
        &["unreadable", "Not all of the search indexes are known."],
    );
}

#[tokio::test]
async fn a_grant_of_a_dataset_that_cannot_be_read_says_why_it_is_not_compared() {
    let visit = Visit::new(FailingBackend::default());
    let mapping = visit.connect().await;
    let grant = visit.grant(&mapping).await;
    let path = format!("/grants/{grant}");
    let (_, page) = visit.get(&path).await;
    assert!(!page.contains("It was not compared"), "{page}");
    let frozen = visit.project.governance().frozen_path(mapping.digest());
    fs::remove_file(&frozen).unwrap();
    let (_, page) = visit.get(&path).await;
    says(
        &page,
        &[
            "It was not compared with its dataset.",
            "is missing",
            "unknown",
        ],
    );
}

#[tokio::test]
async fn a_token_whose_grant_has_ended_says_so() {
    let visit = Visit::new(FailingBackend::default());
    let mapping = visit.connect().await;
    let grant = visit.grant(&mapping).await;
    let governance = visit.project.governance();
    let request = TokenRequest {
        kind: TokenKind::Client,
        scopes: Scopes::RUNTIME,
        grants: BTreeSet::from([grant.clone()]),
        claims: Claims::default(),
        label: String::new(),
        expires: None,
    };
    let token = governance.issue_token(request, "ana").await.unwrap().id;
    let path = format!("/tokens/{token}");
    let (_, page) = visit.get(&path).await;
    assert!(!page.contains("has ended"), "{page}");
    governance.revoke_grant(&grant, "ana", "").await.unwrap();
    let (_, page) = visit.get(&path).await;
    says(
        &page,
        &["It reads less than its grants seem to allow.", "has ended."],
    );
}

#[tokio::test]
async fn who_retires_a_dataset_reads_that_it_is_live_and_what_it_takes_along() {
    let visit = Visit::new(FailingBackend::default());
    let mapping = visit.connect().await;
    visit.grant(&mapping).await;
    let page = visit.page("/datasets/crm").await;
    says(
        &page,
        &["it is live, and ends for every client; it takes 1 grant along."],
    );
}
