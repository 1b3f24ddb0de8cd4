//! MySQL and MariaDB.

mod connect;
pub(crate) mod dialect;
mod error;
mod introspect;
mod pool;
mod read;
mod settings;
mod types;
mod values;
mod zones;

use async_trait::async_trait;
use wayleave_model::catalogue::Catalogue;
use wayleave_store::{Introspect, IntrospectOptions, Limits, Progress, StoreError};

use crate::dsn::Server;
pub(crate) use read::store;

/// A MySQL or MariaDB server and database, connected to anew for each question.
pub(crate) struct Mysql {
    server: Server,
    limits: Limits,
}

impl Mysql {
    pub(crate) fn new(server: Server, limits: Limits) -> Self {
        Self { server, limits }
    }
}

#[async_trait]
impl Introspect for Mysql {
    async fn ping(&self) -> Result<(), StoreError> {
        connect::Session::open(&self.server, self.limits)
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
        let mut session = connect::Session::open(&self.server, self.limits).await?;
        let catalogue = introspect::catalogue(&mut session, options, progress).await?;
        session.close().await;
        Ok(catalogue)
    }
}
