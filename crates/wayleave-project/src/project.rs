//! A project folder: settings, drafts, and what people have decided.
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

use wayleave_ledger::{Clock, Governance, LedgerError, OpenError, SystemClock};

use crate::settings::{self, Settings, SettingsError};

/// The folder of drafts.
pub const MAPPINGS: &str = "mappings";
/// The optional vocabulary.
pub const ONTOLOGY: &str = "ontology.toml";

/// A project, opened.
#[derive(Debug, Clone)]
pub struct Project {
    folder: PathBuf,
    settings: Settings,
    governance: Governance,
}

/// Why a project cannot be opened or made.
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
            Self::Disk { .. } => None,
        };
        hint.map(str::to_owned)
    }
}

impl Project {
    /// Opens the project in `folder`.
    pub fn open(folder: &Path) -> Result<Self, ProjectError> {
        Self::open_with(folder, Governance::open)
    }

    /// Opens the project in `folder` for reading. It may be a copy that cannot be written.
    pub fn open_to_read(folder: &Path) -> Result<Self, ProjectError> {
        Self::open_with(folder, |folder, clock| {
            match Governance::open(folder, Arc::clone(&clock)) {
                Err(OpenError::Ledger(LedgerError::ReadOnly { .. })) => {
                    Governance::open_read_only(folder, clock)
                }
                opened => opened,
            }
        })
    }

    /// Opens the project in `folder` and writes nothing to it.
    pub fn open_read_only(folder: &Path) -> Result<Self, ProjectError> {
        Self::open_with(folder, Governance::open_read_only)
    }

    fn open_with(
        folder: &Path,
        governance: impl FnOnce(&Path, Arc<dyn Clock>) -> Result<Governance, OpenError>,
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
        let governance = governance(folder, Arc::new(SystemClock))?;
        Ok(Self {
            folder: folder.to_owned(),
            settings,
            governance,
        })
    }

    /// Makes a project in `folder`, with the given text as its settings file.
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
