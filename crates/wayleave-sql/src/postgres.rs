//! PostgreSQL, version 12 or newer.

mod cleartext;
mod connect;
pub(crate) mod dialect;
mod error;
mod guarded_stream;
mod introspect;
mod login;
mod pool;
mod read;
mod settings;
mod types;
mod values;

use async_trait::async_trait;
use wayleave_model::catalogue::Catalogue;
use wayleave_store::{Introspect, IntrospectOptions, Limits, Progress, StoreError};

use crate::dsn::Server;
#[cfg(feature = "raw")]
pub(crate) use read::statements;
pub(crate) use read::store;

/// A PostgreSQL server and database, connected to anew for each question.
pub(crate) struct Postgres {
    server: Server,
    limits: Limits,
}

impl Postgres {
    pub(crate) fn new(server: Server, limits: Limits) -> Self {
        Self { server, limits }
    }
}

#[async_trait]
impl Introspect for Postgres {
    async fn ping(&self) -> Result<(), StoreError> {
        connect::Session::open(&self.server, self.limits)
            .await?
            .close()
            .await
    }

    async fn introspect(
        &self,
        options: &IntrospectOptions,
        progress: Progress<'_>,
    ) -> Result<Catalogue, StoreError> {
        let mut session = connect::Session::open(&self.server, self.limits).await?;
        let catalogue = introspect::catalogue(&mut session, options, progress).await?;
        session.close().await?;
        Ok(catalogue)
    }
}
