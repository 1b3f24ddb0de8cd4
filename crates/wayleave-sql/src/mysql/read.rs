//! Reads from MySQL and MariaDB.
//!
//! Every statement is prepared and runs by itself in a session whose transactions are read-only;
//! only a plan that groups by a zone's calendar takes two, in one transaction.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Params, Row, Transaction, TxOpts};
use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, GroupKey, Read, Target};
use wayleave_plan::value::Value;
use wayleave_store::{Capabilities, Limits, OnMalformed, RowSender, StoreError};

use super::capabilities::CAPABILITIES;
use super::catalogue::{COLUMNS_OF_TABLE, CatalogueColumn, ColumnRow, KeyRow, UNIQUE_OF_TABLE};
use super::dialect::{FAILS, MysqlDialect, Offsets, is_utc};
use super::digits::{is_greatest, out_of_range};
use super::error::store_error;
use super::pool::{MysqlSession, cancel};
use super::types::{Kind, is_same};
use super::values::{bound, cell};
use super::zones;
use crate::compile::PlanParts;
use crate::compile::{Output, Shape, Statement, Tables, compile};
use crate::dsn::Server as Address;
use crate::plan_columns::undecided;
use crate::pooled_store::{PooledStore, RunningRead, ServerDriver};
use crate::read_task::{StoreOptions, no_table};
use crate::values::{self, Cell};
use crate::write::pooled_writer::PooledWriter;

const ESTIMATE: &str = "SELECT TABLE_ROWS FROM information_schema.TABLES \
    WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";

/// A MySQL or MariaDB database.
pub(crate) struct Database {
    server: Address,
    limits: Limits,
}

/// The database behind an address, answering plans.
pub(crate) fn store(server: Address, options: StoreOptions) -> PooledStore<Database> {
    let limits = options.limits;
    PooledStore::new(Database { server, limits }, options)
}

/// The database behind an address, taking writes.
pub(crate) fn writer(server: Address, options: StoreOptions) -> PooledWriter<Database> {
    let limits = options.limits;
    PooledWriter::new(Database { server, limits }, options)
}

impl ServerDriver for Database {
    type Session = MysqlSession;
    /// The name of the lock that marks the session on its server.
    type CancelHandle = Option<Arc<str>>;
    type Kind = Kind;

    const CAPABILITIES: &'static Capabilities = &CAPABILITIES;

    async fn open(&self) -> Result<MysqlSession, StoreError> {
        MysqlSession::open(&self.server, self.limits).await
    }

    fn is_usable(_: &mut MysqlSession) -> bool {
        // Only the server knows.
        true
    }

    fn cancel_handle(session: &MysqlSession) -> Option<Arc<str>> {
        session.mark.clone()
    }

    async fn cancel(&self, handle: Option<Arc<str>>, _: RunningRead<'_>) {
        if let Some(mark) = handle {
            cancel(&self.server, self.limits, &mark).await;
        }
    }

