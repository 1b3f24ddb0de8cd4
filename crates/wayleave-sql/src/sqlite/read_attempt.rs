//! One attempt at a read of a SQLite file: probes, statements, and the meaning of failures.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, ErrorCode};
use tokio::runtime::Handle;
use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Predicate, Read, Rows};
use wayleave_plan::value::Value;
use wayleave_store::{OnMalformed, RowSender, StoreError};

use super::dialect::bytes::NonTextValue;
use super::dialect::{SqliteDialect, probe};
use super::error::store_error;
use super::functions::{MALFORMED, UNDECIDED};
use super::page::{self, PagePart, PageStrategy};
use super::pool::SqliteSession;
use super::read::Inner;
use super::types::Affinity;
use super::values::cell;
use super::watchdog::Watchdog;
use crate::compile::PlanParts;
use crate::compile::{Bind, Shape, Statement, Tables, compile, compile_rows};
use crate::plan_columns::{first_operand_column, undecided};
use crate::values;

/// Reads the counter of schema changes of the file.
const SCHEMA_VERSION: &str = "PRAGMA schema_version";

/// Maximum number of rows read and sorted without a probe, which would take longer.
const MAX_UNPROBED_ROWS: u32 = 128;

/// The context of an attempt, apart from its session.
pub(super) struct ReadAttempt<'a> {
    pub(super) inner: &'a Inner,
    pub(super) watchdog: &'a Watchdog,
    /// Whether it may block; if not, it fails instead.
    pub(super) may_wait: bool,
}

