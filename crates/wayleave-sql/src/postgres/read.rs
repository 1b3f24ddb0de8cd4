//! Reads from PostgreSQL.
//!
//! Every statement is prepared and runs by itself in a session whose transactions are read-only,
//! so one round trip answers a plan.

use std::io;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::TryStreamExt as _;
use tokio_postgres::types::Type;
use wayleave_plan::plan::Target;
use wayleave_store::{Capabilities, Detail, Limits, OnMalformed, RowSender, StoreError};

use super::capabilities::CAPABILITIES;
use super::catalogue::{self, COLUMNS, UNIQUE};
use super::dialect::PostgresDialect;
use super::error::{io_error, store_error};
use super::listener::ChangeListener;
use super::login::CancelHandle;
use super::pool::{PgSession, cancel};
use super::types::Kind;
use super::values::RowDecoder;
use crate::adapter::TableName;
use crate::compile::PlanParts;
use crate::compile::{Shape, Tables, compile};
use crate::dsn::Server as Address;
use crate::plan_columns::undecided;
use crate::pooled_store::{PooledStore, RunningRead, ServerDriver, TransactionEnd};
use crate::read_task::{StoreOptions, no_table};
use crate::write::pooled_writer::PooledWriter;

/// The planner's row estimate; negative if the table was never analysed. It counts rows that row
/// security hides from us, so it is not used for a table under row security.
const ESTIMATE: &str = "SELECT c.reltuples::int8 FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = $1::text AND c.relname = $2::text AND c.relkind IN ('r', 'm') \
      AND NOT pg_catalog.row_security_active(c.oid)";

/// Code of the error of a statement that cannot decide whether a row matches; nothing else of ours
/// divides by zero.
const DIVISION_BY_ZERO: &str = "22012";

/// A PostgreSQL database.
pub(crate) struct Database {
    server: Arc<Address>,
    limits: Limits,
    listener: ChangeListener,
}

impl Database {
    fn new(server: Address, options: &StoreOptions) -> Self {
        let (server, limits) = (Arc::new(server), options.limits);
        Self {
            listener: ChangeListener::new(Arc::clone(&server), limits, options.trigger_check),
            server,
            limits,
        }
    }
}

/// The database behind an address, answering plans.
pub(crate) fn store(server: Address, options: StoreOptions) -> PooledStore<Database> {
    PooledStore::new(Database::new(server, &options), options)
}

/// The database behind an address, taking writes.
pub(crate) fn writer(server: Address, options: StoreOptions) -> PooledWriter<Database> {
    PooledWriter::new(Database::new(server, &options), options)
}

/// The statements that plans compile to, with their bound values.
#[cfg(feature = "raw")]
pub(crate) async fn statements(
    server: Address,
    plans: &[&wayleave_plan::AuthorizedPlan],
) -> Result<Vec<(String, Vec<crate::compile::Bind>)>, StoreError> {
    let database = Database::new(server, &StoreOptions::default());
    let mut session = database.open().await?;
    let mut statements = Vec::with_capacity(plans.len());
    for plan in plans {
        let plan = PlanParts::from(*plan);
        let mut tables = Tables::new(Arc::new(database.shape(&mut session, plan.target).await?));
        for join in plan.joined_tables() {
            let target = plan.target_of(join);
            let shape = database.shape(&mut session, &target).await?;
            let unique = database.unique(&mut session, &shape).await?;
            let _ = shape.unique.set(unique);
            tables.join(plan, join, Arc::new(shape));
        }
        let statement = compile(&session.dialect, &tables, plan)?;
        statements.push((statement.text, statement.binds));
    }
    Ok(statements)
}

impl ServerDriver for Database {
    type Session = PgSession;
    type CancelHandle = Arc<CancelHandle>;
    type Kind = Kind;

    const CAPABILITIES: &'static Capabilities = &CAPABILITIES;

    async fn open(&self) -> Result<PgSession, StoreError> {
        PgSession::open(&self.server, self.limits).await
    }

    fn is_usable(session: &mut PgSession) -> bool {
        !session.client.is_closed()
    }

    fn cancel_handle(session: &PgSession) -> Arc<CancelHandle> {
        Arc::clone(&session.cancel_handle)
    }

    async fn cancel(&self, handle: Arc<CancelHandle>, read: RunningRead<'_>) {
        cancel(&self.server, self.limits, &handle, read).await;
    }

