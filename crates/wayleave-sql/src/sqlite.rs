//! SQLite files.

mod capabilities;
mod catalogue;
mod connect;
mod create;
pub(crate) mod dialect;
pub(crate) mod dsn;
mod error;
mod functions;
mod indexes;
mod inline;
mod introspect;
mod page;
#[cfg(test)]
mod page_tests;
mod pool;
mod read;
mod read_attempt;
mod rules;
mod sample;
pub(crate) mod types;
mod values;
mod versions;
mod watchdog;
mod write;
mod writers;

pub use create::create_sqlite;
#[cfg(any(test, feature = "raw"))]
pub(crate) use functions::register;
pub(crate) use read::SqliteStore;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;
use wayleave_model::catalogue::Catalogue;
use wayleave_model::mapping::SourceKind;
use wayleave_model::propose::{ColumnSample, SampledColumn};
use wayleave_store::{
    Introspect, IntrospectOptions, Limits, Progress, SampleError, Store, StoreError, Writer,
};

use self::dsn::SqliteFile;
use crate::adapter::{Adapter, UnopenedSource};
use crate::read_task::StoreOptions;
use crate::write::keys::KeyTableDialect;

/// The adapter.
pub(crate) static ADAPTER: Adapter = Adapter {
    kind: SourceKind::Sqlite,
    redacted_dsn: "sqlite:***",
    dsn_parameters: &dsn::PARAMETERS,
    parse: |text| Ok(Box::new(SqliteSource(SqliteFile::parse(text)?))),
    key_table: KeyTableDialect {
        quote: '"',
        text: "text",
        time: "text NOT NULL DEFAULT CURRENT_TIMESTAMP",
        options: "",
    },
    change_triggers: |_| None,
};

/// The source that a DSN names.
struct SqliteSource(SqliteFile);

#[async_trait]
impl UnopenedSource for SqliteSource {
    fn introspect(self: Box<Self>, limits: Limits) -> Box<dyn Introspect> {
        Box::new(SqliteIntrospector {
            file: self.0,
            limits,
        })
    }

    fn store(self: Box<Self>, options: StoreOptions) -> Arc<dyn Store> {
        Arc::new(SqliteStore::new(self.0, options))
    }

    fn writer(self: Box<Self>, options: StoreOptions) -> Arc<dyn Writer> {
        Arc::new(write::SqliteWriter::new(self.0, options))
    }

    async fn writers_wait_for_reads(self: Box<Self>, limits: Limits) -> Result<bool, StoreError> {
        let file = self.0;
        let introspector = SqliteIntrospector { file, limits };
        introspector.writers_wait_for_reads().await
    }
}

/// A SQLite file. Opens a session for each request.
struct SqliteIntrospector {
    file: SqliteFile,
    limits: Limits,
}

impl SqliteIntrospector {
    /// Whether reading locks the file against writers.
    async fn writers_wait_for_reads(&self) -> Result<bool, StoreError> {
        if self.file.immutable {
            return Ok(false);
        }
        self.blocking(|session| {
            let mode = session.read("reading the header", "PRAGMA journal_mode", |row| {
                row.get::<_, String>(0)
            })?;
            Ok(mode.first().is_none_or(|it| it != "wal"))
        })
        .await
    }

    /// Runs blocking work on its own thread; the work is interrupted when nobody waits for it any
    /// more.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut connect::SqliteCatalogueSession) -> Result<T, StoreError>
        + Send
        + 'static,
    ) -> Result<T, StoreError> {
        let (file, limits) = (self.file.clone(), self.limits);
        let wanted = connect::InterruptOnDrop::default();
        let watched = wanted.watch();
        let task = tokio::task::spawn_blocking(move || {
            let mut session = connect::SqliteCatalogueSession::open(&file, limits, watched)?;
            work(&mut session)
        });
        let outcome = task
            .await
            .unwrap_or_else(|panicked| Err(error::ended(&panicked)));
        drop(wanted);
        outcome
    }
}

#[async_trait]
impl Introspect for SqliteIntrospector {
    async fn ping(&self) -> Result<(), StoreError> {
        self.blocking(connect::SqliteCatalogueSession::ping).await
    }

    async fn introspect(
        &self,
        options: &IntrospectOptions,
        progress: Progress<'_>,
    ) -> Result<Catalogue, StoreError> {
        if options.schema.is_some() {
            return Err(StoreError::Unsupported { what: "schemas" });
        }
        let (sender, mut receiver) = mpsc::channel(16);
        let reading = self.blocking(move |session| {
            // Keep reading even if nobody listens for progress.
            introspect::catalogue(session, &mut |step| drop(sender.blocking_send(step)))
        });
        let telling = async {
            while let Some(step) = receiver.recv().await {
                progress(step);
            }
        };
        tokio::join!(reading, telling).0
    }

    async fn sample(
        &self,
        _catalogue: &Catalogue,
        columns: &[SampledColumn],
    ) -> Result<Vec<Result<ColumnSample, SampleError>>, StoreError> {
        let (columns, limits) = (columns.to_owned(), self.limits);
        self.blocking(move |session| Ok(sample::columns(session, limits, &columns)))
            .await
    }
}
