//! Settings that answers depend on, applied to a session or to one transaction, whatever the
//! server, the database or the role are set to.
//!
//! An unshared session gets them at login, as startup options: these take precedence over the
//! role's settings, and a pooler cannot leave them on a session that it hands to others. A shared
//! session gets them anew for each transaction.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use wayleave_store::{Limits, StoreError};

/// Each setting with its value, and the error message where it is not in force.
const SETTINGS: [(&str, &str, &str); 14] = [
    (
        "default_transaction_read_only",
        "on",
        "the session could not be made read-only",
    ),
    (
        "default_transaction_isolation",
        "read committed",
        "the isolation level could not be set",
    ),
    (
        "default_transaction_deferrable",
        "off",
        "`default_transaction_deferrable` could not be turned off",
    ),
    ("TimeZone", "UTC", "`TimeZone` could not be set to UTC"),
    ("DateStyle", "ISO, YMD", "`DateStyle` could not be set"),
    (
        "IntervalStyle",
        "iso_8601",
        "`IntervalStyle` could not be set",
    ),
    ("bytea_output", "hex", "`bytea_output` could not be set"),
    (
        "extra_float_digits",
        "1",
        "`extra_float_digits` could not be set",
    ),
    (
        "standard_conforming_strings",
        "on",
        "`standard_conforming_strings` could not be turned on",
    ),
    (
        "row_security",
        "on",
        "`row_security` could not be turned on",
    ),
    (
        "transform_null_equals",
        "off",
        "`transform_null_equals` could not be turned off",
    ),
    ("array_nulls", "on", "`array_nulls` could not be turned on"),
    (
        "quote_all_identifiers",
        "off",
        "`quote_all_identifiers` could not be turned off",
    ),
    (
        "client_encoding",
        "UTF8",
        "`client_encoding` could not be set to UTF8",
    ),
];

/// The time limits that apply to every statement.
const TIMEOUTS: [&str; 3] = [
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
];

/// A custom setting that only our startup options give a value.
const MARK: &str = "wayleave.session";

/// Puts `pg_catalog` first, so that nothing in a schema can replace what our statements call, while
/// unqualified tables are still found where the role would find them. Everything here is still
/// fully qualified. An empty path leaves a trailing comma, which is trimmed.
const SEARCH_PATH: &str = "pg_catalog.set_config('search_path', pg_catalog.btrim(pg_catalog.concat(\
    'pg_catalog, ', pg_catalog.current_setting('search_path')), ', '), ";

/// Begins a transaction with the modes that reads need, whatever the session's defaults.
pub(super) const BEGIN: &str =
    "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY, NOT DEFERRABLE";
/// Begins a transaction that may write. To other serializable transactions, our checks and our
/// write are one step.
pub(super) const BEGIN_WRITE: &str =
    "BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE, NOT DEFERRABLE";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";

/// Why a session behind a statement-level pooler is refused.
pub(super) const POOLED_STATEMENTS: &str =
    "the pooler uses statement pooling; it must pool sessions or transactions";

/// Startup options, with a mark that shows whether they arrived.
pub(super) struct StartupOptions {
    pub(super) text: String,
    mark: String,
}

impl StartupOptions {
    pub(super) fn new(limits: Limits) -> Self {
        let mark = format!("{:016x}", RandomState::new().build_hasher().finish());
        let settings = SETTINGS.iter().map(|(name, value, _)| (*name, *value));
        let timeout = timeout_millis(limits.statement);
        let timeouts = TIMEOUTS.iter().map(|name| (*name, timeout.as_str()));
        let text: Vec<String> = settings
            .chain(timeouts)
            .chain([(MARK, mark.as_str())])
            // A space would end the option.
            .map(|(name, value)| format!("-c {name}={}", value.replace(' ', "\\ ")))
            .collect();
        let text = text.join(" ");
        Self { text, mark }
    }

    /// Whether this is the mark that the session should have.
    pub(super) fn is_mark(&self, reported: Option<&[u8]>) -> bool {
        reported == Some(self.mark.as_bytes())
    }
}

/// Queries the settings in force, and whether the startup options arrived.
pub(super) fn settings_query() -> String {
    format!(
        "SELECT pg_catalog.current_setting('server_encoding'), \
         pg_catalog.current_setting('{MARK}', true), {}",
        in_force()
    )
}

/// Sets the search path of an unshared session, which no startup option can.
pub(super) fn session_path() -> String {
    format!("SELECT {SEARCH_PATH} false)")
}

/// Sets the timeouts of an unshared session. Takes milliseconds.
pub(super) fn session_timeouts() -> String {
    let set = TIMEOUTS.map(|name| format!("pg_catalog.set_config('{name}', $1::text, false)"));
    format!("SELECT {}", set.join(", "))
}

/// Sets everything for the current transaction. Takes the timeout in milliseconds.
pub(super) fn for_transaction() -> String {
    let settings = SETTINGS.iter().map(|(name, value, _)| {
        // Local to the transaction: the next one on this session may belong to another client.
        format!("pg_catalog.set_config('{name}', '{value}', true)")
    });
    let timeouts = TIMEOUTS
        .iter()
        .map(|name| format!("pg_catalog.set_config('{name}', $1::text, true)"));
    let path = format!("{SEARCH_PATH} true)");
    let all: Vec<String> = settings.chain(timeouts).chain([path]).collect();
    format!("SELECT {}", all.join(", "))
}

/// Refuses a session whose settings, in the order of [`settings_query`], are not in force.
pub(super) fn check<'a>(
    reported: impl Iterator<Item = Option<&'a [u8]>>,
) -> Result<(), StoreError> {
    let mut reported = reported.skip(2);
    for (_, value, reason) in SETTINGS {
        if reported.next().flatten() != Some(value.as_bytes()) {
            return Err(StoreError::SessionRefused { reason });
        }
    }
    Ok(())
}

/// A statement timeout in PostgreSQL's unit.
pub(super) fn timeout_millis(limit: Duration) -> String {
    limit.as_millis().max(1).to_string()
}

fn in_force() -> String {
    let asked = SETTINGS.map(|(name, ..)| format!("pg_catalog.current_setting('{name}')"));
    asked.join(", ")
}
