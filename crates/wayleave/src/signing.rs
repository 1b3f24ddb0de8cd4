//! The key that signs a decision: one in `ssh-agent`, or a key file that the operator names.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use secrecy::SecretString;
use wayleave_ledger::{
    GovernanceError, KeyFileError, OwnerKeyFile, Signer, SshAgent, State, UnlockedKey,
};
use wayleave_project::Project;

use crate::{confirm, failure::Failure};

/// The variable that names the agent's socket.
pub(crate) const AGENT_VARIABLE: &str = "SSH_AUTH_SOCK";

/// What to sign with, in a project that has owners.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct SigningArgs {
    /// In a project with owners, the key file to sign with [default: an owner's key in
    /// `ssh-agent`].
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The file that holds the passphrase of `--key` [default: asked for on the terminal].
    #[arg(long, value_name = "FILE", requires = "key")]
    passphrase_file: Option<PathBuf>,
}

/// A project ready for a decision.
pub(crate) struct SigningProject {
    /// The project, which signs decisions if it has owners.
    pub(crate) project: Project,
    /// Whether the operator named a key file, which replaces the confirmation.
    pub(crate) is_key_named: bool,
}

impl SigningArgs {
    /// Makes the project sign its decisions, if it has owners.
    pub(crate) async fn prepare(&self, project: Project) -> Result<SigningProject, Failure> {
        let state = project.governance().ledger().state().await?;
        if state.first_owner().is_none() {
            return match self.key {
                None => Ok(SigningProject {
                    project,
                    is_key_named: false,
                }),
                Some(_) => Err(
                    Failure::usage("the project has no owners, so no key signs in it")
                        .hint("`wayleave owner add` registers the first"),
                ),
            };
        }
        let signer = self.signer(&state)?;
        Ok(SigningProject {
            project: project.with_signer(signer),
            is_key_named: self.key.is_some(),
        })
    }

    /// The same, for decisions that need no confirmation.
    pub(crate) async fn sign(&self, project: Project) -> Result<Project, Failure> {
        Ok(self.prepare(project).await?.project)
    }

    /// Confirms a decision: the person types the name at a terminal, or has named their key file.
    pub(crate) async fn decide(
        &self,
        project: Project,
        act: &str,
        name: &str,
        undone: &str,
    ) -> Result<Project, Failure> {
        let signing = self.prepare(project).await?;
        if !signing.is_key_named {
            confirm::require_typed(act, name, undone)?;
        }
        Ok(signing.project)
    }

    fn signer(&self, state: &State) -> Result<Arc<dyn Signer>, Failure> {
        match &self.key {
            Some(path) => {
                let file = OwnerKeyFile::open(path)?;
                let key = file.key().fingerprint();
                if state.owner_of(key).is_none() {
                    let message = format!("key {key} does not belong to an owner of the project");
                    return Err(Failure::usage(message)
                        .hint("`wayleave owner list` shows the owners and their keys"));
                }
                Ok(Arc::new(self.unlock(&file)?))
            }
            None => Ok(Arc::new(agent_with(|it| {
                state.owner_of(it.fingerprint()).is_some()
            })?)),
        }
    }

    /// A signer for this key: the file of `--key`, unchecked, else a matching key in `ssh-agent`.
    pub(crate) fn holder_of(
        &self,
        key: &wayleave_ledger::OwnerKey,
    ) -> Result<Arc<dyn Signer>, Failure> {
        let Some(path) = &self.key else {
            return Ok(Arc::new(agent_with(|it| it == key)?));
        };
        Ok(Arc::new(self.unlock(&OwnerKeyFile::open(path)?)?))
    }

    fn unlock(&self, file: &OwnerKeyFile) -> Result<UnlockedKey, Failure> {
        let passphrase = match &self.passphrase_file {
            Some(path) => passphrase_in(path)?,
            None => confirm::passphrase("passphrase of your key", "nothing was signed")?,
        };
        Ok(file.unlock(&passphrase)?)
    }
}

/// Reads a passphrase: the first line of a file.
fn passphrase_in(path: &Path) -> Result<SecretString, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::from_error(&error).hint("`--passphrase-file` names a file this user can read")
    })?;
    let line = text.lines().next().unwrap_or_default();
    Ok(SecretString::from(line.to_owned()))
}

/// The agent of this user, if it has a matching key.
fn agent_with(fits: impl Fn(&wayleave_ledger::OwnerKey) -> bool) -> Result<SshAgent, Failure> {
    let socket = std::env::var_os(AGENT_VARIABLE).filter(|it| !it.is_empty());
    let Some(socket) = socket else {
        return Err(GovernanceError::Unsigned.into());
    };
    let agent = SshAgent::new(PathBuf::from(socket));
    let keys = agent.keys().map_err(GovernanceError::from)?;
    if keys.iter().any(fits) {
        Ok(agent)
    } else {
        Err(GovernanceError::NoOwnerKey.into())
    }
}

impl From<KeyFileError> for Failure {
    fn from(error: KeyFileError) -> Self {
        Self::from_error(&error).maybe_hint(error.hint())
    }
}
