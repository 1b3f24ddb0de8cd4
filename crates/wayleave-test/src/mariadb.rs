//! A private MariaDB.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};

use crate::running::{Running, of_this_binary, refused};
use crate::server::{Account, Database, Endpoint, StartError, Supervised, find, free_port, run};
use crate::tls::certificate;

const PACKAGE: &str = "mariadb-server";
const ACCOUNT: Account = Account {
    user: "mysql",
    package: PACKAGE,
};

/// A private MariaDB server: password logins, TLS with a self-signed certificate.
#[derive(Debug)]
pub struct MariadbServer {
    running: Running,
}

/// The server of this test binary, started on first use.
///
/// # Panics
/// When it cannot be started, naming the package to install.
pub async fn mariadb() -> &'static MariadbServer {
    static SERVER: OnceLock<Result<MariadbServer, StartError>> = OnceLock::new();
    of_this_binary(&SERVER, "MariaDB", MariadbServer::start).await
}

impl MariadbServer {
    /// Where it listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.running.endpoint
    }

    /// The DSN of a database by name.
    pub fn dsn(&self, database: &str) -> String {
        self.running.dsn(database)
    }

    /// A new database, empty but for what `sql` makes.
    pub async fn fresh_database(&self, name: &str, sql: &str) -> Result<Database, StartError> {
        let database = self.running.unused(name);
        let name = &database.name;
        let make = format!("CREATE DATABASE `{name}` CHARACTER SET utf8mb4");
        self.execute("mysql", &make).await?;
        self.execute(name, sql).await?;
        Ok(database)
    }

    /// Runs statements as the owner of everything.
    pub async fn execute(&self, database: &str, sql: &str) -> Result<(), StartError> {
        let failed = |error: mysql_async::Error| refused(database, error);
        let mut session = self.session(database).await.map_err(failed)?;
        session.query_drop(sql).await.map_err(failed)?;
        session.disconnect().await.map_err(failed)
    }

    /// One number, asked as the owner of everything; the last column of the first row.
    pub async fn number(&self, database: &str, sql: &str) -> Result<i64, StartError> {
        let failed = |error: mysql_async::Error| refused(database, error);
        let mut session = self.session(database).await.map_err(failed)?;
        let row: Option<mysql_async::Row> = session.query_first(sql).await.map_err(failed)?;
        session.disconnect().await.map_err(failed)?;
        row.and_then(|row| row.get::<String, _>(row.len().saturating_sub(1)))
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| refused(database, "the answer is not a number"))
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

    fn start() -> Result<Self, StartError> {
        ACCOUNT.in_folder("wayleave-mariadb-", Self::start_in)
    }

    fn start_in(folder: &Path) -> Result<Self, StartError> {
        let places = || [PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")];
        let install = find("mariadb-install-db", places(), PACKAGE)?;
        let server = find("mariadbd", places(), PACKAGE)?;
        let (certificate, key) = certificate(ACCOUNT, folder)?;
        let endpoint = Endpoint {
            port: free_port()?,
            user: "wayleave",
            password: "my-hunter2",
            certificate,
        };
        let data = format!("--datadir={}", folder.join("data").display());
        // A server clears its folder for temporary files when it starts, whoever they belong to.
        let temporary = format!("--tmpdir={}", folder.display());

        let mut prepare = ACCOUNT.command(install);
        prepare
            .args(["--no-defaults", "--skip-test-db", "--skip-log-bin"])
            .args([&data, &temporary]);
        run(prepare)?;
        let accounts = folder.join("accounts.sql");
        std::fs::write(
            &accounts,
            format!(
                "CREATE USER '{0}'@'%' IDENTIFIED BY '{1}';\nGRANT ALL ON *.* TO '{0}'@'%' WITH GRANT OPTION;\n",
                endpoint.user, endpoint.password,
            ),
        )?;

        let mut command = std::process::Command::new(server);
        command.args([
            "--no-defaults",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
        ]);
        command.args([
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=32M",
        ]);
        command.args(["--innodb-flush-method=nosync", "--skip-log-bin", &data]);
        command.arg(&temporary);
        command.arg(format!("--port={}", endpoint.port));
        for (option, path) in [
            ("socket", &folder.join("socket")),
            ("pid-file", &folder.join("pid")),
            ("init-file", &accounts),
            ("ssl-cert", &endpoint.certificate),
            ("ssl-key", &key),
        ] {
            command.arg(format!("--{option}={}", path.display()));
        }
        let process =
            Supervised::start(ACCOUNT, folder, "ready for connections", "KILL", &command)?;
        Ok(Self {
            running: Running::new("mysql", endpoint, process),
        })
    }
}
