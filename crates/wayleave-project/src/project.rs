//! A project folder: settings, drafts, and the record of decisions.
//!
//! ```text
//! wayleave.toml      settings
//! mappings/*.toml    drafts, for version control
//! ontology.toml      optional: the closed vocabulary
//! .wayleave/         frozen mappings, ledger, indexes; private to the user
//! ```

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use wayleave_ledger::{
    Clock, Governance, LedgerError, OpenError, Signer, SystemClock, TrustAnchor,
};

use crate::{
    settings::{self, Settings, SettingsError},
    trust::{TrustError, TrustStore},
};

/// The folder of drafts.
pub const MAPPINGS: &str = "mappings";
/// The optional vocabulary.
pub const ONTOLOGY: &str = "ontology.toml";

/// An open project.
#[derive(Debug, Clone)]
pub struct Project {
    folder: PathBuf,
    settings: Settings,
    governance: Governance,
}

/// Why a project cannot be opened or created.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The folder holds no project.
    #[error("`{}` is not a Wayleave project", folder.display())]
    None {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds a project already.
    #[error("`{}` is a Wayleave project already", folder.display())]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// A file or folder could not be read or written.
    #[error("`{}` cannot be {doing}", path.display())]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The ledger cannot be opened.
    #[error(transparent)]
    Ledger(#[from] OpenError),
    /// The trust anchor of the project cannot be determined.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

impl ProjectError {
    /// What the operator can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::None { .. } => {
                Some("make one with `wayleave init`, or name another with `--project`")
            }
            Self::Exists { .. } => Some("go on with `wayleave source add`"),
            Self::Ledger(error) => error.hint(),
            Self::Settings(error) => return error.hint(),
            Self::Trust(error) => Some(error.hint()),
            Self::Disk { .. } => None,
        };
        hint.map(str::to_owned)
    }
}

impl Project {
    /// Opens the project in `folder`, and trusts the owner that its ledger names.
    pub fn open(folder: &Path) -> Result<Self, ProjectError> {
        Self::open_trusting(folder, &TrustStore::default())
    }

    /// Opens the project in `folder`. Its ledger must match its trust anchor.
    pub fn open_trusting(folder: &Path, trust: &TrustStore) -> Result<Self, ProjectError> {
        Self::open_with(folder, trust, Governance::open_with_anchor)
    }

    /// Opens the project in `folder` for reading. It may be a copy that cannot be written.
    pub fn open_to_read(folder: &Path) -> Result<Self, ProjectError> {
        Self::open_to_read_trusting(folder, &TrustStore::default())
    }

    /// The same. Its ledger must match its trust anchor.
    pub fn open_to_read_trusting(folder: &Path, trust: &TrustStore) -> Result<Self, ProjectError> {
        Self::open_with(
            folder,
            trust,
            |folder, clock, anchor| match Governance::open_with_anchor(
                folder,
                Arc::clone(&clock),
                anchor,
            ) {
                Err(OpenError::Ledger(LedgerError::ReadOnly { .. })) => {
                    Governance::open_read_only(folder, clock, anchor)
                }
                opened => opened,
            },
        )
    }

    /// Opens the project in `folder` and writes nothing to it.
    pub fn open_read_only(folder: &Path) -> Result<Self, ProjectError> {
        Self::open_with(folder, &TrustStore::default(), Governance::open_read_only)
    }

    fn open_with(
        folder: &Path,
        trust: &TrustStore,
        governance: impl FnOnce(&Path, Arc<dyn Clock>, TrustAnchor) -> Result<Governance, OpenError>,
    ) -> Result<Self, ProjectError> {
        let file = folder.join(settings::FILE);
        let text = fs::read_to_string(&file).map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => ProjectError::None {
                folder: folder.to_owned(),
            },
            _ => ProjectError::Disk {
                path: file.clone(),
                doing: "read",
                cause,
            },
        })?;
        let settings = Settings::parse(&text)?;
        let anchor = trust.anchor(folder)?;
        let governance = governance(folder, Arc::new(SystemClock), anchor)?;
        // A ledger that cannot be read reports its error when it is first used.
        if let Ok(state) = governance.ledger().state_blocking() {
            trust.note(folder, &state);
        }
        Ok(Self {
            folder: folder.to_owned(),
            settings,
            governance,
        })
    }

    /// Creates a project in `folder`, with the given text as its settings file.
    pub fn create(folder: &Path, settings: &str) -> Result<Self, ProjectError> {
        let file = folder.join(settings::FILE);
        if file.exists() {
            return Err(ProjectError::Exists {
                folder: folder.to_owned(),
            });
        }
        let disk = |path: &Path, cause| ProjectError::Disk {
            path: path.to_owned(),
            doing: "written",
            cause,
        };
        let drafts = folder.join(MAPPINGS);
        fs::create_dir_all(&drafts).map_err(|cause| disk(&drafts, cause))?;
        let ignore = folder.join(".gitignore");
        if !ignore.exists() {
            fs::write(&ignore, "/.wayleave/\n").map_err(|cause| disk(&ignore, cause))?;
        }
        // Written last: a folder is a project once it has its settings.
        fs::write(&file, settings).map_err(|cause| disk(&file, cause))?;
        Self::open(folder)
    }

    /// The same project, with decisions signed by an owner's key in `signer`.
    #[must_use]
    pub fn with_signer(&self, signer: Arc<dyn Signer>) -> Self {
        Self {
            governance: self.governance.with_signer(signer),
            ..self.clone()
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of drafts.
    pub fn drafts(&self) -> PathBuf {
        self.folder.join(MAPPINGS)
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The ledger of decisions, and the frozen mappings.
    pub fn governance(&self) -> &Governance {
        &self.governance
    }
}
