//! Writes to MySQL and MariaDB: locking reads in repeatable-read transactions.

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Params, Row};
use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::Column;
use wayleave_plan::value::Value;
use wayleave_plan::write::{StoreRule, TableRules};
use wayleave_store::StoreError;

use super::connect::Flavour;
use super::dialect::MysqlDialect;
use super::pool::MysqlSession;
use super::read::Database;
use super::types::Kind;
use super::values::{bound, cell};
use crate::compile::sql::Placeholder;
use crate::compile::{Bind, Shape, Sql};
use crate::values::{scalar, unexpected_answer};
use crate::write::pooled_writer::WriteDriver;
use crate::write::statements::{WriteDialect, assigned_text};
use crate::write::{CommitFault, StatementOutcome, WriteFault};

/// Bounds the wait for a row lock, which the time limit of a statement does not bound in every
/// version.
const LOCK_LIMIT: &str = "SET SESSION innodb_lock_wait_timeout = 5";
const BEGIN: &str = "START TRANSACTION READ WRITE";
const COMMIT: &str = "COMMIT AND NO CHAIN NO RELEASE";
const ROLLBACK: &str = "ROLLBACK AND NO CHAIN NO RELEASE";
const ENGINE: &str = "SELECT ENGINE FROM information_schema.TABLES \
    WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND TABLE_TYPE = 'BASE TABLE'";

impl WriteDialect for MysqlDialect {
    fn assigned(&self, column: &Column, kind: &Kind, value: &Value) -> Sql {
        let text = |value: &Value| Bind::Text(assigned_text(value));
        Sql::bind(match value {
            Value::Json(json) => Bind::Text(json.to_string()),
            Value::List(_) => Bind::Text(value.to_json().to_string()),
            Value::Integer(integer) => match i64::try_from(*integer) {
                Ok(integer) => Bind::Integer(integer),
                Err(_) => text(value),
            },
            Value::Number(number) => Bind::Real(*number),
            Value::Boolean(flag) => Bind::Integer(i64::from(*flag)),
            Value::Date(days) if *kind == Kind::Date => Bind::Date(*days),
            Value::Datetime(micros) if *kind == Kind::Datetime => Bind::Datetime(*micros),
            value => {
                debug_assert!(
                    column.datatype != Datatype::Integer,
                    "an integer is bound as one"
                );
                text(value)
            }
        })
    }

    fn returned(&self, name: Sql) -> Option<Sql> {
        self.returns_rows.then_some(name)
    }

    fn delete_from(&self) -> &'static str {
        // In most versions an alias needs the form for several tables.
        "DELETE t FROM "
    }

    fn no_values(&self) -> &'static str {
        " () VALUES ()"
    }
}

impl WriteDriver for Database {
    type Dialect = MysqlDialect;

    fn write_dialect(session: &MysqlSession) -> MysqlDialect {
        MysqlDialect {
            skips_undecided: true,
            returns_rows: session.flavour == Flavour::Mariadb,
            ..MysqlDialect::default()
        }
    }

    async fn prepare_writer(&self, session: &mut MysqlSession) -> Result<(), StoreError> {
        let limited = session.connection.exec_drop(LOCK_LIMIT, ()).await;
        limited.map_err(|error| self.failed("opening a session", &error))
    }

    async fn check_table(
        &self,
        session: &mut MysqlSession,
        shape: &Shape<Kind>,
    ) -> Result<(), StoreError> {
        let names = (&shape.schema, &shape.table);
        let engine: Result<Option<Option<String>>, _> =
            session.connection.exec_first(ENGINE, names).await;
        let engine = engine.map_err(|error| self.failed("reading the table's engine", &error))?;
        match engine.flatten() {
            // A view has no engine of its own; the tables behind it are not checked.
            Some(engine) if !engine.eq_ignore_ascii_case("InnoDB") => {
                Err(StoreError::Unsupported {
                    what: "writes to a table whose engine is not InnoDB",
                })
            }
            _ => Ok(()),
        }
    }

    async fn rules(
        &self,
        session: &mut MysqlSession,
        shape: &Shape<Kind>,
    ) -> Result<TableRules, StoreError> {
        self.table_rules(session, shape).await
    }

    async fn begin_write(&self, session: &mut MysqlSession) -> Result<(), StoreError> {
        self.control(session, BEGIN, "beginning a transaction")
            .await
    }

