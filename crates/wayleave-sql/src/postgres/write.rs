//! Writes to PostgreSQL: serializable transactions, and values as text, which the server reads by
//! the rules of the column's own type.

use std::pin::pin;

use futures::TryStreamExt as _;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use wayleave_plan::plan::Column;
use wayleave_plan::value::Value;
use wayleave_plan::write::{StoreRule, TableRules};
use wayleave_store::StoreError;

use super::dialect::PostgresDialect;
use super::pool::PgSession;
use super::read::Database;
use super::settings;
use super::types::Kind;
use crate::compile::sql::Placeholder;
use crate::compile::{Bind, Shape, Sql};
use crate::pooled_store::TransactionEnd;
use crate::values::{Cell, scalar, unexpected_answer};
use crate::write::pooled_writer::WriteDriver;
use crate::write::statements::{WriteDialect, assigned_text};
use crate::write::{CommitFault, StatementOutcome, WriteFault};

impl WriteDialect for PostgresDialect {
    fn assigned(&self, _: &Column, _: &Kind, value: &Value) -> Sql {
        let text = match value {
            Value::List(items) => array(items),
            // A JSON text keeps its quotes.
            Value::Json(json) => json.to_string(),
            other => assigned_text(other),
        };
        Sql::bind(Bind::Literal(text))
    }

    fn returned(&self, name: Sql) -> Option<Sql> {
        Some(name.within("", "::text"))
    }
}

/// The text of an array, each item quoted.
fn array(items: &[Value]) -> String {
    let item = |value: &Value| match value.to_text() {
        None => "NULL".to_owned(),
        Some(text) => {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{escaped}\"")
        }
    };
    let items: Vec<String> = items.iter().map(item).collect();
    format!("{{{}}}", items.join(","))
}

impl WriteDriver for Database {
    type Dialect = PostgresDialect;

    fn write_dialect(session: &PgSession) -> PostgresDialect {
        PostgresDialect {
            skips_undecided: true,
            ..session.dialect.clone()
        }
    }

    async fn prepare_writer(&self, _: &mut PgSession) -> Result<(), StoreError> {
        Ok(())
    }

    async fn check_table(&self, _: &mut PgSession, _: &Shape<Kind>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn rules(
        &self,
        session: &mut PgSession,
        shape: &Shape<Kind>,
    ) -> Result<TableRules, StoreError> {
        self.table_rules(session, shape).await
    }

    async fn begin_write(&self, session: &mut PgSession) -> Result<(), StoreError> {
        let begun = session.begin_write().await;
        begun.map_err(|error| self.failed("beginning a transaction", &error))
    }

    async fn commit(&self, session: &mut PgSession) -> Result<(), CommitFault> {
        let rows = session.client.query_typed_raw(settings::COMMIT, none());
        let ended = async {
            let mut rows = pin!(rows.await?);
            while rows.try_next().await?.is_some() {}
            Ok(rows.rows_affected())
        };
        let affected = ended.await.map_err(|error: tokio_postgres::Error| {
            // An error from the server means that nothing was committed.
            match error.as_db_error() {
                Some(_) => CommitFault::RolledBack(self.fault("committing", &error)),
                None => CommitFault::Unknown(self.failed("committing", &error)),
            }
        })?;
        let complete = self.check_complete(affected);
        complete.map(drop).map_err(CommitFault::Unknown)
    }

    async fn rollback(&self, session: &mut PgSession) -> Result<(), StoreError> {
        let ended = session.end(TransactionEnd::Rollback).await;
        ended.map_err(|error| self.failed("rolling back", &error))
    }

    async fn run(
        &self,
        session: &mut PgSession,
        statement: Sql,
        returned: &[Column],
    ) -> Result<StatementOutcome, WriteFault> {
        let failed = |error| self.fault("writing", &error);
        let (text, binds) = statement.render(Placeholder::Dollar);
        let params = binds.iter().map(|bind| (bind, Type::UNKNOWN));
        let rows = session.client.query_typed_raw(&text, params).await;
        let mut rows = pin!(rows.map_err(failed)?);
        let mut ran = StatementOutcome::default();
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            ran.returned.clear();
            for (place, column) in returned.iter().enumerate() {
                let reported: Option<String> = row.try_get(place).map_err(failed)?;
                let cell = reported.map_or(Cell::Null, |it| Cell::Text(it.into()));
                let value = scalar(column.datatype, cell);
                ran.returned.push(value.ok_or_else(unexpected_answer)?);
            }
        }
        ran.affected = self.check_complete(rows.rows_affected())?;
        Ok(ran)
    }

    async fn texts(
        &self,
        session: &mut PgSession,
        statement: Sql,
        columns: usize,
    ) -> Result<Option<Vec<String>>, WriteFault> {
        let failed = |error| self.fault("writing", &error);
        let (text, binds) = statement.render(Placeholder::Dollar);
        let params = binds.iter().map(|bind| (bind, Type::UNKNOWN));
        let rows = session.client.query_typed_raw(&text, params).await;
        let mut rows = pin!(rows.map_err(failed)?);
        let mut found = None;
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let texts = (0..columns).map(|place| row.try_get(place));
            found = Some(texts.collect::<Result<Vec<String>, _>>().map_err(failed)?);
        }
        self.check_complete(rows.rows_affected())?;
        Ok(found)
    }

    fn read_fault(error: StoreError) -> WriteFault {
        let serialization_conflict = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ];
        match &error {
            StoreError::Failed {
                code: Some(code), ..
            } if serialization_conflict.iter().any(|it| it.code() == code) => WriteFault::Conflict,
            _ => error.into(),
        }
    }
}

/// No values to bind.
fn none() -> impl ExactSizeIterator<Item = (Bind, Type)> {
    std::iter::empty()
}

impl Database {
    fn fault(&self, doing: &'static str, error: &tokio_postgres::Error) -> WriteFault {
        let Some(code) = error.code() else {
            return self.failed(doing, error).into();
        };
        match code {
            &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => {
                WriteFault::Conflict
            }
            &SqlState::UNIQUE_VIOLATION | &SqlState::EXCLUSION_VIOLATION => {
                WriteFault::Rule(StoreRule::Unique)
            }
            &SqlState::FOREIGN_KEY_VIOLATION | &SqlState::RESTRICT_VIOLATION => {
                WriteFault::Rule(StoreRule::Reference)
            }
            &SqlState::NOT_NULL_VIOLATION => WriteFault::Rule(StoreRule::Required),
            &SqlState::CHECK_VIOLATION
            | &SqlState::RAISE_EXCEPTION
            | &SqlState::INTEGRITY_CONSTRAINT_VIOLATION
            | &SqlState::WITH_CHECK_OPTION_VIOLATION => WriteFault::Rule(StoreRule::Check),
            &SqlState::UNDEFINED_TABLE if doing == "writing" => WriteFault::NoIdempotencyTable,
            code if code.code().starts_with("22") => WriteFault::Rule(StoreRule::Value),
            _ => self.failed(doing, error).into(),
        }
    }
}
