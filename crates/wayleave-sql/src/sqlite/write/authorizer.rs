//! Restricts a session that may write to our own statements: no change of the schema, no attached
//! file, no extension.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;

use super::super::dialect::BY_CODE_POINT;
use super::super::functions;

/// Maximum time of a single wait for another writer.
const LOCK_TIMEOUT: Duration = Duration::from_millis(250);
/// Maximum number of prepared statements in a session.
const MAX_STATEMENTS: usize = 64;
/// Pragmas that describe a table.
const ALLOWED_PRAGMAS: [&str; 6] = [
    "table_list",
    "table_xinfo",
    "index_list",
    "index_xinfo",
    "foreign_key_list",
    "schema_version",
];
const FORBIDDEN_FUNCTIONS: [&str; 2] = ["load_extension", "fts3_tokenizer"];

/// Prepares a session for our statements and nothing else, and tells whether texts are UTF-16.
pub(super) fn prepare(connection: &mut Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(LOCK_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(MAX_STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    functions::register(connection, &Arc::new(true.into()))?;
    connection.create_collation(BY_CODE_POINT, str::cmp)?;
    let encoding: String = connection.query_row("PRAGMA encoding", [], |row| row.get(0))?;
    connection.authorizer(Some(allow))?;
    Ok(encoding != "UTF-8")
}

/// Allows reading and writing rows, but no change of the schema.
fn allow(asked: AuthContext<'_>) -> Authorization {
    let allowed = match asked.action {
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Recursive
        | AuthAction::Transaction { .. } => true,
        AuthAction::Insert { table_name }
        | AuthAction::Delete { table_name }
        | AuthAction::Update { table_name, .. } => {
            // SQLite itself writes the counter of generated keys.
            !table_name.starts_with("sqlite_") || table_name == "sqlite_sequence"
        }
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => {
            ALLOWED_PRAGMAS.contains(&pragma_name)
                && (pragma_name != "schema_version" || pragma_value.is_none())
        }
        AuthAction::Function { function_name } => {
            let is = |name: &&str| name.eq_ignore_ascii_case(function_name);
            !FORBIDDEN_FUNCTIONS.iter().any(is)
        }
        _ => false,
    };
    if allowed {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}
