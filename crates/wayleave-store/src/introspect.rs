//! Reads the catalogue of a source: what an adapter offers before any mapping exists.

use std::time::Duration;

use async_trait::async_trait;
use wayleave_model::catalogue::Catalogue;
use wayleave_model::propose::{ColumnSample, SampledColumn};

use crate::StoreError;

/// A source whose catalogue can be read.
///
/// Implementations open a read-only session, obey the [`Limits`] they were created with, read no
/// rows of any table except in [`sample`](Self::sample), and return the same bytes for the same
/// catalogue.
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

    /// Reads the distinct values of columns of a catalogue, one result for each, in their order.
    ///
    /// Fails only if no session can be opened. A column that cannot be read does not affect the
    /// others, and the store's message about it is dropped, because it may quote values.
    async fn sample(
        &self,
        catalogue: &Catalogue,
        columns: &[SampledColumn],
    ) -> Result<Vec<Result<ColumnSample, SampleError>>, StoreError>;
}

/// Why the values of a column were not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// The store refused, or a value is not text.
    #[error("could not be read")]
    Unreadable,
    /// The statement exceeded its time limit.
    #[error("exceeded the time limit of a statement")]
    Timeout,
    /// Earlier columns used up the time of the whole call.
    #[error("no time was left")]
    OutOfTime,
    /// More columns were requested than are sampled at once.
    #[error("more columns than are sampled at once")]
    OverLimit,
}

/// Options of an introspection.
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
pub fn ignore_progress(_: Step) {}

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
