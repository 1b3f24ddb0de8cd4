//! Reading PostgreSQL.
//!
//! Every statement is prepared and runs by itself in a session whose transactions are read-only,
//! so one round trip answers a plan.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use tokio_postgres::CancelToken;
use tokio_postgres::types::ToSql;
use wayleave_plan::plan::{Read, Target};
use wayleave_store::{Capabilities, Limits, RowSender, StoreError};

use super::error::store_error;
use super::pool::{Kept, cancel};
use super::values;
use crate::capabilities::POSTGRES;
use crate::compile::postgres::Kind;
use crate::compile::{Native, Shape, compile};
use crate::dsn::Server as Address;
use crate::reading::{StoreOptions, no_table};
use crate::served::{Reader, Server, Work};

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

/// A PostgreSQL database.
pub(crate) struct Database {
    server: Address,
    limits: Limits,
}

/// The database behind an address, answering plans.
pub(crate) fn store(server: Address, options: StoreOptions) -> Reader<Database> {
    let limits = options.limits;
    Reader::new(Database { server, limits }, options)
}

/// What plans become, and what is bound in it.
#[cfg(feature = "raw")]
pub(crate) async fn statements(
    server: Address,
    plans: &[&wayleave_plan::AuthorizedPlan],
) -> Result<Vec<(String, Vec<crate::compile::Bind>)>, StoreError> {
    let limits = Limits::default();
    let database = Database { server, limits };
    let mut session = database.open().await?;
    let mut statements = Vec::with_capacity(plans.len());
    for plan in plans {
        let shape = database.shape(&mut session, plan.target()).await?;
        let statement = compile(&session.dialect, &shape, plan.read())?;
        statements.push((statement.text, statement.binds));
    }
    Ok(statements)
}

impl Server for Database {
    type Session = Kept;
    type Brake = Arc<CancelToken>;
    type Kind = Kind;

    const CAPABILITIES: &'static Capabilities = &POSTGRES;

    async fn open(&self) -> Result<Kept, StoreError> {
        Kept::open(&self.server, self.limits).await
    }

    fn is_good(session: &mut Kept) -> bool {
        session.line.is_open()
    }

    fn brake(session: &Kept) -> Arc<CancelToken> {
        Arc::clone(&session.brake)
    }

    async fn stop(&self, brake: Arc<CancelToken>, work: Work<'_>) {
        cancel(&self.server, &brake, work).await;
    }

    async fn rows(
        &self,
        session: &mut Kept,
        shape: &Shape<Kind>,
        read: &Read,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let statement = compile(&session.dialect, shape, read)?;
        let failed = |error| self.failed("reading", &error);
        let Kept {
            client,
            line,
            prepared,
            ..
        } = session;
        let reading = pin!(async {
            let prepared = prepared.get(client, &statement.text).await;
            let prepared = prepared.map_err(failed)?;
            let rows = client.query_raw(&prepared, &statement.binds).await;
            let mut rows = pin!(rows.map_err(failed)?);
            let reader = values::Reader::new(&statement.outputs, &prepared);
            while let Some(row) = rows.next().await {
                let row = row.map_err(failed)?;
                let values = reader.read(&row)?;
                let full = match reader.bytes(&row) {
                    Some(bytes) => sender.push_weighed(values, bytes),
                    None => sender.push(values),
                };
                if full && !sender.flush().await {
                    return Err(StoreError::Cancelled);
                }
            }
            Ok(())
        });
        line.carry_pinned(reading).await
    }

    async fn shape(&self, session: &mut Kept, target: &Target) -> Result<Shape<Kind>, StoreError> {
        let failed = |error| self.failed("reading the table's columns", &error);
        let values: [&(dyn ToSql + Sync); 2] = [&target.schema, &target.table];
        let asked = session.client.query(COLUMNS, &values);
        let rows = session.line.carry(asked).await.map_err(failed)?;
        let mut schema = None;
        let mut columns = BTreeMap::new();
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
        session: &mut Kept,
        shape: &Shape<Kind>,
    ) -> Result<Option<i128>, StoreError> {
        let failed = |error| self.failed("reading statistics", &error);
        let values: [&(dyn ToSql + Sync); 2] = [&shape.schema, &shape.table];
        let asked = session.client.query(ESTIMATE, &values);
        let rows = session.line.carry(asked).await.map_err(failed)?;
        let estimate = match rows.first() {
            Some(row) => row.try_get::<_, i64>(0).map_err(failed)?,
            None => return Ok(None),
        };
        Ok((estimate >= 0).then_some(i128::from(estimate)))
    }

    async fn part(session: Kept) {
        session.part().await;
    }
}

impl Database {
    fn failed(&self, doing: &'static str, error: &tokio_postgres::Error) -> StoreError {
        store_error(&self.server, self.limits, doing, error)
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
        "float4" => Kind::Single,
        "float8" => Kind::Float,
        "bool" => Kind::Boolean,
        "date" => Kind::Date,
        "timestamp" => Kind::Timestamp,
        "timestamptz" => Kind::TimestampTz,
        "json" | "jsonb" => Kind::Json,
        _ => Kind::Other,
    }
}
