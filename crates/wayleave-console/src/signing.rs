//! Signing the decisions of the signed-in person.

use std::{path::PathBuf, sync::Arc};

use maud::{Markup, html};
use wayleave_ledger::{
    GovernanceError, KeyFileError, OwnerKeyFile, SecretString, SshAgent, UnlockedKey,
};
use wayleave_project::{Explanation, Project};

use crate::respond::SignedInRequest;

/// How decisions in the console are signed, set by the operator who started it.
#[derive(Debug, Clone, Default)]
pub struct ConsoleSigning {
    /// An owner's key file. Every decision then asks for its passphrase.
    pub key_file: Option<PathBuf>,
    /// The socket of `ssh-agent`, used where no key file is named.
    pub agent: Option<PathBuf>,
    /// Whether a person at a terminal started the console.
    pub is_attended: bool,
}

/// The kind of a decision. Projects without owners treat them differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecisionKind {
    /// What may be served: ratifying and retiring.
    Mapping,
    /// Who may read it: grants and tokens.
    Access,
}

impl SignedInRequest<'_> {
    /// The project, prepared to sign and record a decision of this person.
    pub(crate) async fn deciding(&self, kind: DecisionKind) -> Result<Project, Explanation> {
        let (project, signing) = (&self.console.project, &self.console.signing);
        if self.state.first_owner().is_none() {
            if kind == DecisionKind::Mapping && !signing.is_attended {
                return Err(Explanation::new(
                    "this console was not started at a terminal, and the project has no owner who could sign",
                )
                .hint("register a key with `wayleave owner add`"));
            }
            return Ok(project.clone());
        }
        if let Some(path) = signing.key_file.clone() {
            let passphrase = SecretString::from(self.form.get("passphrase").to_owned());
            let backend = &self.console.backend;
            let unlocked = backend.unlock(path, passphrase).await;
            let unlocked = unlocked
                .map_err(|error| Explanation::from_error(&error).maybe_hint(error.hint()))?;
            return Ok(project.with_signer(Arc::new(unlocked)));
        }
        match &signing.agent {
            Some(socket) => Ok(project.with_signer(Arc::new(SshAgent::new(socket.clone())))),
            None => Err(GovernanceError::Unsigned.into()),
        }
    }
}

/// Opens a key file. Takes about half a second, so it must not block a thread of the runtime.
pub fn unlock(
    path: &std::path::Path,
    passphrase: &SecretString,
) -> Result<UnlockedKey, KeyFileError> {
    OwnerKeyFile::open(path)?.unlock(passphrase)
}

/// The passphrase field, if a decision needs it. `id` must be unique on the page.
pub(crate) fn passphrase_field(visit: &SignedInRequest<'_>, id: &str) -> Markup {
    let is_asked = visit.state.first_owner().is_some() && visit.console.signing.key_file.is_some();
    html! { @if is_asked {
        div.field {
            label for=(id) { "Passphrase of your key" }
            input id=(id) name="passphrase" type="password" autocomplete="off" required;
        }
    } }
}
