//! Writes to SQLite: one writer at a time, on a blocking thread.

mod authorizer;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};
use wayleave_plan::plan::{AuthorizedPlan, Column, Target};
use wayleave_plan::value::Value;
use wayleave_plan::write::{AuthorizedWrite, StoreRule, TableRules};
use wayleave_store::{
    Detail, OnMalformed, Row, StoreError, WriteContext, WriteError, WriteOutcome, Writer,
    check_suspended_write,
};

use self::authorizer::prepare;
use super::catalogue::{COLUMNS_OF_TABLE, CatalogueColumn};
use super::connect::STEPS_PER_CHECK;
use super::dialect::SqliteDialect;
use super::dsn::SqliteFile;
use super::error::{ended, store_error};
use super::pool::FileIdentity;
use super::rules::table_rules;
use super::types::Affinity;
use super::values::cell;
use crate::compile::PlanParts;
use crate::compile::sql::Placeholder;
use crate::compile::{Bind, Shape, Sql, Tables, compile};
use crate::read_task::{StoreOptions, no_table};
use crate::values::{self, scalar, unexpected_answer};
use crate::write::statements::{WriteDialect, assigned_text};
use crate::write::{CommitFault, StatementOutcome, WriteFault, WriteSession, steps};

/// The activity of a write whose turn has not come.
const WAITING: &str = "waiting for other writes";

impl WriteDialect for SqliteDialect {
    fn assigned(&self, _: &Column, affinity: &Affinity, value: &Value) -> Sql {
        let text = |value: &Value| Bind::Text(assigned_text(value));
        Sql::bind(match value {
            Value::Json(json) => Bind::Text(json.to_string()),
            Value::List(_) => Bind::Text(value.to_json().to_string()),
            Value::Integer(integer) => match i64::try_from(*integer) {
                Ok(integer) => Bind::Integer(integer),
                Err(_) => text(value),
            },
            Value::Number(number) => Bind::Real(*number),
            // The number 1 in a column of texts would be the text `1`, which is no boolean.
            Value::Boolean(_) if affinity.is_text() => text(value),
            Value::Boolean(flag) => Bind::Integer(i64::from(*flag)),
            // A column of whole numbers counts seconds.
            Value::Datetime(micros) if *affinity == Affinity::Integer => {
                Bind::Integer(micros.div_euclid(1_000_000))
            }
            value => text(value),
        })
    }

    fn returned(&self, name: Sql) -> Option<Sql> {
        Some(name)
    }
}

/// A SQLite file that takes writes.
pub(crate) struct SqliteWriter {
    file: SqliteFile,
    options: StoreOptions,
    /// The one session, because a file has one writer at a time.
    session: Arc<Mutex<Option<SqliteWriteSession>>>,
}

impl SqliteWriter {
    pub(crate) fn new(file: SqliteFile, options: StoreOptions) -> Self {
        Self {
            file,
            options,
            session: Arc::default(),
        }
    }
}

#[async_trait]
impl Writer for SqliteWriter {
    async fn write(
        &self,
        write: &AuthorizedWrite,
        context: &WriteContext,
    ) -> Result<WriteOutcome, WriteError> {
        check_suspended_write(write)?;
        let (file, options, session) = (self.file.clone(), self.options, self.session.clone());
        let write = write.clone();
        let time = TimeLimit {
            context: context.clone(),
            limit: context.deadline.saturating_duration_since(Instant::now()),
        };
        let work = tokio::task::spawn_blocking(move || {
            let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
            perform(&mut session, &file, options, &write, &time)
        });
        match work.await {
            Ok(outcome) => outcome,
            Err(panicked) => Err(WriteError::Unknown(ended(&panicked))),
        }
    }

    async fn close(&self) {
        let session = Arc::clone(&self.session);
        let closed = tokio::task::spawn_blocking(move || {
            session
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
        });
        let _ = closed.await;
    }
}

/// When to stop a write, and the time that it was given.
struct TimeLimit {
    context: WriteContext,
    limit: Duration,
}