impl ReadAttempt<'_> {
    /// Sends all rows of a plan.
    pub(super) fn attempt(
        &self,
        session: &SqliteSession,
        known: Option<Arc<Shape<Affinity>>>,
        plan: PlanParts<'_>,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let (target, read) = (plan.target, plan.read);
        let is_analysis = matches!(read, Read::Groups(_)) || !plan.joins.is_empty();
        let planned = session.plan_by_values(is_analysis);
        planned.map_err(|error| self.failed("reading", read, &error))?;
        // An unfinished statement holds the snapshot: the schema has this version for all reads
        // until it is dropped.
        let mut schema_version = self.prepare(session, SCHEMA_VERSION, read)?;
        let mut snapshot_guard = schema_version.raw_query();
        let row = snapshot_guard.next();
        let failed = |error| self.failed("reading", read, &error);
        let row = row.map_err(failed)?.ok_or_else(values::unexpected_answer)?;
        let version = Some(row.get::<_, i64>(0).map_err(failed)?);
        let known = known.filter(|shape| shape.version == version);
        let shape = match known {
            Some(shape) => shape,
            None => self
                .inner
                .shapes
                .put(target, self.inner.shape(session, target, version)?),
        };
        let tables = &self.tables(session, shape, plan, version)?;
        let columns = page::columns_to_probe(tables, read);
        let marks = sender.on_malformed() == OnMalformed::Mark;
        let unprobed = || {
            SqliteDialect::default()
                .wide(session.is_wide())
                .marking(marks)
        };
        let strategy = page::strategy(&unprobed(), tables, read, |_| true);
        if columns.is_empty() && !matches!(strategy, PageStrategy::Counted(_)) {
            return self.send_page(session, unprobed(), tables, plan, strategy, sender);
        }
        let failed = |error| self.failed("reading the table's indexes", read, &error);
        let indexes = session.indexes(&target.table, version).map_err(failed)?;
        if let Some(equality) = indexes.indexed_equality(page::predicate(read))
            && self.matches_few_rows(session, tables, read, equality)?
        {
            let strategy = page::strategy(&unprobed(), tables, read, |_| false);
            return self.send_page(session, unprobed(), tables, plan, strategy, sender);
        }
        let mut probes = page::probes(&indexes, &columns, read);
        let mut domain_probe = probe::domain_probe(tables, &probes, page::predicate(read))?;
        if session
            .connection
            .prepare_cached(&domain_probe.text)
            .is_err()
        {
            // SQLite refuses a partial index whose condition is not the one its pattern suggests.
            for it in &mut probes {
                it.nonconforming = None;
            }
            domain_probe = probe::domain_probe(tables, &probes, page::predicate(read))?;
        }
        let mut prepared = self.prepare(session, &domain_probe.text, read)?;
        self.bind(&mut prepared, &domain_probe.binds, read)?;
        // An unfinished statement holds the snapshot: the domains hold for all reads until it is
        // dropped.
        let mut snapshot_guard = prepared.raw_query();
        let row = snapshot_guard.next();
        let row = row.map_err(|error| self.failed("reading", read, &error))?;
        let is_false = |place: usize| {
            row.is_some_and(|row| matches!(row.get_ref(place), Ok(ValueRef::Integer(0))))
        };
        let dialect = SqliteDialect::with_domains(domain_probe.domains(is_false))
            .wide(session.is_wide())
            .marking(marks);
        let is_reached = |plan: &Rows| {
            let first = plan.order.first();
            let name = first.and_then(|it| it.column.own_name());
            name.is_some_and(|name| indexes.leading_equalities(name, &plan.predicate).is_some())
        };
        let strategy = page::strategy(&dialect, tables, read, is_reached);
        self.send_page(session, dialect, tables, plan, strategy, sender)
    }

    fn send_page(
        &self,
        session: &SqliteSession,
        mut dialect: SqliteDialect,
        tables: &Tables<Affinity>,
        plan: PlanParts<'_>,
        strategy: PageStrategy,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let (read, joins) = (plan.read, plan.joins);
        self.probe_cursor(session, &mut dialect, tables, plan)?;
        let dialect = &dialect;
        let parts = match strategy {
            PageStrategy::Direct => {
                let statement = compile(dialect, tables, plan)?;
                return self.send(session, &statement, read, sender);
            }
            PageStrategy::Nulls(rows) => vec![PagePart::all(rows)],
            PageStrategy::Counted(counted) => {
                let (count, last) = self.count(session, dialect, tables, plan, &counted.values)?;
                counted.parts(count, last)
            }
        };
        for PagePart { rows, bound } in parts {
            let statement = compile_rows(dialect, tables, &rows, joins, &bound)?;
            self.send(session, &statement, read, sender)?;
        }
        Ok(())
    }

    /// The tables of a plan, including those that relations lead to.
    fn tables(
        &self,
        session: &SqliteSession,
        target: Arc<Shape<Affinity>>,
        plan: PlanParts<'_>,
        version: Option<i64>,
    ) -> Result<Tables<Affinity>, StoreError> {
        let mut tables = Tables::new(target);
        for join in plan.joined_tables() {
            let joined = plan.target_of(join);
            let known = self.inner.shapes.get(&joined);
            let known = known.filter(|shape| shape.version == version);
            let shape = if let Some(shape) = known {
                shape
            } else {
                let shape = self.inner.shape(session, &joined, version)?;
                self.inner.shapes.put(&joined, shape)
            };
            tables.join(plan, join, shape);
        }
        Ok(tables)
    }

    /// Reads the raw values of the cursor's row, for texts that may stand for bytes: an index sorts
    /// bytes elsewhere.
    fn probe_cursor(
        &self,
        session: &SqliteSession,
        dialect: &mut SqliteDialect,
        tables: &Tables<Affinity>,
        plan: PlanParts<'_>,
    ) -> Result<(), StoreError> {
        let read = plan.read;
        let ambiguous = probe::ambiguous_cursor_values(dialect, tables, read);
        let Read::Rows(rows) = read else {
            return Ok(());
        };
        if ambiguous.is_empty() {
            return Ok(());
        }
        let statement = probe::cursor_probe(dialect, tables, rows, plan.joins, &ambiguous)?;
        let mut prepared = self.prepare(session, &statement.text, read)?;
        self.bind(&mut prepared, &statement.binds, read)?;
        let mut rows = prepared.raw_query();
        let row = rows.next();
        let Some(row) = row.map_err(|error| self.failed("reading", read, &error))? else {
            return Ok(());
        };
        for (place, (column, text)) in ambiguous.into_iter().enumerate() {
            let stored = match row.get_ref(place) {
                Ok(ValueRef::Blob(bytes)) => NonTextValue::Bytes(bytes.to_vec()),
                Ok(ValueRef::Text(bytes)) if std::str::from_utf8(bytes).is_err() => {
                    NonTextValue::Text(bytes.to_vec())
                }
                _ => continue,
            };
            dialect.set_cursor_value(column, text, stored);
        }
        Ok(())
    }

    /// Whether so few rows satisfy a predicate that reading them all is cheapest.
    fn matches_few_rows(
        &self,
        session: &SqliteSession,
        tables: &Tables<Affinity>,
        read: &Read,
        predicate: &Predicate,
    ) -> Result<bool, StoreError> {
        let statement = probe::count(
            tables,
            predicate,
            page::predicate(read),
            MAX_UNPROBED_ROWS + 1,
        )?;
        let mut prepared = self.prepare(session, &statement.text, read)?;
        self.bind(&mut prepared, &statement.binds, read)?;
        let mut rows = prepared.raw_query();
        let counted = rows.next();
        let failed = |error| self.failed("reading", read, &error);
        let counted = counted.map_err(failed)?;
        let counted = counted.ok_or_else(values::unexpected_answer)?;
        Ok(counted.get::<_, u32>(0).map_err(failed)? <= MAX_UNPROBED_ROWS)
    }

    /// Counts the rows of a page, up to its limit, and finds the last time it can hold.
    fn count(
        &self,
        session: &SqliteSession,
        dialect: &SqliteDialect,
        tables: &Tables<Affinity>,
        plan: PlanParts<'_>,
        page: &Rows,
    ) -> Result<(u32, Value), StoreError> {
        let read = plan.read;
        let Some(statement) = probe::page_edge_probe(dialect, tables, page, plan.joins)? else {
            return Ok((0, Value::Null));
        };
        let failed = |error| self.failed("reading", read, &error);
        let mut prepared = self.prepare(session, &statement.text, read)?;
        self.bind(&mut prepared, &statement.binds, read)?;
        let mut rows = prepared.raw_query();
        let Some(row) = rows.next().map_err(failed)? else {
            return Ok((0, Value::Null));
        };
        let cells = cells(row, 2);
        let values = values::row(&statement.outputs, cells, OnMalformed::Fail)?;
        let Ok([Value::Integer(count), last]) = <[Value; 2]>::try_from(values) else {
            return Err(values::unexpected_answer());
        };
        let count = u32::try_from(count).map_err(|_| values::unexpected_answer())?;
        Ok((count, last))
    }

    fn prepare<'c>(
        &self,
        session: &'c SqliteSession,
        text: &str,
        read: &Read,
    ) -> Result<CachedStatement<'c>, StoreError> {
        let prepared = session.connection.prepare_cached(text);
        prepared.map_err(|error| self.failed("reading", read, &error))
    }

    fn bind(
        &self,
        prepared: &mut CachedStatement<'_>,
        binds: &[Bind],
        read: &Read,
    ) -> Result<(), StoreError> {
        for (index, bind) in binds.iter().enumerate() {
            let bound = prepared.raw_bind_parameter(index + 1, bind);
            bound.map_err(|error| self.failed("reading", read, &error))?;
        }
        Ok(())
    }

    /// Sends the rows of one statement.
    fn send(
        &self,
        session: &SqliteSession,
        statement: &Statement<'_>,
        read: &Read,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let failed = |error| self.failed("reading", read, &error);
        let mut prepared = self.prepare(session, &statement.text, read)?;
        self.bind(&mut prepared, &statement.binds, read)?;
        let width = prepared.column_count();
        let mut rows = prepared.raw_query();
        while let Some(row) = rows.next().map_err(failed)? {
            let cells = cells(row, width);
            let row = values::row(&statement.outputs, cells, sender.on_malformed())?;
            if sender.push(row) {
                self.flush(sender)?;
            }
        }
        Ok(())
    }

    /// Waits for room in the answer's queue, at most until the read must end.
    fn flush(&self, sender: &mut RowSender) -> Result<(), StoreError> {
        if !self.may_wait {
            return Err(StoreError::Cancelled);
        }
        let sent = Handle::current().block_on(async {
            tokio::select! {
                sent = sender.flush() => Ok(sent),
                reason = self.watchdog.wait() => Err(reason),
            }
        })?;
        if sent {
            Ok(())
        } else {
            Err(StoreError::Cancelled)
        }
    }

    /// Maps an error of SQLite's.
    pub(super) fn failed(
        &self,
        doing: &'static str,
        read: &Read,
        error: &rusqlite::Error,
    ) -> StoreError {
        if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
            return self.watchdog.reason();
        }
        if let rusqlite::Error::SqliteFailure(_, Some(said)) = error
            && said == UNDECIDED
            && let Some(undecided) = undecided(read)
        {
            return undecided;
        }
        if let rusqlite::Error::SqliteFailure(_, Some(said)) = error
            && let Some(word) = said.strip_prefix(MALFORMED)
            && let Some(datatype) = Datatype::from_word(word)
            && let Some(column) = first_operand_column(read, datatype)
        {
            return values::malformed(column, column.datatype);
        }
        store_error(doing, self.inner.options.limits.statement, error)
    }
}

/// The first `width` values of a row, or all if it has fewer.
fn cells<'r>(row: &'r rusqlite::Row<'_>, width: usize) -> impl Iterator<Item = values::Cell<'r>> {
    (0..width).map_while(|index| row.get_ref(index).ok().map(cell))
}
