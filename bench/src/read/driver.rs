//! The driver alone: runs the statements of Wayleave's compiler, prepared once, with as little code
//! around the driver as a careful programmer would write: a blocking thread for SQLite, a task that
//! drives the session for PostgreSQL. Converts rows to the same JSON as Wayleave's answers.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value as Json;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, NoTls, Row};
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::value::Value;
use wayleave_sql::raw::{self, PostgresBind, SqliteBind, Statement};

use super::orders::ColumnType;
use super::project::Shop;

/// A driver with the statements of one case.
pub(crate) enum Driver {
    /// A SQLite file.
    Sqlite(Sqlite),
    /// A PostgreSQL session.
    Postgres(Postgres),
}

impl Driver {
    /// Opens a session and prepares the statements of these plans.
    pub(crate) async fn open(
        shop: &Shop,
        plans: &[AuthorizedPlan],
        column_types: &'static [ColumnType],
    ) -> Result<Self> {
        let plans: Vec<&AuthorizedPlan> = plans.iter().collect();
        if shop.kind == wayleave_model::mapping::SourceKind::Postgres {
            let statements = raw::postgres_statements(&shop.dsn, &plans).await?;
            Postgres::open(&shop.dsn, statements, column_types)
                .await
                .map(Self::Postgres)
        } else {
            let statements = raw::sqlite_statements(&shop.dsn, &plans)?;
            Sqlite::open(&shop.dsn, statements, column_types).map(Self::Sqlite)
        }
    }

    /// The text of all statements.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Sqlite(sqlite) => &sqlite.text,
            Self::Postgres(postgres) => &postgres.text,
        }
    }

    /// Runs the statement of the question at this index.
    pub(crate) async fn ask(&mut self, place: usize) -> Result<Vec<Json>> {
        match self {
            Self::Sqlite(sqlite) => sqlite.ask(place).await,
            Self::Postgres(postgres) => postgres.ask(place).await,
        }
    }
}

/// The common text of all statements, which differ only in bound values.
fn text_of<B>(statements: &[Statement<B>]) -> Result<String> {
    let first = statements.first().context("no statements")?;
    ensure!(
        statements.iter().all(|it| it.text == first.text),
        "the questions of a case are not one statement"
    );
    Ok(first.text.clone())
}

/// A SQLite file.
pub(crate) struct Sqlite {
    connection: Option<Connection>,
    text: Arc<str>,
    binds: Arc<[Vec<SqliteBind>]>,
    column_types: &'static [ColumnType],
}

impl Sqlite {
    fn open(
        path: &str,
        statements: Vec<Statement<SqliteBind>>,
        column_types: &'static [ColumnType],
    ) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        raw::sqlite_functions(&connection)?;
        Ok(Self {
            connection: Some(connection),
            text: text_of(&statements)?.into(),
            binds: statements.into_iter().map(|it| it.binds).collect(),
            column_types,
        })
    }

    async fn ask(&mut self, place: usize) -> Result<Vec<Json>> {
        let connection = self.connection.take().context("the session is lost")?;
        let (text, binds) = (Arc::clone(&self.text), Arc::clone(&self.binds));
        let column_types = self.column_types;
        let work = tokio::task::spawn_blocking(move || {
            let binds = binds.get(place % binds.len().max(1)).context("no binds")?;
            let rows = read(&connection, &text, binds, column_types)?;
            anyhow::Ok((connection, rows))
        });
        let (connection, rows) = work.await??;
        self.connection = Some(connection);
        Ok(rows)
    }
}

fn read(
    connection: &Connection,
    text: &str,
    binds: &[SqliteBind],
    column_types: &[ColumnType],
) -> Result<Vec<Json>> {
    let mut statement = connection.prepare_cached(text)?;
    for (index, bind) in binds.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, bind)?;
    }
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let mut values = Vec::with_capacity(column_types.len());
        for (index, column_type) in column_types.iter().enumerate() {
            values.push(match (row.get_ref(index)?, column_type) {
                (ValueRef::Null, _) => Json::Null,
                (ValueRef::Integer(integer), ColumnType::Integer) => integer.into(),
                (ValueRef::Integer(integer), _) => integer.to_string().into(),
                (ValueRef::Real(real), _) => real.to_string().into(),
                (ValueRef::Text(text) | ValueRef::Blob(text), _) => {
                    std::str::from_utf8(text)?.into()
                }
            });
        }
        found.push(Json::Array(values));
    }
    Ok(found)
}

/// A PostgreSQL session.
pub(crate) struct Postgres {
    client: Client,
    text: String,
    statement: tokio_postgres::Statement,
    binds: Vec<Vec<PostgresBind>>,
    column_types: &'static [ColumnType],
}

impl Postgres {
    async fn open(
        dsn: &str,
        statements: Vec<Statement<PostgresBind>>,
        column_types: &'static [ColumnType],
    ) -> Result<Self> {
        let (client, connection) = tokio_postgres::connect(dsn, NoTls).await?;
        // Ends with the client. An error of the session also fails the next statement.
        tokio::spawn(connection);
        let text = text_of(&statements)?;
        let statement = client.prepare(&text).await?;
        Ok(Self {
            client,
            text,
            statement,
            binds: statements.into_iter().map(|it| it.binds).collect(),
            column_types,
        })
    }

    async fn ask(&self, place: usize) -> Result<Vec<Json>> {
        let binds = self.binds.get(place % self.binds.len().max(1));
        let binds = binds.context("no binds")?.iter();
        let binds: Vec<&(dyn ToSql + Sync)> = binds.map(|it| &**it as _).collect();
        let rows = self.client.query(&self.statement, &binds).await?;
        rows.iter()
            .map(|row| row_of(row, self.column_types))
            .collect()
    }
}

fn row_of(row: &Row, column_types: &[ColumnType]) -> Result<Json> {
    let mut values = Vec::with_capacity(column_types.len());
    for (index, column_type) in column_types.iter().enumerate() {
        values.push(match column_type {
            ColumnType::Text => row.try_get::<_, &str>(index)?.into(),
            ColumnType::Integer => row.try_get::<_, AnyInteger>(index)?.0.into(),
            ColumnType::Decimal => shortest(row.try_get(index)?).into(),
            ColumnType::Datetime => Value::Datetime(row.try_get::<_, Micros>(index)?.0).to_json(),
        });
    }
    Ok(Json::Array(values))
}

/// A decimal without trailing zeros.
fn shortest(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

/// An integer of either width.
struct AnyInteger(i64);

impl<'a> FromSql<'a> for AnyInteger {
    fn from_sql(
        of: &Type,
        raw: &'a [u8],
    ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        match *of {
            Type::INT4 => i32::from_sql(of, raw).map(|it| Self(it.into())),
            _ => i64::from_sql(of, raw).map(Self),
        }
    }

    fn accepts(of: &Type) -> bool {
        matches!(*of, Type::INT4 | Type::INT8)
    }
}

/// Microseconds since 1970; PostgreSQL counts from 2000.
struct Micros(i64);

impl<'a> FromSql<'a> for Micros {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        let since_2000 = i64::from_be_bytes(raw.try_into()?);
        Ok(Self(since_2000 + 946_684_800_000_000))
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TIMESTAMPTZ
    }
}