impl TimeLimit {
    /// Refuses to go on after the deadline, or when the caller has cancelled.
    fn check(&self, doing: &'static str) -> Result<(), StoreError> {
        if self.context.cancel.is_cancelled() {
            return Err(StoreError::Cancelled);
        }
        if self.is_over() {
            let limit = self.limit;
            return Err(StoreError::Timeout { doing, limit });
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.context.deadline
    }
}

/// Writes on a thread that may block; waits for other writers until the deadline.
fn perform(
    kept: &mut Option<SqliteWriteSession>,
    file: &SqliteFile,
    options: StoreOptions,
    write: &AuthorizedWrite,
    time: &TimeLimit,
) -> Result<WriteOutcome, WriteError> {
    loop {
        // The writes before it may have taken all its time.
        time.check(WAITING)?;
        let identity = FileIdentity::read(file);
        let idle = kept.take().filter(|it| it.identity == identity);
        let mut session = match idle {
            Some(session) => session,
            None => SqliteWriteSession::open(file, options)?,
        };
        session.watch(&time.context)?;
        let outcome = attempt(&mut session, write, time);
        session.unwatch();
        let rules = match &outcome {
            Err(CommitFault::RolledBack(WriteFault::Rule(_))) => {
                session.table_rules(write.target())
            }
            _ => Ok(Arc::default()),
        };
        let is_usable = session.connection.is_autocommit();
        *kept = Some(session).filter(|_| is_usable);
        let fault = match outcome {
            Ok(outcome) => return Ok(outcome),
            Err(CommitFault::Unknown(error)) => return Err(WriteError::Unknown(error)),
            Err(CommitFault::RolledBack(fault)) => fault,
        };
        return Err(match fault {
            WriteFault::Refused(refusal) => refusal.into(),
            WriteFault::Rule(rule) => match rules {
                Ok(rules) => write.refused_by(rule, &rules).into(),
                Err(error) => error.into(),
            },
            // A table that a trigger names is missing.
            WriteFault::NoIdempotencyTable if write.idempotency().is_none() => write
                .refused_by(StoreRule::Check, &TableRules::default())
                .into(),
            WriteFault::NoIdempotencyTable => AuthorizedWrite::no_idempotency_table().into(),
            WriteFault::Conflict | WriteFault::Store(StoreError::Locked { .. })
                if !time.is_over() =>
            {
                continue;
            }
            WriteFault::Conflict => AuthorizedWrite::serialization_conflict().into(),
            // An interrupted statement does not say why it was.
            WriteFault::Store(error @ StoreError::Timeout { doing, .. }) => {
                time.check(doing).err().unwrap_or(error).into()
            }
            WriteFault::Store(error) => error.into(),
        });
    }
}

fn attempt(
    session: &mut SqliteWriteSession,
    write: &AuthorizedWrite,
    time: &TimeLimit,
) -> Result<WriteOutcome, CommitFault> {
    let commits = |outcome: &WriteOutcome| !write.is_dry_run() && !outcome.replayed;
    // The futures of this session never wait: each is ready when first polled.
    futures::executor::block_on(async {
        let done = async {
            session.begin().await?;
            // The transaction of another program may have taken all the time.
            time.check(WAITING)?;
            let outcome = steps(session, write).await?;
            if commits(&outcome) {
                time.check("writing")?;
            }
            Ok::<_, WriteFault>(outcome)
        };
        match done.await {
            Ok(outcome) if commits(&outcome) => session.commit().await.map(|()| outcome),
            done => {
                let ended = session.rollback().await;
                let done = done.map_err(CommitFault::RolledBack)?;
                ended.map_err(|error| CommitFault::RolledBack(error.into()))?;
                Ok(done)
            }
        }
    })
}

/// A session that may write.
struct SqliteWriteSession {
    connection: Connection,
    identity: Option<FileIdentity>,
    is_wide: bool,
    limit: Duration,
    /// Shapes and rules of tables at one version of the schema.
    shapes: HashMap<String, Arc<Shape<Affinity>>>,
    rules: HashMap<String, Arc<TableRules>>,
    version: Option<i64>,
}

impl SqliteWriteSession {
    /// Opens an existing file; never creates one.
    fn open(file: &SqliteFile, options: StoreOptions) -> Result<Self, StoreError> {
        let limit = options.limits.statement;
        if file.immutable {
            return Err(StoreError::Unsupported {
                what: "writes to a file opened with `immutable=1`",
            });
        }
        let identity = FileIdentity::read(file);
        if identity.is_none() {
            return Err(StoreError::Missing {
                detail: Detail::from_static("there is no such file"),
            });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| store_error("opening the file", limit, &error);
        let mut connection = Connection::open_with_flags(&file.path, flags).map_err(failed)?;
        let is_wide = prepare(&mut connection).map_err(failed)?;
        Ok(Self {
            connection,
            identity,
            is_wide,
            limit,
            shapes: HashMap::new(),
            rules: HashMap::new(),
            version: None,
        })
    }

    /// Interrupts statements after the deadline, or when the caller has cancelled.
    fn watch(&mut self, context: &WriteContext) -> Result<(), StoreError> {
        let context = context.clone();
        let stop = move || context.cancel.is_cancelled() || Instant::now() >= context.deadline;
        let watched = self
            .connection
            .progress_handler(STEPS_PER_CHECK, Some(stop));
        watched.map_err(|error| store_error("writing", self.limit, &error))
    }

    fn unwatch(&mut self) {
        let _ = self.connection.progress_handler(0, None::<fn() -> bool>);
    }

    fn control(&self, statement: &'static str) -> Result<(), rusqlite::Error> {
        let mut prepared = self.connection.prepare_cached(statement)?;
        prepared.raw_execute().map(drop)
    }

    /// Drops the shapes and rules of another schema version. Called in the transaction.
    fn follow_schema(&mut self) -> Result<(), StoreError> {
        let version = self
            .connection
            .prepare_cached("PRAGMA schema_version")
            .and_then(|mut it| it.query_row([], |row| row.get(0)));
        let version = version.map_err(|error| store_error("writing", self.limit, &error))?;
        if self.version != Some(version) {
            self.shapes.clear();
            self.rules.clear();
            self.version = Some(version);
        }
        Ok(())
    }

    fn shape(&mut self, target: &Target) -> Result<Arc<Shape<Affinity>>, StoreError> {
        if let Some(shape) = self.shapes.get(&target.table) {
            return Ok(Arc::clone(shape));
        }
        let failed = |error| store_error("reading the table's columns", self.limit, &error);
        let columns = {
            let statement = self.connection.prepare_cached(COLUMNS_OF_TABLE);
            let mut statement = statement.map_err(failed)?;
            let columns = statement.query_map([&target.table], CatalogueColumn::from_row);
            let columns = columns.and_then(Iterator::collect::<Result<Vec<_>, _>>);
            columns.map_err(failed)?
        };
        if columns.is_empty() {
            return Err(no_table(target));
        }
        let shape = Arc::new(Shape {
            schema: None,
            table: target.table.clone(),
            version: self.version,
            columns: columns.into_iter().map(CatalogueColumn::native).collect(),
            unique: std::sync::OnceLock::new(),
        });
        let kept = Arc::clone(&shape);
        self.shapes.insert(target.table.clone(), kept);
        Ok(shape)
    }

    fn table_rules(&mut self, target: &Target) -> Result<Arc<TableRules>, StoreError> {
        if let Some(rules) = self.rules.get(&target.table) {
            return Ok(Arc::clone(rules));
        }
        let rules = table_rules(&self.connection, &target.table);
        let failed = |error| store_error("reading the table's keys", self.limit, &error);
        let rules = Arc::new(rules.map_err(failed)?);
        self.rules.insert(target.table.clone(), Arc::clone(&rules));
        Ok(rules)
    }

    fn fault(&self, error: &rusqlite::Error) -> WriteFault {
        use rusqlite::ffi;
        let rule = match error.sqlite_error() {
            None => None,
            Some(code) => match code.extended_code {
                ffi::SQLITE_CONSTRAINT_UNIQUE
                | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
                | ffi::SQLITE_CONSTRAINT_ROWID => Some(StoreRule::Unique),
                ffi::SQLITE_CONSTRAINT_FOREIGNKEY => Some(StoreRule::Reference),
                ffi::SQLITE_CONSTRAINT_NOTNULL => Some(StoreRule::Required),
                ffi::SQLITE_CONSTRAINT_DATATYPE => Some(StoreRule::Value),
                _ => match code.code {
                    ErrorCode::ConstraintViolation => Some(StoreRule::Check),
                    ErrorCode::TypeMismatch | ErrorCode::TooBig => Some(StoreRule::Value),
                    _ => None,
                },
            },
        };
        match rule {
            Some(rule) => WriteFault::Rule(rule),
            None if error
                .to_string()
                .contains(&format!("no such table: {}", crate::write::keys::TABLE)) =>
            {
                WriteFault::NoIdempotencyTable
            }
            None => store_error("writing", self.limit, error).into(),
        }
    }
}

impl WriteSession for SqliteWriteSession {
    type Dialect = SqliteDialect;

