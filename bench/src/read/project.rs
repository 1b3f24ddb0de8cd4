//! A project as a human would create it, with a source and an activated mapping, and the product's
//! server for it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use wayleave_ledger::{NewSource, RatifyRequest};
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::Draft;
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_project::Project;
use wayleave_project::source::EnvironmentVariables;
use wayleave_server::Deployment;

use crate::process::{self, LISTENING};

/// The variable that holds the source's DSN.
const VARIABLE: &str = "WAYLEAVE_BENCH_DSN";
const WHO: &str = "wayleave-bench";
const SETTINGS: &str = "[project]\nname = \"bench\"\n\n[serve]\nanonymous = true\n";

/// A project in a temporary folder.
pub(crate) struct Shop {
    folder: TempDir,
    /// The store of the orders.
    pub(crate) kind: SourceKind,
    /// Its DSN.
    pub(crate) dsn: String,
    /// The project.
    pub(crate) project: Project,
}

impl Shop {
    /// Creates the project of a source, mapped by `streams`.
    pub(crate) async fn make(kind: SourceKind, dsn: String, streams: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let project = Project::create(folder.path(), SETTINGS)?;
        let governance = project.governance();
        let source = NewSource {
            name: "shop".to_owned(),
            kind,
            env: VARIABLE.to_owned(),
        };
        governance.add_source(source, WHO).await?;
        let dialect = match kind {
            SourceKind::Postgres => "kind = \"postgres\"\nschema = \"public\"",
            _ => "kind = \"sqlite\"",
        };
        let mapping = format!(
            "[dataset]\nname = \"shop\"\ntitle = \"Shop\"\n{dialect}\n\n\
             [[connections]]\nid = \"shop\"\nlabel = \"Shop\"\nsource = \"shop\"\n\n{streams}"
        );
        let proposed = Draft::new(mapping).propose(None)?;
        let freeze = RatifyRequest {
            proposed,
            replaces: None,
            who: WHO.to_owned(),
            note: "the table of the benchmark".to_owned(),
        };
        let mapping = governance.ratify(freeze).await?;
        governance.activate(&mapping, WHO).await?;
        Ok(Self {
            folder,
            kind,
            dsn,
            project,
        })
    }

    /// The project, served inside this process.
    pub(crate) async fn deployment(&self) -> Result<Deployment> {
        let given = BTreeMap::from([(VARIABLE.to_owned(), self.dsn.clone())]);
        Ok(Deployment::open(&self.project, EnvironmentVariables::with(given)).await?)
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Passes the DSN to a server process.
    pub(crate) fn give_dsn(&self, command: &mut Command) {
        command.env(VARIABLE, &self.dsn);
    }

    /// Its activated mapping.
    pub(crate) async fn active(&self) -> Result<ActiveDatasets> {
        let mapping = self.project.governance().load("shop").await?;
        Ok(ActiveDatasets::new(vec![Arc::new(mapping)])?)
    }

    /// The command that starts a server of the project as a subprocess.
    pub(crate) fn server(&self) -> Result<Command> {
        let mut command = process::this_binary()?;
        command.arg("shop").arg(self.folder.path());
        command.env(VARIABLE, &self.dsn);
        Ok(command)
    }
}

/// Serves a project over HTTP until the process ends.
pub(crate) async fn serve(folder: &Path) -> Result<()> {
    let project = Project::open(folder)?;
    let deployment = Deployment::open(&project, EnvironmentVariables::process()).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let http = deployment.bind(address).await.context("listening")?;
    writeln!(std::io::stderr(), "{LISTENING}{}/mcp", http.local_addr())?;
    http.serve(CancellationToken::new()).await;
    Ok(())
}
