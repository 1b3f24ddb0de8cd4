//! Pooled read sessions that can be cancelled from another connection.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::time::timeout;
use wayleave_store::{Limits, StoreError};

use super::connect::{self, Flavour, MysqlCatalogueSession, connect};
use super::error::store_error;
use crate::dsn::Server;

/// Maximum time for a cancel request.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

const TAKE_MARK: &str = "SELECT GET_LOCK(?, 0)";
const FIND_MARK: &str = "SELECT IS_USED_LOCK(?)";

/// A read-only session, kept between reads.
pub(crate) struct MysqlSession {
    pub(super) connection: Conn,
    /// The random name of a lock that this session holds, by which cancelling finds the session.
    /// Session numbers are small and each server counts its own, so behind an address shared by
    /// several servers the same number may belong to another client. `None` where the server
    /// refuses such locks.
    pub(super) mark: Option<Arc<str>>,
    pub(super) flavour: Flavour,
    /// The time limit of a statement.
    pub(super) limit: Duration,
}

impl MysqlSession {
    pub(super) async fn open(server: &Server, limits: Limits) -> Result<Self, StoreError> {
        let session = MysqlCatalogueSession::open(server, limits).await?;
        let (mut connection, flavour) = session.into_connection();
        let random = || RandomState::new().build_hasher().finish();
        let mark = format!("wayleave_{:016x}{:016x}", random(), random());
        let marking = connection.exec_first::<Option<u8>, _, _>(TAKE_MARK, (&mark,));
        let mark = match timeout(limits.connect, marking).await {
            Ok(Ok(taken)) => (taken.flatten() == Some(1)).then(|| mark.into()),
            // The server may forbid locks; then only the statement's own time limit ends it.
            Ok(Err(mysql_async::Error::Server(_))) => None,
            Ok(Err(error)) => {
                return Err(store_error(server, limits, "opening a session", &error));
            }
            Err(_) => {
                return Err(StoreError::Timeout {
                    doing: "connecting",
                    limit: limits.connect,
                });
            }
        };
        Ok(Self {
            connection,
            mark,
            flavour,
            limit: limits.statement,
        })
    }

    /// Sets a new time limit for each statement.
    pub(super) async fn limit_statements(
        &mut self,
        limit: Duration,
    ) -> Result<(), mysql_async::Error> {
        connect::limit(&mut self.connection, self.flavour, limit).await?;
        self.limit = limit;
        Ok(())
    }
}

/// Kills one of our sessions, and whatever it is running, from another session, if both reached the
/// same server.
pub(super) async fn cancel(server: &Server, limits: Limits, mark: &str) {
    let asking = async {
        let Ok(mut connection) = connect(server, limits).await else {
            return;
        };
        let holder = connection.exec_first::<Option<u64>, _, _>(FIND_MARK, (mark,));
        if let Ok(Some(Some(id))) = holder.await {
            // The server gave us this number; KILL takes no placeholder.
            let statement = format!("KILL CONNECTION {id}");
            #[expect(
                clippy::disallowed_methods,
                reason = "holds nothing but a number of the server's"
            )]
            let _ = connection.query_drop(statement).await;
        }
        let _ = connection.disconnect().await;
    };
    // On failure, the statement's own time limit ends it.
    let _ = timeout(CANCEL_TIMEOUT, asking).await;
}
