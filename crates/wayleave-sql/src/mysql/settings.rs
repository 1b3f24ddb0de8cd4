//! Session settings that reads need, whatever the server's defaults, its `init_connect` or a proxy
//! make of a new session.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use wayleave_store::StoreError;

use super::connect::Flavour;

/// Ends any transaction that `init_connect` may have begun, and sets everything that answers depend
/// on. A transaction left open would freeze every later answer and hold locks against the
/// application, so none may begin implicitly or be chained to the end of another. A first, empty
/// transaction consumes settings made for the next transaction only. The right to write is dropped
/// last, when nothing else remains to be set.
const SETUP: &str = "ROLLBACK AND NO CHAIN NO RELEASE; \
    SET SESSION autocommit = 1, completion_type = 0; \
    START TRANSACTION READ ONLY; \
    ROLLBACK AND NO CHAIN NO RELEASE; \
    SET SESSION sql_select_limit = 18446744073709551615, sql_big_selects = 1, sql_auto_is_null = 0, \
      time_zone = '+00:00', sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', \
      max_sort_length = 16384, group_concat_max_len = 1024; \
    SET NAMES utf8mb4; \
    SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// The value a variable must have after [`SETUP`], and the error message where it does not.
struct Setting {
    variable: &'static str,
    value: &'static str,
    refusal: &'static str,
}

const fn setting(variable: &'static str, value: &'static str, refusal: &'static str) -> Setting {
    Setting {
        variable,
        value,
        refusal,
    }
}

/// Variables that have the same name in both engines.
const SETTINGS: [Setting; 12] = [
    setting("autocommit", "1", "`autocommit` could not be turned on"),
    setting(
        "completion_type",
        "NO_CHAIN",
        "`completion_type` could not be set to `NO_CHAIN`",
    ),
    setting(
        "sql_select_limit",
        "18446744073709551615",
        "`sql_select_limit` could not be set",
    ),
    setting(
        "sql_big_selects",
        "1",
        "`sql_big_selects` could not be turned on",
    ),
    setting(
        "sql_auto_is_null",
        "0",
        "`sql_auto_is_null` could not be turned off",
    ),
    setting("time_zone", "+00:00", "`time_zone` could not be set to UTC"),
    setting(
        "sql_mode",
        "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
        "`sql_mode` could not be set",
    ),
    setting(
        "max_sort_length",
        "16384",
        "`max_sort_length` could not be set",
    ),
    setting(
        "group_concat_max_len",
        "1024",
        "`group_concat_max_len` could not be set",
    ),
    setting(
        "character_set_client",
        "utf8mb4",
        "`character_set_client` could not be set",
    ),
    setting(
        "character_set_connection",
        "utf8mb4",
        "`character_set_connection` could not be set",
    ),
    setting(
        "character_set_results",
        "utf8mb4",
        "`character_set_results` could not be set",
    ),
];

/// Transaction variables, which the engines name differently.
const MYSQL_SETTINGS: [Setting; 2] = [
    setting("transaction_isolation", "REPEATABLE-READ", ISOLATION),
    setting("transaction_read_only", "1", READ_ONLY),
];
const MARIADB_SETTINGS: [Setting; 2] = [
    setting("tx_isolation", "REPEATABLE-READ", ISOLATION),
    setting("tx_read_only", "1", READ_ONLY),
];
const ISOLATION: &str = "the isolation level could not be set";
const READ_ONLY: &str = "the session could not be made read-only";

/// Applies the settings to a new session.
pub(super) async fn apply(connection: &mut Conn) -> Result<(), mysql_async::Error> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a constant; not all of it can be prepared"
    )]
    connection.query_drop(SETUP).await
}

/// Reads the settings back; `Ok(Err(_))` where a different value is in force.
pub(super) async fn check(
    connection: &mut Conn,
    flavour: Flavour,
) -> Result<Result<(), StoreError>, mysql_async::Error> {
    let own = match flavour {
        Flavour::Mysql => &MYSQL_SETTINGS,
        Flavour::Mariadb => &MARIADB_SETTINGS,
    };
    let settings = || SETTINGS.iter().chain(own);
    let variables: Vec<String> = settings()
        .map(|it| format!("CONCAT(@@session.{})", it.variable))
        .collect();
    let query = format!("SELECT {}", variables.join(", "));
    let row: Option<Row> = connection.exec_first(query, ()).await?;
    for (place, setting) in settings().enumerate() {
        let value = row.as_ref().and_then(|row| row.get_opt::<String, _>(place));
        if !matches!(value, Some(Ok(value)) if number(&value) == setting.value) {
            let reason = setting.refusal;
            return Ok(Err(StoreError::SessionRefused { reason }));
        }
    }
    Ok(Ok(()))
}

/// A variable's value as a number; MariaDB spells booleans as words.
fn number(value: &str) -> &str {
    match value {
        "ON" => "1",
        "OFF" => "0",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use wayleave_store::Limits;
    use wayleave_test::{MysqlServer, mariadb, mysql};

    use super::super::connect::connect;
    use super::super::dsn;
    use super::*;

    #[tokio::test]
    async fn a_session_that_is_not_as_it_was_set_is_refused_by_name() {
        refuses(mariadb().await, Flavour::Mariadb).await;
        if let Some(server) = mysql().await {
            refuses(server, Flavour::Mysql).await;
        }
    }

    #[expect(clippy::disallowed_methods, reason = "sets what must be noticed")]
    async fn refuses(server: &MysqlServer, flavour: Flavour) {
        let server = dsn::parse(&server.dsn("mysql")).unwrap();
        let mut connection = connect(&server, Limits::default()).await.unwrap();
        for (change, named) in [
            ("SET autocommit = 0", "`autocommit`"),
            ("SET completion_type = 1", "`completion_type`"),
            ("SET sql_select_limit = 7", "`sql_select_limit`"),
            ("SET sql_mode = 'ANSI_QUOTES'", "`sql_mode`"),
            ("SET NAMES latin1", "`character_set_client`"),
            ("SET SESSION TRANSACTION READ WRITE", "read-only"),
        ] {
            apply(&mut connection).await.unwrap();
            check(&mut connection, flavour).await.unwrap().unwrap();
            connection.query_drop(change).await.unwrap();
            let refused = check(&mut connection, flavour).await.unwrap().unwrap_err();
            assert!(refused.to_string().contains(named), "{change}: {refused}");
        }
    }
}
