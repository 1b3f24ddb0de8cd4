//! A project to serve, and a second handle on its ledger, as another process would have.

use std::collections::BTreeMap;
use std::path::Path;

use tempfile::TempDir;
use wayleave_ledger::{Governance, NewSource, RatifyRequest, SystemClock};
use wayleave_model::digest::Digest;
use wayleave_model::grant::Scopes;
use wayleave_model::mapping::{Mapping, SourceKind};
use wayleave_model::ratify::{Draft, Ratified};
use wayleave_project::Project;
use wayleave_project::source::EnvironmentVariables;
use wayleave_server::Deployment;

const SQL: &str = "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, other TEXT);
    INSERT INTO things VALUES (1, 'one', 'uno'), (2, 'two', 'dos');";

/// A project, and a second handle on its ledger, as another process would have.
pub(crate) struct ProjectFixture {
    folder: TempDir,
    project: Project,
    pub(crate) other: Governance,
}

impl ProjectFixture {
    pub(crate) fn new() -> Self {
        Self::with_settings("")
    }

    /// A project with these settings.
    pub(crate) fn with_settings(settings: &str) -> Self {
        // Durability does not matter here, and a thousand acts on a disk are slow.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory).unwrap()
        } else {
            tempfile::tempdir().unwrap()
        };
        let project = Project::create(folder.path(), settings).unwrap();
        wayleave_project::source::create_sqlite(&folder.path().join("store.db"), SQL).unwrap();
        let clock = std::sync::Arc::new(SystemClock);
        let other = Governance::open(folder.path(), clock).unwrap();
        Self {
            folder,
            project,
            other,
        }
    }

    pub(crate) async fn open(&self) -> Deployment {
        Deployment::open(&self.project, self.environment())
            .await
            .unwrap()
    }

    /// Opens the project over a given database instead of its SQLite file.
    pub(crate) async fn open_over(&self, dsn: &str) -> Deployment {
        let environment = BTreeMap::from([("STORE_DSN".to_owned(), dsn.to_owned())]);
        Deployment::open(&self.project, EnvironmentVariables::with(environment))
            .await
            .unwrap()
    }

    /// The scopes that its settings permit.
    pub(crate) fn scopes(&self) -> Scopes {
        self.project.settings().scopes
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of the SQLite file.
    pub(crate) fn database(&self) -> String {
        let path = self.folder.path().join("store.db");
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn environment(&self) -> EnvironmentVariables {
        EnvironmentVariables::with(BTreeMap::from([("STORE_DSN".to_owned(), self.database())]))
    }

    pub(crate) async fn declare(&self) {
        self.declare_kind(SourceKind::Sqlite).await;
    }

    pub(crate) async fn declare_kind(&self, kind: SourceKind) {
        let source = NewSource {
            name: "store".to_owned(),
            kind,
            env: "STORE_DSN".to_owned(),
        };
        self.other.add_source(source, "ana").await.unwrap();
    }

    pub(crate) async fn ratify(&self, text: &str) -> Ratified<Mapping> {
        let proposed = Draft::new(text).propose(None).unwrap();
        let state = self.other.ledger().state().await.unwrap();
        let name = proposed.mapping().dataset.name.value.clone();
        let freeze = RatifyRequest {
            proposed,
            replaces: state.ratified(&name).map(|it| it.act.digest),
            who: "ana".to_owned(),
            note: String::new(),
        };
        self.other.ratify(freeze).await.unwrap()
    }

    /// Ratifies and activates a mapping, as the command line does.
    pub(crate) async fn connect(&self, text: &str) -> Digest {
        let mapping = self.ratify(text).await;
        self.other.activate(&mapping, "ana").await.unwrap();
        mapping.digest()
    }

    /// Replaces the bytes of a frozen mapping, and returns the old bytes.
    pub(crate) fn overwrite(&self, digest: Digest, bytes: Option<&[u8]>) -> Vec<u8> {
        let path = self.other.frozen_path(digest);
        let before = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes.unwrap_or(b"nothing of the kind")).unwrap();
        before
    }
}

/// A mapping of the table `things`, whose field `name` is read from `column`.
pub(crate) fn mapping(name: &str, type_name: &str, column: &str) -> String {
    format!(
        "[dataset]\nname = \"{name}\"\nkind = \"sqlite\"\n\n\
         [[connections]]\nid = \"{name}\"\nsource = \"store\"\n\n\
         [streams.things]\ntype = \"{type_name}\"\nkey = [\"id\"]\ntitle = \"name\"\n\n\
         [streams.things.fields]\nid = {{ datatype = \"integer\" }}\n\
         name = {{ datatype = \"string\", column = \"{column}\" }}\n"
    )
}