    async fn commit(&self, session: &mut MysqlSession) -> Result<(), CommitFault> {
        #[expect(clippy::disallowed_methods, reason = "a constant")]
        let ended = session.connection.query_drop(COMMIT).await;
        ended.map_err(|error| match &error {
            Error::Server(_) => CommitFault::RolledBack(self.fault("committing", &error)),
            _ => CommitFault::Unknown(self.failed("committing", &error)),
        })
    }

    async fn rollback(&self, session: &mut MysqlSession) -> Result<(), StoreError> {
        self.control(session, ROLLBACK, "rolling back").await
    }

    async fn run(
        &self,
        session: &mut MysqlSession,
        statement: Sql,
        returned: &[Column],
    ) -> Result<StatementOutcome, WriteFault> {
        let failed = |error| self.fault("writing", &error);
        let (text, binds) = statement.render(Placeholder::Question);
        let mut answer = session
            .connection
            .exec_iter(text.as_str(), params(&binds))
            .await
            .map_err(failed)?;
        let mut ran = StatementOutcome {
            affected: answer.affected_rows(),
            returned: Vec::new(),
        };
        let last_id = answer.last_insert_id();
        let rows: Vec<Row> = answer.collect().await.map_err(failed)?;
        drop(answer);
        if let Some(row) = rows.into_iter().next_back() {
            for (value, column) in row.unwrap().into_iter().zip(returned) {
                let value = scalar(column.datatype, cell(value, None));
                ran.returned.push(value.ok_or_else(unexpected_answer)?);
            }
        } else if let ([column], Some(id)) = (returned, last_id)
            && column.datatype == Datatype::Integer
        {
            ran.returned.push(Value::Integer(id.into()));
        } else if !returned.is_empty() {
            return Err(StoreError::Unsupported {
                what: "generated keys other than one integer",
            }
            .into());
        }
        Ok(ran)
    }

    async fn texts(
        &self,
        session: &mut MysqlSession,
        statement: Sql,
        columns: usize,
    ) -> Result<Option<Vec<String>>, WriteFault> {
        let failed = |error| self.fault("writing", &error);
        let (text, binds) = statement.render(Placeholder::Question);
        let text = format!("{text} FOR UPDATE");
        let row: Option<Row> = session
            .connection
            .exec_first(text, params(&binds))
            .await
            .map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let texts = (0..columns).map(|place| row.get_opt::<String, _>(place)?.ok());
        let texts: Option<Vec<String>> = texts.collect();
        Ok(Some(texts.ok_or_else(unexpected_answer)?))
    }

    fn read_fault(error: StoreError) -> WriteFault {
        match &error {
            StoreError::Failed {
                code: Some(code), ..
            } if matches!(code.as_str(), "1213" | "1020") => WriteFault::Conflict,
            _ => error.into(),
        }
    }
}

fn params(binds: &[Bind]) -> Params {
    // The driver refuses an empty positional list.
    if binds.is_empty() {
        return Params::Empty;
    }
    Params::Positional(binds.iter().map(bound).collect())
}

impl Database {
    async fn control(
        &self,
        session: &mut MysqlSession,
        statement: &'static str,
        doing: &'static str,
    ) -> Result<(), StoreError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a constant; not all can be prepared"
        )]
        let done = session.connection.query_drop(statement).await;
        done.map_err(|error| self.failed(doing, &error))
    }

    fn fault(&self, doing: &'static str, error: &Error) -> WriteFault {
        let Error::Server(said) = error else {
            return self.failed(doing, error).into();
        };
        match said.code {
            // A deadlock; a row that changed since the snapshot; too long a wait for a row.
            1213 | 1020 | 1205 => WriteFault::Conflict,
            1062 | 1586 => WriteFault::Rule(StoreRule::Unique),
            1216 | 1217 | 1451 | 1452 => WriteFault::Rule(StoreRule::Reference),
            1048 | 1364 => WriteFault::Rule(StoreRule::Required),
            // A check (MariaDB, MySQL), and what a trigger signals.
            4025 | 3819 | 1644 | 1369 => WriteFault::Rule(StoreRule::Check),
            // Too long, out of range, of another type, cut off, no JSON.
            1406 | 1264 | 1366 | 1292 | 1265 | 3140 | 1690 => WriteFault::Rule(StoreRule::Value),
            1146 => WriteFault::NoIdempotencyTable,
            _ => self.failed(doing, error).into(),
        }
    }
}
