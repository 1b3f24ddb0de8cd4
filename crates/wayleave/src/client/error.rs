//! Errors of changing a client's settings.

use std::{io, path::PathBuf};

use super::document::DocumentError;

/// Why a client's settings were not changed. They are left as they were.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The variable that locates the settings is not set.
    #[error("`{variable}` is not set, so the settings cannot be located")]
    NoHome { variable: &'static str },
    /// The client has one set of settings for all folders.
    #[error("{client} has no settings of a folder")]
    NoFolder { client: &'static str },
    /// The client cannot use a running server: it starts its servers itself.
    #[error("{client} takes no address: it starts its servers itself")]
    NoAddress { client: &'static str },
    /// The client's settings cannot refer to a variable.
    #[error(
        "{client} does not pass on environment variables, and a token is never written into settings"
    )]
    NoToken { client: &'static str },
    /// The client passes variables on under their own names only.
    #[error("{client} passes on environment variables under their own names only")]
    NoRename { client: &'static str },
    /// The address is invalid.
    #[error("the address is not one of a server: {reason}")]
    Address { reason: &'static str },
    /// A path that settings cannot contain.
    #[error("{what} has a path that is not UTF-8")]
    Path { what: &'static str },
    /// The path of the settings is not a plain file.
    #[error("`{}` is {what}", path.display())]
    NotAFile { path: PathBuf, what: &'static str },
    /// A link in the folder leads out of it.
    #[error("`{}` leads out of `{}`, to `{}`", path.display(), folder.display(), target.display())]
    Outside {
        path: PathBuf,
        folder: PathBuf,
        target: PathBuf,
    },
    /// The file is read-only.
    #[error("`{}` is read-only", path.display())]
    ReadOnly { path: PathBuf },
    /// The file cannot be edited safely.
    #[error("`{}` is left as it is: {cause}", path.display())]
    Document { path: PathBuf, cause: DocumentError },
    /// Another program changed the file meanwhile.
    #[error("`{}` was changed by another program just now", path.display())]
    Changed { path: PathBuf },
    /// The disk failed.
    #[error("cannot {action} `{}`", path.display())]
    Disk {
        action: &'static str,
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
}

impl ClientError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::NoHome { .. } => "set the variable, or pass `--folder DIR`",
            Self::NoFolder { .. } => "leave `--folder` out",
            Self::NoAddress { .. } => "leave `--http` and `--url` out",
            Self::NoToken { .. } => {
                "put the token into a file that only you may read, let the variable with `_FILE` \
                 at its end name it, and run this again"
            }
            Self::NoRename { .. } => "put the token into `WAYLEAVE_TOKEN` and name that",
            Self::Address { .. } => "pass one like `https://example.org/mcp`",
            Self::Path { .. } => "give it a plain path",
            Self::NotAFile { .. } => "see what is there, and move it out of the way",
            Self::Outside { .. } => {
                "see what is there; a folder's settings are edited only in that folder"
            }
            Self::ReadOnly { .. } => {
                "make it writable, or paste what `wayleave client print` shows"
            }
            Self::Document {
                cause: DocumentError::Taken { .. },
                ..
            } => "`--name` gives this server another name; `--replace` takes the other's place",
            Self::Document { .. } => "fix it, or paste what `wayleave client print` shows",
            Self::Changed { .. } => "run this again",
            Self::Disk { .. } => "check that the folder is there and that you may write to it",
        }
    }
}
