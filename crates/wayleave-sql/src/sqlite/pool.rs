//! Pooled sessions for reading, hardened further than those for introspection.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use wayleave_store::{Limits, OnMalformed, StoreError};

use super::connect::SqliteCatalogueSession;
use super::dialect::BY_CODE_POINT;
use super::dialect::functions::ALL;
use super::dsn::SqliteFile;
use super::error::store_error;
use super::functions;
use super::indexes::Indexes;

/// Maximum number of prepared statements in a session.
const MAX_STATEMENTS: usize = 64;
/// Maximum time that a session waits for a writer to release the lock; the deadline is not checked
/// meanwhile.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// Built-in functions that compiled statements call.
const ALLOWED_FUNCTIONS: [&str; 13] = [
    "avg",
    "char",
    "coalesce",
    "count",
    "glob",
    "instr",
    "max",
    "min",
    "nullif",
    "octet_length",
    "row_number",
    "sum",
    "typeof",
];
/// Pragmas that describe a table. None takes a value that would change something.
const ALLOWED_PRAGMAS: [&str; 3] = ["table_xinfo", "index_list", "index_xinfo"];
/// Functions that no view may call either.
const FORBIDDEN_FUNCTIONS: [&str; 3] = [
    "load_extension",
    "fts3_tokenizer",
    "sqlite_compileoption_get",
];

/// The indexes of a table, and the version of the schema that had them.
type VersionedIndexes = (Option<i64>, Arc<Indexes>);

/// A read-only session, with the identity of its file.
pub(super) struct SqliteSession {
    pub(super) connection: Connection,
    identity: Option<FileIdentity>,
    /// Whether its texts are UTF-16.
    wide: bool,
    /// Whether our functions return NULL for malformed values instead of failing.
    lenient: Arc<AtomicBool>,
    /// Indexes by table, each with the schema version they belong to.
    indexes: RefCell<HashMap<String, VersionedIndexes>>,
}

/// The device and inode of a file, which reveal that the file was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity(u64, u64);

impl FileIdentity {
    pub(super) fn read(file: &SqliteFile) -> Option<Self> {
        let metadata = std::fs::metadata(&file.path).ok()?;
        Some(Self(metadata.dev(), metadata.ino()))
    }
}

impl SqliteSession {
    /// Opens a session that can do nothing but select.
    pub(super) fn open(file: &SqliteFile, limits: Limits) -> Result<Self, StoreError> {
        let identity = FileIdentity::read(file);
        let mut connection =
            SqliteCatalogueSession::open(file, limits, Weak::new())?.into_connection();
        let lenient = Arc::new(AtomicBool::new(false));
        let wide = prepare(&mut connection, &lenient)
            .map_err(|error| store_error("opening a session", limits.statement, &error))?;
        Ok(Self {
            connection,
            identity,
            wide,
            lenient,
            indexes: RefCell::default(),
        })
    }

    /// Runs work with this handling of malformed values.
    pub(super) fn with_malformed<T>(&self, malformed: OnMalformed, work: impl FnOnce() -> T) -> T {
        let is_lenient = malformed == OnMalformed::Mark;
        self.lenient.store(is_lenient, Ordering::Relaxed);
        let done = work();
        self.lenient.store(false, Ordering::Relaxed);
        done
    }

    /// The indexes of a table in one schema version; read again when the version changes.
    pub(super) fn indexes(
        &self,
        table: &str,
        version: Option<i64>,
    ) -> rusqlite::Result<Arc<Indexes>> {
        if let Some((known, indexes)) = self.indexes.borrow().get(table)
            && *known == version
        {
            return Ok(Arc::clone(indexes));
        }
        let indexes = Arc::new(Indexes::read(&self.connection, table)?);
        let known = (version, Arc::clone(&indexes));
        self.indexes.borrow_mut().insert(table.to_owned(), known);
        Ok(indexes)
    }

    /// Whether the file's texts are UTF-16.
    pub(super) const fn is_wide(&self) -> bool {
        self.wide
    }

