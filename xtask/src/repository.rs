//! The working tree for the checks: the files that are tracked, or untracked and not ignored.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// Larger files are data, not hand-written text.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// The repository this program was started in.
pub(crate) struct Repository {
    root: PathBuf,
    files: Vec<String>,
}

impl Repository {
    /// Finds the root by the variable that `cargo run` sets, and lists its files.
    pub(crate) fn open() -> anyhow::Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("`CARGO_MANIFEST_DIR` is not set: run this as `cargo xtask`")?;
        let root = Path::new(&manifest)
            .parent()
            .context("the manifest folder has no parent")?
            .to_path_buf();
        let listing = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(&root)
            .output()
            .context("cannot run `git ls-files`")?;
        if !listing.status.success() {
            bail!(
                "`git ls-files` failed: {}",
                String::from_utf8_lossy(&listing.stderr).trim()
            );
        }
        let mut files: Vec<String> = String::from_utf8(listing.stdout)
            .context("a file name is not UTF-8")?
            .split('\0')
            .filter(|name| !name.is_empty() && root.join(name).is_file())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(Self { root, files })
    }

    /// A folder with these empty files, for tests of the finders.
    #[cfg(test)]
    pub(crate) fn with_files(root: &Path, files: &[&str]) -> Self {
        for file in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let files = files.iter().map(ToString::to_string).collect();
        Self {
            root: root.to_path_buf(),
            files,
        }
    }

    /// The folder that holds the workspace manifest.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Every file, relative to the root, with `/` between the parts, sorted.
    pub(crate) fn files(&self) -> &[String] {
        &self.files
    }

    /// Whether a file or folder of this relative path exists.
    pub(crate) fn exists(&self, relative: &str) -> bool {
        self.root.join(relative).exists()
    }

    /// The text of a file; `None` if it is binary or too large to be prose or code.
    pub(crate) fn text(&self, relative: &str) -> anyhow::Result<Option<String>> {
        let path = self.root.join(relative);
        let size = path
            .metadata()
            .with_context(|| format!("cannot read `{relative}`"))?
            .len();
        if size > MAX_TEXT_BYTES {
            return Ok(None);
        }
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read `{relative}`"))?;
        Ok(String::from_utf8(bytes).ok())
    }

    /// The text of a file that may not exist.
    pub(crate) fn text_of(&self, relative: &str) -> anyhow::Result<Option<String>> {
        if self.exists(relative) {
            self.text(relative)
        } else {
            Ok(None)
        }
    }
}
