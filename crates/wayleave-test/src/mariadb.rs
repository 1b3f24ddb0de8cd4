//! A private MariaDB.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::mysql_client::MysqlServer;
use crate::running::{Running, of_this_binary};
use crate::server::{Account, Endpoint, StartError, SupervisedProcess, find, free_port, run};
use crate::tls::certificate;

const PACKAGE: &str = "mariadb-server";
pub(crate) const ACCOUNT: Account = Account {
    user: "mysql",
    package: PACKAGE,
};

/// The MariaDB server of this test binary, started on first use: password logins, TLS with a
/// self-signed certificate.
///
/// # Panics
/// If it cannot be started, with the package to install.
pub async fn mariadb() -> &'static MysqlServer {
    static SERVER: OnceLock<Result<MysqlServer, StartError>> = OnceLock::new();
    of_this_binary(&SERVER, "MariaDB", start).await
}

/// A MariaDB server of the caller's own, for tests that change state shared by all of its sessions.
/// It ends when the value is dropped.
pub async fn own_mariadb() -> Result<MysqlServer, StartError> {
    let started = tokio::task::spawn_blocking(start).await;
    started.map_err(std::io::Error::other)?
}

fn start() -> Result<MysqlServer, StartError> {
    ACCOUNT.in_folder("wayleave-mariadb-", start_in)
}

fn start_in(folder: &Path) -> Result<MysqlServer, StartError> {
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
    // A server clears its folder for temporary files when it starts, including files of others.
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
        SupervisedProcess::start(ACCOUNT, folder, "ready for connections", "KILL", &command)?;
    Ok(MysqlServer::new(Running::new("mysql", endpoint, process)))
}
