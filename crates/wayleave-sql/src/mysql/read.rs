//! Reading MySQL and MariaDB.
//!
//! Every statement is prepared and runs by itself in a session whose transactions are read-only;
//! only a plan that groups by a zone's calendar takes two, in one transaction.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use mysql_async::prelude::Queryable;
use mysql_async::{Params, Row, TxOpts};
use wayleave_model::mapping::Datatype;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::plan::{Column, GroupKey, Predicate, Read, Target};
use wayleave_plan::value::Value;
use wayleave_store::{Answer, Capabilities, ReadContext, RowSender, Store, StoreError};

use super::error::store_error;
use super::pool::{Kept, cancel};
use super::values::{bound, cell};
use super::zones;
use crate::capabilities::MYSQL;
use crate::compile::mysql::{Kind, Mysql, Offsets};
use crate::compile::{Native, Output, Shape, Statement, compile, years};
use crate::dsn::Server;
use crate::pool::{Pool, Slot};
use crate::reading::{Readings, Shapes, Stop, StoreOptions, may_have_changed, no_table};
use crate::values;

const COLUMNS: &str = "SELECT TABLE_SCHEMA, COLUMN_NAME, DATA_TYPE, IS_NULLABLE, \
    COALESCE(CHARACTER_SET_NAME, ''), COALESCE(COLLATION_NAME, '') \
    FROM information_schema.COLUMNS \
    WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ?";

const ESTIMATE: &str = "SELECT TABLE_ROWS FROM information_schema.TABLES \
    WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";

/// A MySQL or MariaDB database that answers plans.
pub(crate) struct Reader {
    inner: Arc<Inner>,
    readings: Readings,
}

struct Inner {
    server: Server,
    options: StoreOptions,
    pool: Arc<Pool<Kept>>,
    shapes: Shapes<Kind>,
}

impl Reader {
    pub(crate) fn new(server: Server, options: StoreOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                server,
                options,
                pool: Pool::new(options.sessions, options.wait),
                shapes: Shapes::default(),
            }),
            readings: Readings::default(),
        }
    }
}

#[async_trait]
impl Store for Reader {
    fn capabilities(&self) -> &Capabilities {
        &MYSQL
    }

    async fn read(
        &self,
        plan: &AuthorizedPlan,
        context: &ReadContext,
    ) -> Result<Answer, StoreError> {
        let inner = Arc::clone(&self.inner);
        let (target, read) = (plan.target().clone(), plan.read().clone());
        let limits = self.inner.options.limits;
        let task = move |sender, stop| inner.perform(target, read, sender, stop);
        self.readings
            .start(plan.read(), context, limits, task)
            .await
    }

    async fn close(&self) {
        self.readings.close().await;
        for kept in self.inner.pool.close().await {
            // The goodbye; its failure takes nothing away.
            let _ = kept.connection.disconnect().await;
        }
    }
}

impl Inner {
    async fn perform(
        self: Arc<Self>,
        target: Target,
        read: Read,
        mut sender: RowSender,
        stop: Stop,
    ) {
        let outcome = self.answer(&target, &read, &mut sender, &stop).await;
        stop.finish(sender, outcome).await;
    }

    /// Answers, once more where a kept session had died or the table has changed.
    async fn answer(
        &self,
        target: &Target,
        read: &Read,
        sender: &mut RowSender,
        stop: &Stop,
    ) -> Result<(), StoreError> {
        let unwanted = sender.unwanted();
        let slot = tokio::select! {
            slot = self.pool.slot() => slot?,
            reason = stop.wait(&unwanted) => return Err(reason),
        };
        let (mut session, mut kept) = tokio::select! {
            session = self.session(&slot) => session?,
            reason = stop.wait(&unwanted) => return Err(reason),
        };
        loop {
            let known = self.shapes.get(target);
            let was_known = known.is_some();
            let id = session.connection.id();
            let outcome = tokio::select! {
                outcome = self.attempt(&mut session, known, target, read, sender) => outcome,
                reason = stop.wait(&unwanted) => {
                    cancel(&self.server, self.options.limits, id).await;
                    return Err(reason);
                }
            };
            let Err(error) = outcome else {
                slot.keep(session);
                return Ok(());
            };
            self.shapes.forget(target);
            let lost = kept && matches!(error, StoreError::Unreachable { .. });
            let changed = was_known && may_have_changed(&error);
            if matches!(error, StoreError::Timeout { .. }) {
                return Err(stop.now().unwrap_or(error));
            }
            if !(lost || changed) || !sender.restart() {
                return Err(error);
            }
            // A session that lost its server was not alone.
            drop(self.pool.take_idle());
            session = Kept::open(&self.server, self.options.limits).await?;
            kept = false;
        }
    }

    /// A session kept from before, or a new one; and which.
    async fn session(&self, slot: &Slot<Kept>) -> Result<(Kept, bool), StoreError> {
        match slot.idle(|_| true) {
            Some(kept) => Ok((kept, true)),
            None => Ok((Kept::open(&self.server, self.options.limits).await?, false)),
        }
    }