    async fn rows(
        &self,
        session: &mut MysqlSession,
        tables: &Tables<Kind>,
        plan: PlanParts<'_>,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let zoned = zoned(plan.read);
        if zoned.is_empty() {
            return self.plain_rows(session, tables, plan, sender).await;
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
        let sent = self
            .zoned_rows(&mut transaction, tables, plan, zoned, sender)
            .await;
        // Whatever the outcome, no transaction outlives an answer.
        let ended = transaction.rollback().await.map_err(failed);
        sent.and(ended)
    }

    fn statement_limit(session: &MysqlSession) -> Duration {
        session.limit
    }

    async fn limit_statements(
        &self,
        session: &mut MysqlSession,
        limit: Duration,
    ) -> Result<(), StoreError> {
        let limited = session.limit_statements(limit).await;
        limited.map_err(|error| self.failed("limiting statements", &error))
    }

    async fn shape(
        &self,
        session: &mut MysqlSession,
        target: &Target,
    ) -> Result<Shape<Kind>, StoreError> {
        let rows: Vec<ColumnRow> = session
            .connection
            .exec(COLUMNS_OF_TABLE, (&target.schema, &target.table))
            .await
            .map_err(|error| self.failed("reading the table's columns", &error))?;
        let mut schema = None;
        let mut columns = BTreeMap::new();
        for row in rows {
            let mut column = CatalogueColumn::from_row(session.flavour, row);
            schema = Some(std::mem::take(&mut column.schema));
            columns.extend([column.native()]);
        }
        if columns.is_empty() {
            return Err(no_table(target));
        }
        Ok(Shape {
            schema,
            table: target.table.clone(),
            version: None,
            columns,
            unique: OnceLock::new(),
        })
    }

    async fn unique(
        &self,
        session: &mut MysqlSession,
        shape: &Shape<Kind>,
    ) -> Result<Vec<Vec<String>>, StoreError> {
        let rows: Vec<KeyRow> = session
            .connection
            .exec(UNIQUE_OF_TABLE, (&shape.schema, &shape.table))
            .await
            .map_err(|error| self.failed("reading the table's keys", &error))?;
        let sets = rows.chunk_by(|a, b| a.0 == b.0).filter_map(|set| {
            let columns = set.iter().map(|(_, column, prefix)| match prefix {
                None => column.clone(),
                Some(_) => None,
            });
            columns.collect::<Option<Vec<String>>>()
        });
        Ok(sets.collect())
    }

    async fn estimate(
        &self,
        session: &mut MysqlSession,
        shape: &Shape<Kind>,
    ) -> Result<Option<i128>, StoreError> {
        let rows: Option<Option<u64>> = session
            .connection
            .exec_first(ESTIMATE, (&shape.schema, &shape.table))
            .await
            .map_err(|error| self.failed("reading statistics", &error))?;
        Ok(rows.flatten().map(i128::from))
    }

    async fn close(session: MysqlSession) {
        let _ = session.connection.disconnect().await;
    }
}

impl Database {
    /// Sends the rows of a plan that groups by a zone's calendar, in a transaction.
    async fn zoned_rows(
        &self,
        transaction: &mut Transaction<'_>,
        tables: &Tables<Kind>,
        plan: PlanParts<'_>,
        zoned: Vec<(Column, String)>,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let read = plan.read;
        let failed = |error| self.failed("reading", &error);
        let mut dialect = MysqlDialect::default();
        for (column, zone) in zoned {
            let statement = zones::years(&dialect, tables, plan, &column)?;
            let params = Params::Positional(statement.binds.iter().map(bound).collect());
            let years: Vec<Option<i16>> =
                transaction
                    .exec(statement.text.as_str(), params)
                    .await
                    .map_err(|error| refine(read, &statement.text, failed(error)))?;
            let years: Vec<i16> = years.into_iter().flatten().collect();
            let offsets: Offsets =
                zones::offsets(&zone, &years).ok_or(StoreError::Unsupported {
                    what: "grouping by local time over so many years",
                })?;
            dialect.zones.insert((column, zone), offsets);
        }
        let statement = compile(&dialect, tables, plan)?;
        let streamed = self.stream(transaction, tables, &statement, sender);
        let streamed = streamed.await.map(drop);
        streamed.map_err(|error| refine(read, &statement.text, error))
    }

    /// Sends the rows of one statement. Sends them again in a more exact order if one of their
    /// texts ends in NUL.
    async fn plain_rows(
        &self,
        session: &mut MysqlSession,
        tables: &Tables<Kind>,
        plan: PlanParts<'_>,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let read = plan.read;
        let mut dialect = MysqlDialect {
            by_length: begins_after_nul(read),
            skips_undecided: sender.on_malformed() == OnMalformed::Mark,
            ..MysqlDialect::default()
        };
        let statement = compile(&dialect, tables, plan)?;
        let connection = &mut session.connection;
        let streamed = self.stream(connection, tables, &statement, sender).await;
        let met_nul = streamed.map_err(|error| refine(read, &statement.text, error))?;
        if !met_nul || dialect.by_length || !matches!(read, Read::Rows(_)) {
            return Ok(());
        }
        dialect.by_length = true;
        let careful = compile(&dialect, tables, plan)?;
        if careful.text == statement.text {
            return Ok(());
        }
        if !sender.restart() {
            return Err(StoreError::Unsupported {
                what: "sorting so many rows by texts that end in NUL",
            });
        }
        let sent = self.stream(connection, tables, &careful, sender).await;
        sent.map(drop)
    }