    fn dialect(&self) -> SqliteDialect {
        SqliteDialect::default().wide(self.is_wide).marking(true)
    }

    async fn tables(&mut self, target: &Target) -> Result<Tables<Affinity>, StoreError> {
        Ok(Tables::new(self.shape(target)?))
    }

    async fn rules(&mut self, target: &Target) -> Result<Arc<TableRules>, StoreError> {
        self.table_rules(target)
    }

    async fn begin(&mut self) -> Result<(), StoreError> {
        self.control("BEGIN IMMEDIATE")
            .map_err(|error| store_error("beginning a transaction", self.limit, &error))?;
        self.follow_schema()
    }

    async fn rows(&mut self, plan: &AuthorizedPlan) -> Result<Vec<Row>, WriteFault> {
        let parts = PlanParts::from(plan);
        let tables = Tables::new(self.shape(parts.target)?);
        let statement = compile(&self.dialect(), &tables, parts)?;
        let failed = |error| self.fault(&error);
        let prepared = self.connection.prepare_cached(&statement.text);
        let mut prepared = prepared.map_err(failed)?;
        let width = prepared.column_count();
        let binds = params_from_iter(&statement.binds);
        let mut rows = prepared.query(binds).map_err(failed)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let mut cells = Vec::with_capacity(width);
            for place in 0..width {
                cells.push(cell(row.get_ref(place).map_err(failed)?));
            }
            let cells = cells.into_iter();
            found.push(values::row(&statement.outputs, cells, OnMalformed::Mark)?);
        }
        Ok(found)
    }

