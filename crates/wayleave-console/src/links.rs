//! One-time links that sign a person in.
//!
//! Any process that can write the project's private folder can issue a link; the console that
//! serves the project redeems it. Only the hash of a link's code is on disk.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use wayleave_ledger::{FOLDER, Millis};
use wayleave_model::digest::Digest;

/// Lifetime of a link, in milliseconds.
pub(crate) const LINK_LIFETIME: Millis = 5 * 60 * 1000;
/// Folder of the console inside the project's private folder.
const CONSOLE_FOLDER: &str = "console";
/// Maximum number of files examined when expired links are removed.
const MAX_LINKS: usize = 64;

/// Why no link was issued.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The folder cannot be written.
    #[error("the console's folder cannot be written")]
    Disk(#[from] io::Error),
    /// The system gives no random numbers.
    #[error("the system's random source failed")]
    NoRandomness,
}

/// The links of a project.
#[derive(Debug, Clone)]
pub struct LoginLinks {
    folder: PathBuf,
}

/// The person a link signs in, and when it expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoginLink {
    pub(crate) who: String,
    pub(crate) expires: Millis,
}

impl LoginLinks {
    /// The links of the project in `folder`.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.join(FOLDER).join(CONSOLE_FOLDER),
        }
    }

    /// Issues a link and returns its code. It signs `who` in once, within five minutes.
    pub fn issue(&self, who: &str, now: Millis) -> Result<String, LinkError> {
        self.create_folder()?;
        self.remove_old(now);
        let code = random_code().ok_or(LinkError::NoRandomness)?;
        let link = LoginLink {
            who: who.to_owned(),
            expires: now.saturating_add(LINK_LIFETIME),
        };
        let bytes = serde_json::to_vec(&link).map_err(io::Error::from)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.path(&code))?;
        file.write_all(&bytes)?;
        Ok(code)
    }

    /// The link of a code, if it is still valid. Does not redeem it.
    pub(crate) fn find(&self, code: &str, now: Millis) -> Option<LoginLink> {
        let bytes = fs::read(self.path(code)).ok()?;
        let link: LoginLink = serde_json::from_slice(&bytes).ok()?;
        (now < link.expires).then_some(link)
    }

    /// Redeems a link. Of two concurrent attempts, one succeeds.
    pub(crate) fn redeem(&self, code: &str, now: Millis) -> Option<LoginLink> {
        let link = self.find(code, now)?;
        fs::remove_file(self.path(code)).ok()?;
        Some(link)
    }

    /// Stores the address the console of this project listens on, for `console link`.
    pub fn announce(&self, address: &str) -> Result<(), LinkError> {
        self.create_folder()?;
        fs::write(self.folder.join("address"), address)?;
        Ok(())
    }

    fn create_folder(&self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn path(&self, code: &str) -> PathBuf {
        let hash = Digest::from_bytes(code.as_bytes()).hex();
        self.folder.join(format!("link-{hash}.json"))
    }

    fn remove_old(&self, now: Millis) {
        let Ok(listing) = fs::read_dir(&self.folder) else {
            return;
        };
        for entry in listing.flatten().take(MAX_LINKS) {
            let path = entry.path();
            let name = entry.file_name();
            let is_link = name.to_str().is_some_and(|it| it.starts_with("link-"));
            let link = fs::read(&path).ok();
            let link = link.and_then(|it| serde_json::from_slice::<LoginLink>(&it).ok());
            if is_link && link.is_none_or(|it| now >= it.expires) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// The address the console of a project listens on, if one was started.
pub fn console_address(folder: &Path) -> Option<String> {
    let links = LoginLinks::new(folder);
    fs::read_to_string(links.folder.join("address")).ok()
}

/// 256 random bits, encoded for a URL or a cookie.
pub(crate) fn random_code() -> Option<String> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bits))
}