    async fn attempt(
        &self,
        session: &mut Kept,
        known: Option<Arc<Shape<Kind>>>,
        target: &Target,
        read: &Read,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let shape = match known {
            Some(shape) => shape,
            None => self.shapes.put(target, self.shape(session, target).await?),
        };
        if let Read::Count {
            predicate: Predicate::True,
            exact: false,
        } = read
            && let Some(rows) = self.estimate(session, &shape).await?
        {
            let estimate = vec![Value::Integer(rows), Value::Boolean(false)];
            // One row is no full batch.
            let _ = sender.push(estimate);
            return Ok(());
        }
        let zoned = zoned(read);
        if zoned.is_empty() {
            let statement = compile(&Mysql::default(), &shape, read)?;
            return self
                .stream(&mut session.connection, &statement, sender)
                .await;
        }
        // Both statements must see the same rows.
        let failed = |error| self.failed("reading", &error);
        let mut options = TxOpts::default();
        options.with_consistent_snapshot(true).with_readonly(true);
        let mut transaction = session
            .connection
            .start_transaction(options)
            .await
            .map_err(failed)?;
        let mut dialect = Mysql::default();
        for (column, zone) in zoned {
            let statement = years(&dialect, &shape, read, &column)?;
            let params = Params::Positional(statement.binds.iter().map(bound).collect());
            let years: Vec<Option<i16>> = transaction
                .exec(statement.text, params)
                .await
                .map_err(failed)?;
            let years: Vec<i16> = years.into_iter().flatten().collect();
            let offsets: Offsets =
                zones::offsets(&zone, &years).ok_or(StoreError::Unsupported {
                    what: "a time zone's calendar over so many years",
                })?;
            dialect.zones.insert((column.name, zone), offsets);
        }
        let statement = compile(&dialect, &shape, read)?;
        self.stream(&mut transaction, &statement, sender).await?;
        transaction.rollback().await.map_err(failed)
    }

    async fn stream<Q: Queryable>(
        &self,
        connection: &mut Q,
        statement: &Statement,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let failed = |error| self.failed("reading", &error);
        let params = Params::Positional(statement.binds.iter().map(bound).collect());
        // The driver asks that no parameters be said so.
        let params = if statement.binds.is_empty() {
            Params::Empty
        } else {
            params
        };
        let mut answer = connection
            .exec_iter(statement.text.as_str(), params)
            .await
            .map_err(failed)?;
        let columns = columns(&statement.outputs);
        while let Some(row) = answer.next().await.map_err(failed)? {
            let row: Row = row;
            let cells = row.unwrap().into_iter().zip(columns.iter().copied());
            let cells = cells.map(|(value, output)| cell(value, output));
            let row = values::row(&statement.outputs, cells)?;
            if sender.push(row) && !sender.flush().await {
                return Err(StoreError::Cancelled);
            }
        }
        Ok(())
    }

    async fn shape(&self, session: &mut Kept, target: &Target) -> Result<Shape<Kind>, StoreError> {
        type Found = (String, String, String, String, String, String);
        let rows: Vec<Found> = session
            .connection
            .exec(COLUMNS, (&target.schema, &target.table))
            .await
            .map_err(|error| self.failed("reading the table's columns", &error))?;
        let schema = rows.first().map(|row| row.0.clone());
        let columns: HashMap<_, _> = rows
            .into_iter()
            .map(|(_, name, data_type, nullable, charset, collation)| {
                let native = Native {
                    kind: kind(&data_type, &charset, &collation),
                    not_null: nullable == "NO",
                };
                (name, native)
            })
            .collect();
        if columns.is_empty() {
            return Err(no_table(target));
        }
        Ok(Shape {
            schema,
            table: target.table.clone(),
            columns,
        })
    }

    async fn estimate(
        &self,
        session: &mut Kept,
        shape: &Shape<Kind>,
    ) -> Result<Option<i128>, StoreError> {
        let rows: Option<Option<u64>> = session
            .connection
            .exec_first(ESTIMATE, (&shape.schema, &shape.table))
            .await
            .map_err(|error| self.failed("reading statistics", &error))?;
        Ok(rows.flatten().map(i128::from))
    }

    fn failed(&self, doing: &'static str, error: &mysql_async::Error) -> StoreError {
        store_error(&self.server, self.options.limits, doing, error)
    }
}

/// The output of each column of the answer: a mean takes two.
fn columns(outputs: &[Output]) -> Vec<Option<&Output>> {
    outputs
        .iter()
        .flat_map(|output| match output {
            Output::Mean(_) => vec![Some(output), None],
            _ => vec![Some(output)],
        })
        .collect()
}

/// The columns whose local time decides, and in which zone; UTC needs no help.
fn zoned(read: &Read) -> Vec<(Column, String)> {
    let Read::Groups(plan) = read else {
        return Vec::new();
    };
    let mut found: Vec<(Column, String)> = Vec::new();
    for key in &plan.by {
        if let GroupKey::Period {
            column, time_zone, ..
        } = key
            && column.datatype == Datatype::Datetime
            && !matches!(time_zone.as_str(), "UTC" | "Etc/UTC")
            && !found.iter().any(|it| it.0 == *column && it.1 == *time_zone)
        {
            found.push((column.clone(), time_zone.clone()));
        }
    }
    found
}

fn kind(data_type: &str, charset: &str, collation: &str) -> Kind {
    match data_type {
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => {
            // The binary collations that count trailing spaces.
            let counted = collation.ends_with("_nopad_bin") || collation == "utf8mb4_0900_bin";
            let unicode = matches!(charset, "utf8mb4" | "utf8mb3" | "utf8" | "ascii");
            Kind::Text {
                by_code_point: counted && unicode,
            }
        }
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Kind::Binary,
        "tinyint" | "smallint" | "mediumint" | "int" | "integer" | "bigint" | "year" => {
            Kind::Integer
        }
        "bit" => Kind::Bit,
        "decimal" | "numeric" => Kind::Decimal,
        "float" | "double" | "real" => Kind::Float,
        "date" => Kind::Date,
        "datetime" | "timestamp" => Kind::Datetime,
        "json" => Kind::Json,
        _ => Kind::Other,
    }
}
