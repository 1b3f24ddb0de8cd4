//! Reading the catalogue of a source: what an adapter offers before any mapping exists.

use std::time::Duration;

use async_trait::async_trait;
use wayleave_model::catalogue::Catalogue;

use crate::StoreError;

/// A source whose catalogue can be read.
///
/// Implementations open a read-only session, hold the [`Limits`] they were made with, read no
/// rows of any table, and answer the same bytes for the same catalogue.
#[async_trait]
pub trait Introspect: Send + Sync {
    /// Opens a session and asks the store for nothing but an answer.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Reads the catalogue, telling `progress` of every statement answered.
    ///
    /// What the session's role cannot read is left out.
    async fn introspect(
        &self,
        options: &IntrospectOptions,
        progress: Progress<'_>,
    ) -> Result<Catalogue, StoreError>;
}

/// What to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntrospectOptions {
    /// The schema (PostgreSQL) or database (MySQL); the session's own where `None`. SQLite has
    /// no such notion and refuses one.
    pub schema: Option<String>,
}

/// How long a session may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For the session to be open: name lookup, TCP, TLS and login together.
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

/// Hears each [`Step`]; called from the thread that does the work.
pub type Progress<'a> = &'a (dyn Fn(Step) + Send + Sync);

/// For callers with nobody watching.
pub fn silent(_: Step) {}

/// One thing introspection did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// One statement was answered.
    Read {
        /// What it asked for: `tables`, `columns`, …
        what: &'static str,
        /// How many catalogue rows it gave.
        rows: usize,
    },
    /// A table or view was seen and left out.
    LeftOut {
        /// Its name.
        table: String,
        /// Why, in words for the operator.
        reason: String,
    },
}