    async fn run(
        &mut self,
        statement: Sql,
        returned: &[Column],
    ) -> Result<StatementOutcome, WriteFault> {
        let failed = |error| self.fault(&error);
        let (text, binds) = statement.render(Placeholder::NumberedQuestion);
        let prepared = self.connection.prepare_cached(&text);
        let mut prepared = prepared.map_err(failed)?;
        let mut ran = StatementOutcome::default();
        let mut rows = prepared.query(params_from_iter(&binds)).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            ran.returned.clear();
            for (place, column) in returned.iter().enumerate() {
                let reported = cell(row.get_ref(place).map_err(failed)?);
                let value = scalar(column.datatype, reported);
                ran.returned.push(value.ok_or_else(unexpected_answer)?);
            }
        }
        drop(rows);
        drop(prepared);
        ran.affected = self.connection.changes();
        Ok(ran)
    }

    async fn texts(
        &mut self,
        statement: Sql,
        columns: usize,
    ) -> Result<Option<Vec<String>>, WriteFault> {
        let failed = |error| self.fault(&error);
        let (text, binds) = statement.render(Placeholder::NumberedQuestion);
        let mut prepared = self.connection.prepare_cached(&text).map_err(failed)?;
        let mut rows = prepared.query(params_from_iter(&binds)).map_err(failed)?;
        let Some(row) = rows.next().map_err(failed)? else {
            return Ok(None);
        };
        let texts = (0..columns).map(|place| row.get(place));
        Ok(Some(texts.collect::<Result<_, _>>().map_err(failed)?))
    }

    async fn commit(&mut self) -> Result<(), CommitFault> {
        self.control("COMMIT").map_err(|error| {
            let fault = self.fault(&error);
            // A commit fails while another program reads, and leaves the transaction open.
            let _ = self.control("ROLLBACK");
            CommitFault::RolledBack(fault)
        })
    }

    async fn rollback(&mut self) -> Result<(), StoreError> {
        if self.connection.is_autocommit() {
            // SQLite has rolled back by itself.
            return Ok(());
        }
        self.control("ROLLBACK")
            .map_err(|error| store_error("rolling back", self.limit, &error))
    }
}
