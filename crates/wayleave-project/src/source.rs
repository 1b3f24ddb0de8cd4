//! Resolves the DSN of a declared source, as late as possible.
//!
//! A source names an environment variable. The DSN is read from it when it is first needed, or from
//! the file named by the variable with the suffix `_FILE`, as container platforms pass secrets. It
//! is never printed and never kept longer than the store that uses it.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use wayleave_ledger::Source;
use wayleave_store::StoreError;

use crate::adapters::Dsn;
pub use crate::adapters::create_sqlite;

/// The environment variables.
#[derive(Clone, Default)]
pub struct EnvironmentVariables {
    given: Arc<BTreeMap<String, String>>,
}

impl EnvironmentVariables {
    /// The process's own environment.
    pub fn process() -> Self {
        Self::default()
    }

    /// The process's own environment, overridden by these.
    pub fn with(given: BTreeMap<String, String>) -> Self {
        Self {
            given: Arc::new(given),
        }
    }

    /// Whether a variable is set, even if it is empty or not text.
    pub fn is_set(&self, name: &str) -> bool {
        self.given.contains_key(name) || std::env::var_os(name).is_some()
    }

    /// Every variable and its value, converted lossily; one that is overridden comes twice.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let given = self.given.iter();
        let given = given.map(|(name, value)| (name.clone(), value.clone()));
        given.chain(std::env::vars_os().map(move |(name, value)| (lossy(name), lossy(value))))
    }

    /// The value of a variable that is text.
    pub fn get(&self, name: &str) -> Option<String> {
        self.given
            .get(name)
            .cloned()
            .or_else(|| std::env::var(name).ok())
    }
}

impl std::fmt::Debug for EnvironmentVariables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The values are DSNs.
        f.debug_struct("EnvironmentVariables")
            .finish_non_exhaustive()
    }
}

/// Why the DSN of a source is not available.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Neither variable is set.
    #[error("source `{source_name}`: environment variable `{variable}` is not set")]
    Unset {
        /// The source.
        source_name: String,
        /// The variable it names.
        variable: String,
    },
    /// The file that holds the DSN cannot be read.
    #[error("source `{source_name}`: the file named by `{variable}` cannot be read")]
    File {
        /// The source.
        source_name: String,
        /// The variable that names the file.
        variable: String,
        /// The cause.
        #[source]
        cause: std::io::Error,
    },
    /// The DSN is invalid.
    #[error("source `{source_name}`: the DSN in `{variable}` is not valid")]
    Dsn {
        /// The source.
        source_name: String,
        /// The variable it was read from.
        variable: String,
        /// What is wrong with it, without quoting it.
        #[source]
        cause: StoreError,
    },
}

impl SourceError {
    /// What the operator can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unset { variable, .. } => format!(
                "export `{variable}` with the source's DSN, or `{variable}_FILE` with the path of a \
                 file that holds it"
            ),
            Self::File { .. } => "check the path and that this user may read it".to_owned(),
            Self::Dsn { cause, .. } => cause.hint().to_owned(),
        }
    }
}

/// Whether a variable holds the DSN of a source, or names a file that may.
pub fn is_set(source: &Source, environment: &EnvironmentVariables) -> bool {
    let file = format!("{}_FILE", source.env);
    environment.get(&source.env).is_some() || environment.get(&file).is_some()
}

/// The DSN of a declared source.
pub fn dsn(
    name: &str,
    source: &Source,
    environment: &EnvironmentVariables,
) -> Result<Dsn, SourceError> {
    let (variable, text) = if let Some(text) = environment.get(&source.env) {
        (source.env.clone(), text)
    } else {
        let variable = format!("{}_FILE", source.env);
        let path = environment
            .get(&variable)
            .ok_or_else(|| SourceError::Unset {
                source_name: name.to_owned(),
                variable: source.env.clone(),
            })?;
        let text =
            std::fs::read_to_string(PathBuf::from(path)).map_err(|cause| SourceError::File {
                source_name: name.to_owned(),
                variable: variable.clone(),
                cause,
            })?;
        (variable, text.trim_end_matches(['\r', '\n']).to_owned())
    };
    Dsn::parse(source.kind, &text).map_err(|cause| SourceError::Dsn {
        source_name: name.to_owned(),
        variable,
        cause,
    })
}
