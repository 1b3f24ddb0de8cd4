//! Reading PostgreSQL.
//!
//! Every statement is prepared and runs by itself in a session whose transactions are read-only,
//! so one round trip answers a plan.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt as _, pin_mut};
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::plan::{Predicate, Read, Target};
use wayleave_plan::value::Value;
use wayleave_store::{Answer, Capabilities, ReadContext, RowSender, Store, StoreError};

use super::error::store_error;
use super::pool::{Kept, cancel};
use super::values::cells;
use crate::capabilities::POSTGRES;
use crate::compile::postgres::{Kind, Postgres};
use crate::compile::{Native, Shape, compile};
use crate::dsn::Server;
use crate::pool::{Pool, Slot};
use crate::reading::{Readings, Shapes, Stop, StoreOptions, may_have_changed, no_table};
use crate::values;

/// The columns of a table with the base types of domains. A name without a schema is looked up as
/// the session would.
const COLUMNS: &str = "WITH RECURSIVE place AS ( \
    SELECT c.oid, n.nspname FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relname = $2::text AND c.relkind IN ('r', 'v', 'm', 'f', 'p') \
      AND (n.nspname = $1::text OR ($1::text IS NULL AND pg_catalog.pg_table_is_visible(c.oid))) \
    LIMIT 1 \
), base AS ( \
    SELECT a.attnum, a.attname, a.attnotnull, a.attcollation, a.atttypid AS typ \
    FROM pg_catalog.pg_attribute a JOIN place ON place.oid = a.attrelid \
    WHERE a.attnum > 0 AND NOT a.attisdropped \
    UNION ALL \
    SELECT b.attnum, b.attname, b.attnotnull OR t.typnotnull, b.attcollation, t.typbasetype \
    FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.typ WHERE t.typtype = 'd' \
) \
SELECT (SELECT nspname::text FROM place), b.attname::text, t.typname::text, t.typcategory = 'A', \
    b.attnotnull, COALESCE(l.collisdeterministic, true), \
    COALESCE(CASE WHEN l.collname = 'default' THEN d.datcollate ELSE l.collcollate END, '') IN ('C', 'POSIX') \
FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.typ AND t.typtype <> 'd' \
LEFT JOIN pg_catalog.pg_collation l ON l.oid = b.attcollation \
CROSS JOIN (SELECT datcollate FROM pg_catalog.pg_database WHERE datname = current_database()) d";

/// What the planner believes; negative where it has never looked.
const ESTIMATE: &str = "SELECT c.reltuples::int8 FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = $1::text AND c.relname = $2::text AND c.relkind IN ('r', 'm')";

/// A PostgreSQL database that answers plans.
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

#[cfg(feature = "raw")]
impl Reader {
    /// What plans become, and what is bound in it.
    pub(crate) async fn statements(
        &self,
        plans: &[&AuthorizedPlan],
    ) -> Result<Vec<(String, Vec<crate::compile::Bind>)>, StoreError> {
        let session = Kept::open(&self.inner.server, self.inner.options.limits).await?;
        let mut statements = Vec::with_capacity(plans.len());
        for plan in plans {
            let shape = self.inner.shape(&session, plan.target()).await?;
            let statement = compile(&Postgres, &shape, plan.read())?;
            statements.push((statement.text, statement.binds));
        }
        Ok(statements)
    }
}

#[async_trait]
impl Store for Reader {
    fn capabilities(&self) -> &Capabilities {
        &POSTGRES
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
        drop(self.inner.pool.close().await);
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
            let token = session.client.cancel_token();
            let outcome = {
                let work = self.attempt(&mut session, known, target, read, sender);
                pin_mut!(work);
                tokio::select! {
                    outcome = &mut work => outcome,
                    reason = stop.wait(&unwanted) => {
                        cancel(&self.server, &token, work).await;
                        return Err(reason);
                    }
                }
            };
            let Err(error) = outcome else {
                slot.keep(session);
                return Ok(());
            };
            self.shapes.forget(target);
            let lost = kept && matches!(error, StoreError::Unreachable { .. });
            let changed = was_known && may_have_changed(&error);
            // The server's own limit is as long as ours.
            if matches!(error, StoreError::Timeout { .. }) {
                return Err(stop.now().unwrap_or(error));
            }
            if !(lost || changed) || !sender.restart() {
                // Nothing was asked of the server but the table's columns.
                if matches!(error, StoreError::SchemaDrift { .. }) {
                    slot.keep(session);
                }
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
        match slot.idle(|kept| !kept.client.is_closed()) {
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
        let statement = compile(&Postgres, &shape, read)?;
        let failed = |error| self.failed("reading", &error);
        let prepared = session.prepare(&statement.text).await.map_err(failed)?;
        let rows = session
            .client
            .query_raw(&prepared, &statement.binds)
            .await
            .map_err(failed)?;
        pin_mut!(rows);
        while let Some(row) = rows.next().await {
            let cells = cells(&row.map_err(failed)?);
            let row = values::row(&statement.outputs, cells.into_iter())?;
            if sender.push(row) && !sender.flush().await {
                return Err(StoreError::Cancelled);
            }
        }
        Ok(())
    }

    async fn shape(&self, session: &Kept, target: &Target) -> Result<Shape<Kind>, StoreError> {
        let failed = |error| self.failed("reading the table's columns", &error);
        let rows = session
            .client
            .query(COLUMNS, &[&target.schema, &target.table])
            .await
            .map_err(failed)?;
        let mut schema = None;
        let mut columns = HashMap::new();
        for row in &rows {
            schema = row.try_get::<_, Option<String>>(0).map_err(failed)?;
            let name: String = row.try_get(1).map_err(failed)?;
            let type_name: &str = row.try_get(2).map_err(failed)?;
            let array: bool = row.try_get(3).map_err(failed)?;
            let deterministic: bool = row.try_get(5).map_err(failed)?;
            let by_code_point: bool = row.try_get(6).map_err(failed)?;
            let kind = match kind(type_name, array) {
                Kind::Text { .. } => Kind::Text {
                    by_code_point,
                    deterministic,
                },
                other => other,
            };
            let not_null = row.try_get(4).map_err(failed)?;
            columns.insert(name, Native { kind, not_null });
        }
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
        session: &Kept,
        shape: &Shape<Kind>,
    ) -> Result<Option<i128>, StoreError> {
        let failed = |error| self.failed("reading statistics", &error);
        let rows = session
            .client
            .query(ESTIMATE, &[&shape.schema, &shape.table])
            .await
            .map_err(failed)?;
        let estimate = match rows.first() {
            Some(row) => row.try_get::<_, i64>(0).map_err(failed)?,
            None => return Ok(None),
        };
        Ok((estimate >= 0).then_some(i128::from(estimate)))
    }

    fn failed(&self, doing: &'static str, error: &tokio_postgres::Error) -> StoreError {
        store_error(&self.server, self.options.limits, doing, error)
    }
}

fn kind(name: &str, array: bool) -> Kind {
    match name {
        _ if array => Kind::Array,
        "text" | "varchar" => Kind::Text {
            by_code_point: false,
            deterministic: false,
        },
        "uuid" => Kind::Uuid,
        "int2" | "int4" | "int8" => Kind::Integer,
        "oid" => Kind::Oid,
        "numeric" => Kind::Numeric,
        "float4" | "float8" => Kind::Float,
        "bool" => Kind::Boolean,
        "date" => Kind::Date,
        "timestamp" => Kind::Timestamp,
        "timestamptz" => Kind::TimestampTz,
        "json" | "jsonb" => Kind::Json,
        _ => Kind::Other,
    }
}
