//! One read of a SQLite file under way: what is asked first, what is read, and what a failure means.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, ErrorCode};
use tokio::runtime::Handle;
use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Predicate, Read, Rows, Target};
use wayleave_plan::value::Value;
use wayleave_store::{OnMalformed, RowSender, StoreError};

use super::error::store_error;
use super::functions::{UNDECIDED, UNFIT};
use super::page::{self, Part, Way};
use super::pool::Kept;
use super::read::Inner;
use super::values::cell;
use super::watchdog::Watchdog;
use crate::compile::sqlite::bytes::Odd;
use crate::compile::sqlite::{Affinity, Sqlite, probe};
use crate::compile::{Bind, Shape, Statement, compile, compile_rows};
use crate::named::{column_of, undecided};
use crate::values;

/// Counts the changes of the file's schema.
const SCHEMA_VERSION: &str = "PRAGMA schema_version";

/// So many rows are read and sorted sooner than anything is asked about an index.
const FEW: u32 = 128;

/// One read under way.
pub(super) struct Work<'a> {
    pub(super) inner: &'a Inner,
    pub(super) watchdog: &'a Watchdog,
    /// Else it fails where it would have to wait.
    pub(super) may_wait: bool,
}

impl Work<'_> {
    /// Sends all that a plan reads.
    pub(super) fn attempt(
        &self,
        kept: &Kept,
        known: Option<Arc<Shape<Affinity>>>,
        target: &Target,
        read: &Read,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        // A statement that has not ended holds the moment: the schema is this version for all that
        // is read until then.
        let mut asked = self.prepare(kept, SCHEMA_VERSION, read)?;
        let mut moment = asked.raw_query();
        let told = moment.next();
        let told = told.map_err(|error| self.failed("reading", read, &error))?;
        let version = told.and_then(|row| row.get::<_, i64>(0).ok());
        let known = known.filter(|shape| shape.version == version);
        let shape = match known {
            Some(shape) => shape,
            None => self
                .inner
                .shapes
                .put(target, self.inner.shape(kept, target, version)?),
        };
        let columns = page::curious(&shape, read);
        let marks = sender.on_malformed() == OnMalformed::Mark;
        let blind = || Sqlite::default().wide(kept.is_wide()).marking(marks);
        let way = page::way(&blind(), &shape, read, |_| true);
        if columns.is_empty() && !matches!(way, Way::Counted(_)) {
            return self.send_way(kept, blind(), &shape, read, way, sender);
        }
        let failed = |error| self.failed("reading the table's indexes", read, &error);
        let indexes = kept.indexes(&target.table, version).map_err(failed)?;
        if let Some(narrowed) = indexes.narrowed(page::predicate(read))
            && self.is_of_few(kept, &shape, read, narrowed)?
        {
            let way = page::way(&blind(), &shape, read, |_| false);
            return self.send_way(kept, blind(), &shape, read, way, sender);
        }
        let mut asked = page::asked(&indexes, &columns, read);
        let mut facts = probe::facts(&shape, &asked, page::predicate(read))?;
        if kept.connection.prepare_cached(&facts.text).is_err() {
            // An index of odd values may be of others than its pattern says, which SQLite knows.
            for it in &mut asked {
                it.odd = None;
            }
            facts = probe::facts(&shape, &asked, page::predicate(read))?;
        }
        let mut prepared = self.prepare(kept, &facts.text, read)?;
        self.bind(&mut prepared, &facts.binds, read)?;
        // A statement that has not ended holds the moment: what it tells is true of all that is
        // read until then.
        let mut moment = prepared.raw_query();
        let told = moment.next();
        let told = told.map_err(|error| self.failed("reading", read, &error))?;
        let is_false = |place: usize| {
            told.is_some_and(|row| matches!(row.get_ref(place), Ok(ValueRef::Integer(0))))
        };
        let dialect = Sqlite::knowing(facts.held(is_false))
            .wide(kept.is_wide())
            .marking(marks);
        let is_reached = |plan: &Rows| {
            let first = plan.order.first();
            first.is_some_and(|it| indexes.reach(&it.column.name, &plan.predicate).is_some())
        };
        let way = page::way(&dialect, &shape, read, is_reached);
        self.send_way(kept, dialect, &shape, read, way, sender)
    }

    fn send_way(
        &self,
        kept: &Kept,
        mut dialect: Sqlite,
        shape: &Shape<Affinity>,
        read: &Read,
        way: Way,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        self.stand(kept, &mut dialect, shape, read)?;
        let dialect = &dialect;
        let parts = match way {
            Way::Plainly => {
                let statement = compile(dialect, shape, read)?;
                return self.send(kept, &statement, read, sender);
            }
            Way::Nulls(rows) => vec![Part::all(rows)],
            Way::Counted(counted) => {
                let (count, last) = self.count(kept, dialect, shape, read, &counted.values)?;
                counted.parts(count, last)
            }
        };
        for Part { rows, bound } in parts {
            let statement = compile_rows(dialect, shape, &rows, &bound)?;
            self.send(kept, &statement, read, sender)?;
        }
        Ok(())
    }

    /// Looks where a page begins, if bytes may be there that are only shown as text: an index has
    /// them elsewhere.
    fn stand(
        &self,
        kept: &Kept,
        dialect: &mut Sqlite,
        shape: &Shape<Affinity>,
        read: &Read,
    ) -> Result<(), StoreError> {
        let doubtful = probe::doubtful(dialect, shape, read);
        let Read::Rows(plan) = read else {
            return Ok(());
        };
        if doubtful.is_empty() {
            return Ok(());
        }
        let statement = probe::standing(dialect, shape, plan, &doubtful)?;
        let mut prepared = self.prepare(kept, &statement.text, read)?;
        self.bind(&mut prepared, &statement.binds, read)?;
        let mut rows = prepared.raw_query();
        let row = rows.next();
        let Some(row) = row.map_err(|error| self.failed("reading", read, &error))? else {
            return Ok(());
        };
        for (place, (column, text)) in doubtful.into_iter().enumerate() {
            let odd = match row.get_ref(place) {
                Ok(ValueRef::Blob(bytes)) => Odd::Bytes(bytes.to_vec()),
                Ok(ValueRef::Text(bytes)) if std::str::from_utf8(bytes).is_err() => {
                    Odd::Text(bytes.to_vec())
                }
                _ => continue,
            };
            dialect.standing_at(column, text, odd);
        }
        Ok(())
    }

    /// Whether a predicate is true of so few rows that reading them all is the shortest way.
    fn is_of_few(
        &self,
        kept: &Kept,
        shape: &Shape<Affinity>,
        read: &Read,
        predicate: &Predicate,
    ) -> Result<bool, StoreError> {
        let statement = probe::count(shape, predicate, page::predicate(read), FEW + 1)?;
        let mut prepared = self.prepare(kept, &statement.text, read)?;
        self.bind(&mut prepared, &statement.binds, read)?;
        let mut rows = prepared.raw_query();
        let counted = rows.next();
        let counted = counted.map_err(|error| self.failed("reading", read, &error))?;
        let count = counted.and_then(|row| row.get::<_, u32>(0).ok());
        Ok(count.is_some_and(|count| count <= FEW))
    }

    /// How many rows a page has, up to its limit, and the last time it can hold.
    fn count(
        &self,
        kept: &Kept,
        dialect: &Sqlite,
        shape: &Shape<Affinity>,
        read: &Read,
        page: &Rows,
    ) -> Result<(u32, Value), StoreError> {
        let Some(statement) = probe::edge(dialect, shape, page)? else {
            return Ok((0, Value::Null));
        };
        let failed = |error| self.failed("reading", read, &error);
        let mut prepared = self.prepare(kept, &statement.text, read)?;
        self.bind(&mut prepared, &statement.binds, read)?;
        let mut rows = prepared.raw_query();
        let Some(row) = rows.next().map_err(failed)? else {
            return Ok((0, Value::Null));
        };
        let cells = (0..2).map(|index| row.get_ref(index).map_or(values::Cell::Null, cell));
        let mut told = values::row(&statement.outputs, cells, OnMalformed::Fail)?.into_iter();
        let count = match told.next() {
            Some(Value::Integer(count)) => u32::try_from(count).unwrap_or(0),
            _ => 0,
        };
        Ok((count, told.next().unwrap_or(Value::Null)))
    }

    fn prepare<'c>(
        &self,
        kept: &'c Kept,
        text: &str,
        read: &Read,
    ) -> Result<CachedStatement<'c>, StoreError> {
        let prepared = kept.connection.prepare_cached(text);
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
        kept: &Kept,
        statement: &Statement<'_>,
        read: &Read,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let failed = |error| self.failed("reading", read, &error);
        let mut prepared = self.prepare(kept, &statement.text, read)?;
        self.bind(&mut prepared, &statement.binds, read)?;
        let width = prepared.column_count();
        let mut rows = prepared.raw_query();
        while let Some(row) = rows.next().map_err(failed)? {
            let cells = (0..width).map(|index| row.get_ref(index).map_or(values::Cell::Null, cell));
            if sender.push(values::row(
                &statement.outputs,
                cells,
                sender.on_malformed(),
            )?) {
                self.flush(sender)?;
            }
        }
        Ok(())
    }

    /// Waits for room, as long as the read may.
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

    /// What a failure of SQLite's means.
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
        {
            return undecided(read);
        }
        if let rusqlite::Error::SqliteFailure(_, Some(said)) = error
            && let Some(word) = said.strip_prefix(UNFIT)
            && let Some(datatype) = Datatype::from_word(word)
            && let Some(column) = column_of(read, datatype)
        {
            return values::unfit(column, column.datatype);
        }
        store_error(doing, self.inner.options.limits.statement, error)
    }
}
