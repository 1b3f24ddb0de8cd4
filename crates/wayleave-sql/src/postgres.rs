//! PostgreSQL, version 12 or newer.

mod capabilities;
mod catalogue;
mod cleartext;
mod connect;
pub(crate) mod dialect;
pub(crate) mod dsn;
mod error;
mod guarded_stream;
mod introspect;
mod listener;
mod login;
mod pool;
mod read;
mod rules;
mod sample;
mod settings;
mod triggers;
pub(crate) mod types;
mod values;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use wayleave_model::catalogue::Catalogue;
use wayleave_model::mapping::SourceKind;
use wayleave_model::propose::{ColumnSample, SampledColumn};
use wayleave_store::{
    Introspect, IntrospectOptions, Limits, Progress, SampleError, Store, StoreError, Writer,
};

use crate::adapter::{Adapter, UnopenedSource};
use crate::dsn::{SERVER_PARAMETERS, Server};
use crate::read_task::StoreOptions;
use crate::write::keys::KeyTableDialect;
#[cfg(feature = "raw")]
pub(crate) use read::statements;
pub(crate) use read::{store, writer};

/// The adapter.
pub(crate) static ADAPTER: Adapter = Adapter {
    kind: SourceKind::Postgres,
    redacted_dsn: "postgres://***",
    dsn_parameters: &SERVER_PARAMETERS,
    parse: |text| Ok(Box::new(PostgresSource(dsn::parse(text)?))),
    key_table: KeyTableDialect {
        quote: '"',
        text: "text",
        time: "timestamptz NOT NULL DEFAULT now()",
        options: "",
    },
    change_triggers: triggers::install,
};

/// The source that a DSN names.
struct PostgresSource(Server);

impl UnopenedSource for PostgresSource {
    fn introspect(self: Box<Self>, limits: Limits) -> Box<dyn Introspect> {
        Box::new(PostgresIntrospector {
            server: self.0,
            limits,
        })
    }

    fn store(self: Box<Self>, options: StoreOptions) -> Arc<dyn Store> {
        Arc::new(store(self.0, options))
    }

    fn writer(self: Box<Self>, options: StoreOptions) -> Arc<dyn Writer> {
        Arc::new(writer(self.0, options))
    }
}

/// A PostgreSQL server and database. Opens a session for each request.
struct PostgresIntrospector {
    server: Server,
    limits: Limits,
}

#[async_trait]
impl Introspect for PostgresIntrospector {
    async fn ping(&self) -> Result<(), StoreError> {
        connect::PgCatalogueSession::open(&self.server, self.limits)
            .await?
            .close()
            .await
    }

    async fn introspect(
        &self,
        options: &IntrospectOptions,
        progress: Progress<'_>,
    ) -> Result<Catalogue, StoreError> {
        let mut session = connect::PgCatalogueSession::open(&self.server, self.limits).await?;
        let catalogue = introspect::catalogue(&mut session, options, progress).await?;
        session.close().await?;
        Ok(catalogue)
    }

    async fn sample(
        &self,
        catalogue: &Catalogue,
        columns: &[SampledColumn],
    ) -> Result<Vec<Result<ColumnSample, SampleError>>, StoreError> {
        let schema = catalogue.schema.as_deref();
        sample::columns(&self.server, self.limits, schema, columns).await
    }
}
