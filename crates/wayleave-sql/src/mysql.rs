//! MySQL and MariaDB.

mod capabilities;
mod catalogue;
mod connect;
pub(crate) mod dialect;
pub(crate) mod digits;
pub(crate) mod dsn;
mod error;
mod introspect;
mod pool;
mod read;
pub(crate) mod repertoire;
mod rules;
mod sample;
mod settings;
pub(crate) mod types;
mod values;
mod write;
mod zones;

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
pub(crate) use read::{store, writer};

/// The adapter.
pub(crate) static ADAPTER: Adapter = Adapter {
    kind: SourceKind::Mysql,
    redacted_dsn: "mysql://***",
    dsn_parameters: &SERVER_PARAMETERS,
    parse: |text| Ok(Box::new(MysqlSource(dsn::parse(text)?))),
    key_table: KeyTableDialect {
        quote: '`',
        text: "text CHARACTER SET utf8mb4",
        time: "datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
        options: " ENGINE = InnoDB",
    },
    change_triggers: |_| None,
};

/// The source that a DSN names.
struct MysqlSource(Server);

impl UnopenedSource for MysqlSource {
    fn introspect(self: Box<Self>, limits: Limits) -> Box<dyn Introspect> {
        Box::new(MysqlIntrospector {
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

/// A MySQL or MariaDB server and database. Opens a session for each request.
struct MysqlIntrospector {
    server: Server,
    limits: Limits,
}

#[async_trait]
impl Introspect for MysqlIntrospector {
    async fn ping(&self) -> Result<(), StoreError> {
        connect::MysqlCatalogueSession::open(&self.server, self.limits)
            .await?
            .close()
            .await;
        Ok(())
    }

    async fn introspect(
        &self,
        options: &IntrospectOptions,
        progress: Progress<'_>,
    ) -> Result<Catalogue, StoreError> {
        let mut session = connect::MysqlCatalogueSession::open(&self.server, self.limits).await?;
        let catalogue = introspect::catalogue(&mut session, options, progress).await?;
        session.close().await;
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
