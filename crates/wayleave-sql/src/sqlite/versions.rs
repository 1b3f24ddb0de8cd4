//! Detects changes of a file without reading its tables.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError, Weak};

use wayleave_store::{Limits, StoreError};

use super::connect::SqliteCatalogueSession;
use super::dsn::SqliteFile;
use super::pool::FileIdentity;

/// A session that only reads `data_version`, which counts the commits of other connections that
/// this very session has noticed. It holds no lock between two reads.
#[derive(Default)]
pub(super) struct VersionSession(Mutex<OpenVersion>);

#[derive(Default)]
struct OpenVersion {
    session: Option<(SqliteCatalogueSession, Option<FileIdentity>)>,
    /// Number of sessions opened, because each counts for itself.
    opened: u64,
}

impl VersionSession {
    /// A number that changes with every commit, and when the path names another file.
    pub(super) fn token(&self, file: &SqliteFile, limits: Limits) -> Result<u64, StoreError> {
        let mut version = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let identity = FileIdentity::read(file);
        let current = version.session.take().filter(|(_, of)| *of == identity);
        let (mut session, identity) = if let Some(current) = current {
            current
        } else {
            version.opened += 1;
            (
                SqliteCatalogueSession::open(file, limits, Weak::new())?,
                identity,
            )
        };
        let counted = session.read("looking for changes", "PRAGMA data_version", |row| {
            row.get::<_, i64>(0)
        })?;
        version.session = Some((session, identity));
        let mut hasher = DefaultHasher::new();
        (version.opened, counted).hash(&mut hasher);
        Ok(hasher.finish())
    }

    pub(super) fn close(&self) {
        let mut version = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        version.session = None;
    }
}