    /// Sends the rows of a statement, and returns whether one of their texts ends in NUL.
    async fn stream<Q: Queryable>(
        &self,
        connection: &mut Q,
        tables: &Tables<Kind>,
        statement: &Statement<'_>,
        sender: &mut RowSender,
    ) -> Result<bool, StoreError> {
        let failed = |error| self.failed("reading", &error);
        let params = Params::Positional(statement.binds.iter().map(bound).collect());
        // The driver refuses an empty positional list.
        let params = if statement.binds.is_empty() {
            Params::Empty
        } else {
            params
        };
        let mut answer = connection
            .exec_iter(statement.text.as_str(), params)
            .await
            .map_err(failed)?;
        let reported = answer.columns();
        let reported = reported.as_deref().unwrap_or_default();
        tables.check_witnesses(&statement.witnesses, reported, |native, column| {
            is_same(&native.kind, column)
        })?;
        let columns = columns(&statement.outputs);
        let mut met_nul = false;
        while let Some(row) = answer.next().await.map_err(failed)? {
            let row: Row = row;
            let cells = row.unwrap().into_iter().zip(columns.iter().copied());
            let mut is_out_of_range = false;
            let cells = cells.map(|(value, output)| {
                let cell = cell(value, output);
                is_out_of_range = is_out_of_range || is_beyond(&cell, output);
                cell
            });
            let row = values::row(&statement.outputs, cells, sender.on_malformed())?;
            if is_out_of_range {
                return Err(out_of_range());
            }
            met_nul = met_nul || row.iter().any(ends_in_nul);
            if sender.push(row) && !sender.flush().await {
                return Err(StoreError::Cancelled);
            }
        }
        Ok(met_nul)
    }

    pub(super) fn failed(&self, doing: &'static str, error: &mysql_async::Error) -> StoreError {
        store_error(&self.server, self.limits, doing, error)
    }
}

fn ends_in_nul(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text.ends_with('\0'))
}

/// Whether the cursor of a page holds a text that ends in NUL.
fn begins_after_nul(read: &Read) -> bool {
    let Read::Rows(plan) = read else {
        return false;
    };
    plan.after.iter().flatten().any(ends_in_nul)
}

/// Refines the error of a statement. A statement that cannot decide whether a row matches fails by
/// a number that is out of range.
fn refine(read: &Read, statement: &str, error: StoreError) -> StoreError {
    match &error {
        StoreError::OutOfRange { .. } if statement.contains(FAILS) => {
            undecided(read).unwrap_or(error)
        }
        _ => error,
    }
}

/// Whether a sum is the greatest decimal, which the server returns for any greater sum too.
fn is_beyond(cell: &Cell<'_>, output: Option<&Output<'_>>) -> bool {
    let is_sum = matches!(output, Some(Output::Sum(_) | Output::Mean(_)));
    is_sum && matches!(cell, Cell::Text(text) if is_greatest(text))
}

/// The output of each result column; `None` for the second column of a mean.
fn columns<'a>(outputs: &'a [Output<'_>]) -> Vec<Option<&'a Output<'a>>> {
    outputs
        .iter()
        .flat_map(|output| {
            let further = std::iter::repeat_n(None, output.width() - 1);
            std::iter::once(Some(output)).chain(further)
        })
        .collect()
}

/// The columns that are grouped by local time, each with its time zone; UTC needs no help.
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
            && !is_utc(time_zone)
            && !found.iter().any(|it| it.0 == *column && it.1 == *time_zone)
        {
            found.push((column.clone(), time_zone.clone()));
        }
    }
    found
}
