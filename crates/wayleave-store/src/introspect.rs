//! Reads the catalogue of a source: what an adapter offers before any mapping exists.

use std::time::Duration;

use async_trait::async_trait;
use wayleave_model::catalogue::Catalogue;

use crate::StoreError;

/// A source whose catalogue can be read.
///
/// Implementations open a read-only session, obey the [`Limits`] they were created with, read no
/// rows of any table, and return the same bytes for the same catalogue.
#[async_trait]
pub trait Introspect: Send + Sync {
    /// Opens a session, and checks only that the store answers.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Reads the catalogue, and reports every answered statement to `progress`.
    ///
    /// Leaves out everything that the session's role cannot read.
    async fn introspect(
        &self,
        options: &IntrospectOptions,
        progress: Progress<'_>,
    ) -> Result<Catalogue, StoreError>;
}

/// What to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntrospectOptions {
    /// The schema (PostgreSQL) or database (MySQL); `None` for the session's own. SQLite has
    /// neither, and refuses one.
    pub schema: Option<String>,
}

/// Time limits of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For opening the session: name lookup, TCP, TLS and login together.
    pub connect: Duration,
    /// For one statement.
    pub statement: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            statement: Duration::from_secs(30),
        }
    }
}

/// Receives each [`Step`]; called from the thread that does the work.
pub type Progress<'a> = &'a (dyn Fn(Step) + Send + Sync);

/// Ignores progress.
pub fn silent(_: Step) {}

/// One step of introspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// One statement was answered.
    Read {
        /// The subject of the statement: `tables`, `columns`, …
        what: &'static str,
        /// Number of catalogue rows it returned.
        rows: usize,
    },
    /// A table or view was seen and left out.
    LeftOut {
        /// Its name.
        table: String,
        /// The reason, in words for the operator.
        reason: String,
    },
}
