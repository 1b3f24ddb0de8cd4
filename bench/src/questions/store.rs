//! The stores under test: their tables, and a driver session with both statements.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use rusqlite::{Connection, OpenFlags};
use tokio::runtime::Runtime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_sql::raw::{self, PostgresBind, SqliteBind, Statement};
use wayleave_test::tpch;

use super::Way;
use crate::read::orders::kept_files;
use crate::read::project::Shop;

/// A store by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreName {
    /// A SQLite file.
    Sqlite,
    /// A private PostgreSQL server.
    Postgres,
}

impl StoreName {
    /// Its name in the report.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }

    /// A project over the tables at this scale.
    pub(crate) async fn shop(self, scale: f64) -> Result<Shop> {
        match self {
            Self::Sqlite => {
                let path = tokio::task::spawn_blocking(move || sqlite(scale)).await??;
                let dsn = path.to_string_lossy().into_owned();
                Shop::make(SourceKind::Sqlite, dsn, tpch::STREAMS).await
            }
            Self::Postgres => {
                let server = wayleave_test::postgres().await;
                let database = server.fresh_database("tpch", &tpch::sql(scale)).await?;
                // Separate, because it cannot run in a transaction.
                server.execute(&database.name, "VACUUM ANALYZE").await?;
                // Without TLS, as the driver is.
                let dsn = format!("{}?sslmode=disable", database.dsn);
                Shop::make(SourceKind::Postgres, dsn, tpch::STREAMS).await
            }
        }
    }
}

/// The SQLite file at this scale; created once and kept in the target folder.
fn sqlite(scale: f64) -> Result<PathBuf> {
    let path = kept_files()?.join(format!("tpch-v1-{scale}.db"));
    if path.exists() {
        return Ok(path);
    }
    let unfinished = path.with_extension(format!("{}.unfinished", std::process::id()));
    let sql = format!(
        "PRAGMA synchronous = OFF; BEGIN; {} COMMIT; ANALYZE;",
        tpch::sql(scale)
    );
    wayleave_test::sqlite_execute(&unfinished.to_string_lossy(), &sql)?;
    std::fs::rename(&unfinished, &path)?;
    Ok(path)
}

/// A session of the driver with the statements of one question.
pub(crate) enum Session {
    /// Without the specification's statement, which needs date and interval arithmetic that SQLite
    /// lacks.
    Sqlite {
        connection: Connection,
        statement: Statement<SqliteBind>,
    },
    Postgres {
        client: Client,
        text: String,
        ours: tokio_postgres::Statement,
        binds: Vec<PostgresBind>,
        specification: tokio_postgres::Statement,
    },
}

impl Session {
    /// Opens a session and prepares the statements.
    pub(crate) fn open(
        runtime: &Runtime,
        shop: &Shop,
        plan: &AuthorizedPlan,
        sql: &str,
    ) -> Result<Self> {
        if shop.kind != SourceKind::Postgres {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(&shop.dsn, flags)?;
            raw::sqlite_functions(&connection)?;
            let statements = raw::sqlite_statements(&shop.dsn, &[plan])?;
            let statement = statements.into_iter().next().context("no statement")?;
            return Ok(Self::Sqlite {
                connection,
                statement,
            });
        }
        runtime.block_on(async {
            let statements = raw::postgres_statements(&shop.dsn, &[plan]).await?;
            let Statement { text, binds } =
                statements.into_iter().next().context("no statement")?;
            let (client, connection) = tokio_postgres::connect(&shop.dsn, NoTls).await?;
            // Ends with the client. An error of the session also fails the next statement.
            tokio::spawn(connection);
            Ok(Self::Postgres {
                ours: client.prepare(&text).await?,
                specification: client.prepare(sql).await?,
                text,
                binds,
                client,
            })
        })
    }

    /// The text of the compiled statement.
    pub(crate) fn statement(&self) -> &str {
        match self {
            Self::Sqlite { statement, .. } => &statement.text,
            Self::Postgres { text, .. } => text,
        }
    }

    /// The statements it can run.
    pub(crate) fn ways(&self) -> &'static [Way] {
        match self {
            Self::Sqlite { .. } => &[Way::Statement],
            Self::Postgres { .. } => &[Way::Specification, Way::Statement],
        }
    }

    /// Runs a statement and reads its rows.
    pub(crate) fn ask(&mut self, runtime: &Runtime, way: Way) -> Result<()> {
        match self {
            Self::Sqlite {
                connection,
                statement,
            } => {
                let mut prepared = connection.prepare_cached(&statement.text)?;
                for (index, bind) in statement.binds.iter().enumerate() {
                    prepared.raw_bind_parameter(index + 1, bind)?;
                }
                let mut rows = prepared.raw_query();
                while rows.next()?.is_some() {}
            }
            Self::Postgres {
                client,
                ours,
                binds,
                specification,
                ..
            } => {
                let ours_binds: Vec<&(dyn ToSql + Sync)> =
                    binds.iter().map(|it| &**it as _).collect();
                let rows = if way == Way::Specification {
                    client.query(&*specification, &[])
                } else {
                    client.query(&*ours, &ours_binds)
                };
                runtime.block_on(rows)?;
            }
        }
        Ok(())
    }
}