    /// Sets whether statements are planned for the values bound to them. Such a statement is
    /// prepared again at every call, which only pays for large reads.
    pub(super) fn plan_by_values(&self, is_analysis: bool) -> rusqlite::Result<()> {
        let is_stable = !is_analysis;
        self.connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, is_stable)?;
        Ok(())
    }

    /// Whether its file is still the one that the path names.
    pub(super) fn is_same_file(&self, identity: Option<FileIdentity>) -> bool {
        self.identity == identity
    }
}

/// Prepares a session for reads, and tells whether the file's texts are UTF-16.
fn prepare(connection: &mut Connection, lenient: &Arc<AtomicBool>) -> rusqlite::Result<bool> {
    connection.busy_timeout(LOCK_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(MAX_STATEMENTS);
    // A double-quoted name that is not a column is an error, not a text.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    functions::register(connection, lenient)?;
    connection.create_collation(BY_CODE_POINT, str::cmp)?;
    let encoding: String = connection.query_row("PRAGMA encoding", [], |row| row.get(0))?;
    connection.authorizer(Some(allow))?;
    Ok(encoding != "UTF-8")
}

/// Allows SELECT, reads, [`ALLOWED_PRAGMAS`], [`ALLOWED_FUNCTIONS`] and our own functions; inside a
/// view, every function but [`FORBIDDEN_FUNCTIONS`].
fn allow(asked: AuthContext<'_>) -> Authorization {
    let allowed = match asked.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => {
            ALLOWED_PRAGMAS.contains(&pragma_name)
                || (pragma_name == "schema_version" && pragma_value.is_none())
        }
        AuthAction::Function { function_name } => {
            let is = |name: &&str| name.eq_ignore_ascii_case(function_name);
            match asked.accessor {
                Some(_) => !FORBIDDEN_FUNCTIONS.iter().any(is),
                None => ALLOWED_FUNCTIONS.iter().chain(&ALL).any(is),
            }
        }
        _ => false,
    };
    if allowed {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(sql: &str) -> (tempfile::TempDir, SqliteSession) {
        let (folder, path) = wayleave_test::sqlite_file(sql).unwrap();
        let file = SqliteFile {
            path,
            immutable: false,
        };
        (
            folder,
            SqliteSession::open(&file, Limits::default()).unwrap(),
        )
    }

    #[test]
    fn a_session_selects_and_does_nothing_else() {
        let (_folder, session) = session("CREATE TABLE t (id INTEGER); CREATE INDEX i ON t (id)");
        assert!(
            session
                .connection
                .prepare("SELECT count(id) FROM t")
                .is_ok()
        );
        for sql in [
            "INSERT INTO t VALUES (1)",
            "DELETE FROM t",
            "CREATE TABLE u (id INTEGER)",
            "CREATE TEMP TABLE u (id INTEGER)",
            "DROP TABLE t",
            "ATTACH ':memory:' AS other",
            "PRAGMA query_only = 0",
            "PRAGMA journal_mode",
            "PRAGMA schema_version = 7",
            "BEGIN IMMEDIATE",
            "VACUUM INTO '/tmp/wayleave-never'",
            "REINDEX",
            "ANALYZE",
            "SELECT load_extension('x')",
            "SELECT randomblob(1000000000)",
            "SELECT \"no such column\" FROM t",
        ] {
            let outcome = session
                .connection
                .prepare(sql)
                .and_then(|mut statement| statement.raw_query().next().map(|_| ()));
            assert!(outcome.is_err(), "{sql}");
        }
    }

    #[test]
    fn a_view_may_call_what_is_harmless_and_none_of_our_functions() {
        let (_folder, session) = session(
            "CREATE VIEW fine AS SELECT upper('a') AS x; \
             CREATE VIEW evil AS SELECT wayleave_text('a') AS x;",
        );
        assert!(session.connection.prepare("SELECT x FROM fine").is_ok());
        assert!(session.connection.prepare("SELECT x FROM evil").is_err());
    }
}
