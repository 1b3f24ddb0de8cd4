//! The operations of tests on a MySQL or MariaDB server.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};

use crate::running::{Running, refused};
use crate::server::{Database, Endpoint, StartError};

/// A private MySQL or MariaDB server.
#[derive(Debug)]
pub struct MysqlServer {
    running: Running,
}

/// A session that another client holds open.
#[derive(Debug)]
pub struct OpenSession {
    connection: Conn,
}

impl OpenSession {
    /// Checks that the server still answers it.
    pub async fn ping(&mut self) -> Result<(), StartError> {
        let answer = self.connection.ping().await;
        answer.map_err(|error| refused("", error))
    }
}

impl MysqlServer {
    pub(crate) fn new(running: Running) -> Self {
        Self { running }
    }

    /// The address it listens on.
    pub fn endpoint(&self) -> &Endpoint {
        &self.running.endpoint
    }

    /// The DSN of a database by name.
    pub fn dsn(&self, database: &str) -> String {
        self.running.dsn(database)
    }

    /// Creates a database with the contents that `sql` makes.
    pub async fn fresh_database(&self, name: &str, sql: &str) -> Result<Database, StartError> {
        let database = self.running.unused(name);
        let name = &database.name;
        let make = format!("CREATE DATABASE `{name}` CHARACTER SET utf8mb4");
        self.execute("mysql", &make).await?;
        self.execute(name, sql).await?;
        Ok(database)
    }

    /// Runs statements as the superuser.
    pub async fn execute(&self, database: &str, sql: &str) -> Result<(), StartError> {
        let failed = |error: mysql_async::Error| refused(database, error);
        let mut session = self.session(database).await.map_err(failed)?;
        session.query_drop(sql).await.map_err(failed)?;
        session.disconnect().await.map_err(failed)
    }

    /// Runs a query for one number as the superuser; returns the last column of the first row.
    pub async fn number(&self, database: &str, sql: &str) -> Result<i64, StartError> {
        let failed = |error: mysql_async::Error| refused(database, error);
        let mut session = self.session(database).await.map_err(failed)?;
        let row: Option<mysql_async::Row> = session.query_first(sql).await.map_err(failed)?;
        session.disconnect().await.map_err(failed)?;
        row.and_then(|row| row.get::<String, _>(row.len().saturating_sub(1)))
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| refused(database, "the answer is not a number"))
    }

    /// Opens a session that stays open, and returns it after its number on the server.
    pub async fn open_session(&self, database: &str) -> Result<(i64, OpenSession), StartError> {
        let failed = |error: mysql_async::Error| refused(database, error);
        let connection = self.session(database).await.map_err(failed)?;
        Ok((connection.id().into(), OpenSession { connection }))
    }

    async fn session(&self, database: &str) -> Result<Conn, mysql_async::Error> {
        let options = OptsBuilder::default()
            .ip_or_hostname("127.0.0.1")
            .tcp_port(self.running.endpoint.port)
            .user(Some(self.running.endpoint.user))
            .pass(Some(self.running.endpoint.password))
            .db_name(Some(database))
            .prefer_socket(false);
        Conn::new(options).await
    }
}
