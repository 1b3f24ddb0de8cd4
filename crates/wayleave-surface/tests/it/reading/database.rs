//! A database of any kind as the only source of a service.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use wayleave_model::mapping::SourceKind;
use wayleave_sql::{Dsn, StoreOptions};
use wayleave_store::{Store, StoreError};
use wayleave_surface::{ReadLimits, ReadService, Stores};
use wayleave_test::{mariadb, postgres};

use crate::reading::fixture::{NOW, active_datasets, keys};

/// A database, and the store that reads it.
pub struct Database {
    kind: SourceKind,
    pub name: String,
    pub store: Arc<dyn Store>,
    _folder: Option<TempDir>,
}

impl Database {
    pub async fn new(kind: SourceKind, sql: &str) -> Arc<Self> {
        let (dsn, name, folder) = match kind {
            SourceKind::Sqlite => {
                let (folder, path) = wayleave_test::sqlite_file(sql).unwrap();
                let path = path.to_str().unwrap().to_owned();
                (path.clone(), path, Some(folder))
            }
            SourceKind::Postgres => {
                let made = postgres().await.fresh_database("odd", sql).await.unwrap();
                (made.dsn, made.name, None)
            }
            _ => {
                let made = mariadb().await.fresh_database("odd", sql).await.unwrap();
                (made.dsn, made.name, None)
            }
        };
        let options = StoreOptions::default();
        Arc::new(Self {
            _folder: folder,
            ..Self::through(kind, name, &dsn, options)
        })
    }

    /// An existing database, read through a DSN.
    pub fn through(kind: SourceKind, name: String, dsn: &str, options: StoreOptions) -> Self {
        let options = StoreOptions {
            // No read may be refused, however slow the machine is.
            wait: Duration::from_mins(5),
            ..options
        };
        Self {
            kind,
            name,
            store: wayleave_sql::store(Dsn::parse(kind, dsn).unwrap(), options),
            _folder: None,
        }
    }

    /// Changes the database behind the server's back.
    pub async fn execute(&self, sql: &str) {
        match self.kind {
            SourceKind::Sqlite => wayleave_test::sqlite_execute(&self.name, sql).unwrap(),
            SourceKind::Postgres => postgres().await.execute(&self.name, sql).await.unwrap(),
            _ => mariadb().await.execute(&self.name, sql).await.unwrap(),
        }
    }

    /// Closes the sessions of the store.
    pub async fn store_close(&self) {
        self.store.close().await;
    }

    /// Creates a service of this mapping over the database.
    pub fn service(self: &Arc<Self>, mapping: &str) -> ReadService {
        let stores: Arc<dyn Stores> = self.clone();
        let limits = ReadLimits {
            deadline: Duration::from_mins(5),
            ..ReadLimits::default()
        };
        ReadService::with_clock(active_datasets(&[mapping]), stores, keys(), limits, || NOW)
    }
}

impl Stores for Database {
    fn store(&self, _: &str) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::clone(&self.store))
    }
}
