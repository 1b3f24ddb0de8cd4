//! Sessions for reading: kept, and stopped from outside.

use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::time::timeout;
use wayleave_store::{Limits, StoreError};

use super::connect::Session;
use super::error::store_error;
use crate::dsn::Server;

/// How long the request to stop a statement may take.
const CANCEL: Duration = Duration::from_secs(5);

/// So that times, texts and quotes mean one thing, whatever the server is set to, and that long
/// texts are sorted by more than their first kilobyte.
const FORMS: [&str; 5] = [
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
    "SET NAMES utf8mb4",
    "SET SESSION max_sort_length = 16384",
    "SET SESSION group_concat_max_len = 1024",
];

/// A session that is kept between reads.
pub(crate) struct Kept {
    pub(super) connection: Conn,
}

impl Kept {
    pub(super) async fn open(server: &Server, limits: Limits) -> Result<Self, StoreError> {
        let session = Session::open(server, limits).await?;
        let mut connection = session.into_connection();
        let setting = async {
            for statement in FORMS {
                connection.exec_drop(statement, ()).await?;
            }
            Ok(())
        };
        match timeout(limits.connect, setting).await {
            Ok(Ok(())) => Ok(Self { connection }),
            Ok(Err(error)) => Err(store_error(server, limits, "opening a session", &error)),
            Err(_) => Err(StoreError::Timeout {
                doing: "connecting",
                limit: limits.connect,
            }),
        }
    }
}

/// Ends a session of ours from another one, and with it whatever it does.
pub(super) async fn cancel(server: &Server, limits: Limits, id: u32) {
    let asking = async {
        if let Ok(session) = Session::open(server, limits).await {
            let mut connection = session.into_connection();
            // A number the server gave us; the statement takes no placeholder.
            let statement = format!("KILL CONNECTION {id}");
            #[expect(
                clippy::disallowed_methods,
                reason = "holds nothing but a number of the server's"
            )]
            let _ = connection.query_drop(statement).await;
            let _ = connection.disconnect().await;
        }
    };
    // Nothing more can be done: the statement's own limit ends it.
    let _ = timeout(CANCEL, asking).await;
}
