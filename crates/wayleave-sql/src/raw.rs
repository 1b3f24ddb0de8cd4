//! The statements that plans compile to, for the benchmark, which runs them with the driver alone.
//! Behind a feature, because the product does not use it.

use rusqlite::Connection;
use wayleave_plan::AuthorizedPlan;
use wayleave_store::StoreError;

use crate::read_task::StoreOptions;
use crate::{postgres, sqlite};

/// A value to bind, in the type that SQLite's driver takes.
pub type SqliteBind = Box<dyn rusqlite::ToSql + Send + Sync>;

/// A value to bind, in the type that PostgreSQL's driver takes.
pub type PostgresBind = Box<dyn tokio_postgres::types::ToSql + Send + Sync>;

/// A statement's text and the values bound in it.
#[derive(Debug)]
pub struct Statement<B> {
    /// The text.
    pub text: String,
    /// The values, in the order of their placeholders.
    pub binds: Vec<B>,
}

/// Registers the functions that statements call on a session.
pub fn sqlite_functions(connection: &Connection) -> rusqlite::Result<()> {
    sqlite::register(connection, &std::sync::Arc::default())
}

/// Compiles plans over a SQLite file.
pub fn sqlite_statements(
    dsn: &str,
    plans: &[&AuthorizedPlan],
) -> Result<Vec<Statement<SqliteBind>>, StoreError> {
    let file = sqlite::dsn::SqliteFile::parse(dsn)?;
    let store = sqlite::SqliteStore::new(file, StoreOptions::default());
    let statements = store.statements(plans)?.into_iter();
    let boxed = |(text, binds): (String, Vec<_>)| Statement {
        text,
        binds: binds.into_iter().map(|it| Box::new(it) as _).collect(),
    };
    Ok(statements.map(boxed).collect())
}

/// Compiles plans over a PostgreSQL database.
pub async fn postgres_statements(
    dsn: &str,
    plans: &[&AuthorizedPlan],
) -> Result<Vec<Statement<PostgresBind>>, StoreError> {
    let server = postgres::dsn::parse(dsn)?;
    let statements = postgres::statements(server, plans).await?.into_iter();
    let boxed = |(text, binds): (String, Vec<_>)| Statement {
        text,
        binds: binds.into_iter().map(|it| Box::new(it) as _).collect(),
    };
    Ok(statements.map(boxed).collect())
}