    async fn rows(
        &self,
        session: &mut PgSession,
        tables: &Tables<Kind>,
        plan: PlanParts<'_>,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let read = plan.read;
        let dialect = PostgresDialect {
            skips_undecided: sender.on_malformed() == OnMalformed::Mark,
            ..session.dialect.clone()
        };
        let statement = compile(&dialect, tables, plan)?;
        let failed = |error| {
            let error = self.failed("reading", &error);
            let is_undecided = matches!(&error, StoreError::Failed { code: Some(code), .. }
                if code == DIVISION_BY_ZERO);
            let undecided = is_undecided.then(|| undecided(read)).flatten();
            undecided.unwrap_or(error)
        };
        let (text, binds) = (&statement.text, &statement.binds);
        let prepared = session.prepare(text, binds).await.map_err(failed)?;
        tables.check_witnesses(
            &statement.witnesses,
            &prepared.types,
            |native, column_type| {
                // User-defined types are not known by number here; all of them have a text form.
                let known = native.type_id.and_then(Type::from_oid);
                known.is_none_or(|known| known == *column_type)
            },
        )?;
        let decoder = RowDecoder::new(&statement.outputs, &prepared.types, sender.on_malformed())?;
        let rows = session.run(&prepared, text, binds).await;
        let mut rows = pin!(rows.map_err(failed)?);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let values = decoder.decode(&row)?;
            let full = match decoder.row_bytes(&row) {
                Some(bytes) => sender.push_sized(values, bytes),
                None => sender.push(values),
            };
            if full && !sender.flush().await {
                return Err(StoreError::Cancelled);
            }
        }
        self.check_complete(rows.rows_affected()).map(drop)
    }

    fn statement_limit(session: &PgSession) -> Duration {
        session.limit
    }

    async fn limit_statements(
        &self,
        session: &mut PgSession,
        limit: Duration,
    ) -> Result<(), StoreError> {
        let limited = session.limit_statements(limit).await;
        limited.map_err(|error| self.failed("limiting statements", &error))
    }

    fn is_shared(session: &PgSession) -> bool {
        session.pooled
    }

    async fn begin(&self, session: &mut PgSession) -> Result<(), StoreError> {
        let begun = session.begin().await;
        begun.map_err(|error| self.failed("beginning a transaction", &error))
    }

    async fn end(&self, session: &mut PgSession, end: TransactionEnd) -> Result<(), StoreError> {
        let ended = session.end(end).await;
        ended.map_err(|error| self.failed("ending a transaction", &error))
    }

    async fn shape(
        &self,
        session: &mut PgSession,
        target: &Target,
    ) -> Result<Shape<Kind>, StoreError> {
        let failed = |error| self.failed("reading the table's columns", &error);
        let named = [target.schema.as_deref(), Some(&*target.table)];
        let rows = session.query(COLUMNS, &named).await.map_err(failed)?;
        let table = catalogue::table(&rows);
        let table = table.map_err(|_| not_utf8("reading the table's columns"))?;
        let (schema, columns) = table.ok_or_else(|| no_table(target))?;
        Ok(Shape {
            schema: Some(schema),
            table: target.table.clone(),
            version: None,
            columns,
            unique: OnceLock::new(),
        })
    }

    async fn unique(
        &self,
        session: &mut PgSession,
        shape: &Shape<Kind>,
    ) -> Result<Vec<Vec<String>>, StoreError> {
        let failed = |error| self.failed("reading the table's keys", &error);
        let named = [shape.schema.as_deref(), Some(&*shape.table)];
        let rows = session.query(UNIQUE, &named).await.map_err(failed)?;
        let sets = rows.iter().map(|row| row.try_get(0));
        let sets = sets.collect::<Result<_, _>>();
        sets.map_err(|_| not_utf8("reading the table's keys"))
    }

    async fn estimate(
        &self,
        session: &mut PgSession,
        shape: &Shape<Kind>,
    ) -> Result<Option<i128>, StoreError> {
        let failed = |error| self.failed("reading statistics", &error);
        let named = [shape.schema.as_deref(), Some(&*shape.table)];
        let rows = session.query(ESTIMATE, &named).await.map_err(failed)?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let estimate: i64 = row.try_get(0).map_err(failed)?;
        Ok((estimate >= 0).then_some(estimate.into()))
    }

    fn change_token(&self, plan: PlanParts<'_>) -> Option<u64> {
        let target = plan.target;
        let joined = plan.joined_tables();
        let joined = joined.iter().map(|it| (&it.schema, &it.name));
        let tables = [(&target.schema, &target.table)].into_iter().chain(joined);
        let tables = tables.map(|(schema, table)| TableName {
            schema: schema.clone(),
            table: table.clone(),
        });
        self.listener.token(tables.collect())
    }

    async fn close(session: PgSession) {
        session.close().await;
    }

    async fn end_listening(&self) {
        self.listener.close().await;
    }
}

impl Database {
    pub(super) fn failed(&self, doing: &'static str, error: &tokio_postgres::Error) -> StoreError {
        store_error(&self.server, self.limits, doing, error)
    }

    /// The number of rows that a statement affected, which its `CommandComplete` says. Without one,
    /// the answer may be incomplete.
    pub(super) fn check_complete(&self, affected: Option<u64>) -> Result<u64, StoreError> {
        affected.ok_or_else(|| {
            let cut = io::Error::new(io::ErrorKind::InvalidData, "the answer is not complete");
            io_error(&self.server, "the connection is lost", &cut)
        })
    }
}

/// The error for a row of the catalogue that cannot be decoded.
fn not_utf8(doing: &'static str) -> StoreError {
    StoreError::Failed {
        doing,
        code: None,
        detail: Detail::from_static("a name in the database's catalogue is not valid UTF-8"),
    }
}
