//! A project with one searched stream, as a human would create it, and the product's server for it.
#![expect(
    clippy::disallowed_methods,
    reason = "statements without values, on databases of the benchmark's own"
)]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rusqlite::Connection;
use serde_json::{Map, Value as Json};
use tokio_util::sync::CancellationToken;
use wayleave_ledger::{FOLDER, NewSource, RatifyRequest};
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::Draft;
use wayleave_plan::package::Package;
use wayleave_plan::search::SearchableStream;
use wayleave_project::Project;
use wayleave_project::index_status;
use wayleave_project::source::EnvironmentVariables;
use wayleave_search::{Index, IndexDir, IndexRoot, IndexState};
use wayleave_server::Deployment;

use super::corpus;
use super::rivals::BuildCost;
use crate::process::{self, LISTENING};

const VARIABLE: &str = "WAYLEAVE_BENCH_DSN";
const WHO: &str = "wayleave-bench";
const SETTINGS: &str = "[project]\nname = \"bench\"\n\n[serve]\nanonymous = true\n";
/// Time to wait until an existing index is served.
const INDEX_TIMEOUT: Duration = Duration::from_mins(2);

const MAPPING: &str = r#"
[dataset]
name = "library"
title = "Library"
kind = "sqlite"

[[connections]]
id = "library"
label = "Library"
source = "library"

[streams.docs]
type = "Document"
key = ["id"]
title = "title"
search = ["title", "body"]
description = "Short documents."

[streams.docs.fields.id]
datatype = "integer"
required = true

[streams.docs.fields.title]
datatype = "string"

[streams.docs.fields.body]
datatype = "string"
"#;

/// A project in a folder.
pub(crate) struct Library {
    folder: PathBuf,
    dsn: String,
    project: Project,
}

impl Library {
    /// Opens the project in a folder.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        Ok(Self {
            folder: folder.to_owned(),
            dsn: source(folder).to_string_lossy().into_owned(),
            project: Project::open(folder)?,
        })
    }

    /// Creates the source and the project in a folder.
    pub(crate) async fn make(folder: &Path, documents: u64) -> Result<Self> {
        let path = source(folder);
        tokio::task::spawn_blocking(move || fill(&path, documents)).await??;
        let project = Project::create(folder, SETTINGS)?;
        let governance = project.governance();
        let new = NewSource {
            name: "library".to_owned(),
            kind: SourceKind::Sqlite,
            env: VARIABLE.to_owned(),
        };
        governance.add_source(new, WHO).await?;
        let freeze = RatifyRequest {
            proposed: Draft::new(MAPPING.to_owned()).propose(None)?,
            replaces: None,
            who: WHO.to_owned(),
            note: "the documents of the benchmark".to_owned(),
        };
        let mapping = governance.ratify(freeze).await?;
        governance.activate(&mapping, WHO).await?;
        Self::open(folder)
    }

    /// The project, served inside this process.
    pub(crate) async fn deployment(&self) -> Result<Deployment> {
        let given = BTreeMap::from([(VARIABLE.to_owned(), self.dsn.clone())]);
        Ok(Deployment::open(&self.project, EnvironmentVariables::with(given)).await?)
    }

    /// Builds the index, as `wayleave index rebuild` does.
    pub(crate) async fn index(&self, deployment: &Deployment) -> Result<(Index, BuildCost)> {
        let what = only(deployment)?;
        let began = Instant::now();
        deployment.rebuild_index(&what).await?;
        let time = began.elapsed();
        let bytes = self.index_dir(&what)?.usage()?.bytes;
        Ok((self.opened(deployment)?, BuildCost { time, bytes }))
    }

    /// Opens the built index.
    pub(crate) fn opened(&self, deployment: &Deployment) -> Result<Index> {
        let what = only(deployment)?;
        let IndexState::Ready(index) = self
            .index_dir(&what)?
            .open(&index_status::spec(&what.indexed))?
        else {
            anyhow::bail!("the built index is missing");
        };
        Ok(index)
    }

    fn index_dir(&self, what: &SearchableStream) -> Result<IndexDir> {
        let indexes = IndexRoot::new(self.folder.join(FOLDER).join("index"));
        Ok(indexes.dir(&what.connection_id, &what.stream)?)
    }

    /// The command that starts a server of the project as a subprocess.
    pub(crate) fn server(&self) -> Result<Command> {
        let mut command = process::this_binary()?;
        command.arg("library").arg(&self.folder);
        command.env(VARIABLE, &self.dsn);
        Ok(command)
    }
}

fn source(folder: &Path) -> PathBuf {
    folder.join("source.db")
}

fn only(deployment: &Deployment) -> Result<SearchableStream> {
    let mut all = deployment.service().searchable();
    all.pop().context("nothing can be searched")
}

fn fill(path: &Path, documents: u64) -> Result<()> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA synchronous = OFF; \
         CREATE TABLE docs (id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL);",
    )?;
    let all = connection.transaction()?;
    {
        let mut insert = all.prepare("INSERT INTO docs VALUES (?1, ?2, ?3)")?;
        for text in corpus::documents(documents) {
            insert.execute((i64::try_from(text.id)?, &text.title, &text.body))?;
        }
    }
    all.commit()?;
    Ok(())
}

/// Opens the index that is on disk and waits until it is served.
pub(crate) async fn serve_indexes(deployment: &Deployment) -> Result<()> {
    deployment.start_indexing();
    let began = Instant::now();
    loop {
        let arguments = Map::from_iter([("q".to_owned(), Json::from("anything"))]);
        let caller = Package::local();
        let reply = deployment.service().search(&caller, arguments).await;
        if !reply.is_error {
            return Ok(());
        }
        ensure!(began.elapsed() < INDEX_TIMEOUT, "the index is not served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Serves a project over HTTP until the process ends.
pub(crate) async fn serve(folder: &Path) -> Result<()> {
    let project = Project::open(folder)?;
    let deployment = Deployment::open(&project, EnvironmentVariables::process()).await?;
    serve_indexes(&deployment).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let http = deployment.bind(address).await.context("listening")?;
    writeln!(std::io::stderr(), "{LISTENING}{}/mcp", http.local_addr())?;
    http.serve(CancellationToken::new()).await;
    Ok(())
}
