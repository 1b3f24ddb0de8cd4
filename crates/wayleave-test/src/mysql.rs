//! A private MySQL, from the programs that `scripts/test` fetches into the cache folder.
//!
//! They are newer than the machine, so they run with the C library and the loader shipped with
//! them.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Once, OnceLock};

use crate::mariadb::ACCOUNT;
use crate::mysql_client::MysqlServer;
use crate::running::{Running, of_this_binary};
use crate::server::{Endpoint, StartError, SupervisedProcess, free_port, run};
use crate::tls::certificate;

/// The MySQL server of this test binary, started on first use: password logins, TLS with a
/// self-signed certificate. `None`, with a note, if MySQL was not fetched.
///
/// # Panics
/// If it was fetched but cannot be started.
pub async fn mysql() -> Option<&'static MysqlServer> {
    static SERVER: OnceLock<Result<MysqlServer, StartError>> = OnceLock::new();
    fetched()?;
    Some(of_this_binary(&SERVER, "MySQL", start).await)
}

/// A MySQL server of the caller's own, for tests that change state shared by all of its sessions.
/// It ends when the value is dropped. `None`, with a note, if MySQL was not fetched.
pub async fn own_mysql() -> Option<Result<MysqlServer, StartError>> {
    fetched()?;
    let started = tokio::task::spawn_blocking(start).await;
    Some(started.unwrap_or_else(|error| Err(io::Error::other(error).into())))
}

/// The folder that `scripts/test` unpacks MySQL into, if it did.
fn fetched() -> Option<PathBuf> {
    static NOTE: Once = Once::new();
    let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let cache = folder("WAYLEAVE_CACHE")
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("wayleave")))
        .or_else(|| Some(folder("HOME")?.join(".cache/wayleave")))?;
    let programs = cache.join("mysql");
    if programs.join("bin/mysqld").is_file() {
        return Some(programs);
    }
    // Not `eprintln`, which a test that passes prints nowhere: a skipped test must be seen.
    NOTE.call_once(|| {
        let note = "\nskipped on MySQL: run `scripts/test --only test` once to fetch it";
        let _ = writeln!(io::stderr(), "{note}");
    });
    None
}

fn start() -> Result<MysqlServer, StartError> {
    ACCOUNT.in_folder("wayleave-mysql-", start_in)
}

fn start_in(folder: &Path) -> Result<MysqlServer, StartError> {
    let mut programs = fetched().ok_or(StartError::NotInstalled {
        program: "mysqld",
        package: "mysql-server-core",
    })?;
    if rustix::process::geteuid().is_root() {
        // The account may have no access to root's cache.
        let reachable = folder.join("programs");
        link_tree(&programs, &reachable)?;
        programs = reachable;
    }
    let (certificate, key) = certificate(ACCOUNT, folder)?;
    let endpoint = Endpoint {
        port: free_port()?,
        user: "wayleave",
        password: "my-hunter2",
        certificate,
    };
    let data = format!("--datadir={}", folder.join("data").display());
    let mut prepare = mysqld(&programs, &data)?;
    prepare.args(["--initialize-insecure", "--innodb-redo-log-capacity=8M"]);
    let mut as_account = ACCOUNT.command(prepare.get_program());
    as_account.args(prepare.get_args());
    run(as_account)?;
    let accounts = folder.join("accounts.sql");
    fs::write(
        &accounts,
        format!(
            "CREATE USER '{0}'@'%' IDENTIFIED BY '{1}';\nGRANT ALL ON *.* TO '{0}'@'%' WITH GRANT OPTION;\n",
            endpoint.user, endpoint.password,
        ),
    )?;
    let mut command = mysqld(&programs, &data)?;
    command.args(["--bind-address=127.0.0.1", "--skip-name-resolve"]);
    command.args(["--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"]);
    command.args(["--innodb-buffer-pool-size=32M", "--mysqlx=OFF"]);
    command.args(["--innodb-flush-method=nosync", "--secure-file-priv=NULL"]);
    command.arg("--innodb-redo-log-capacity=8M");
    command.arg(format!("--tmpdir={}", folder.display()));
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
    let ready = "mysqld: ready for connections";
    let process = SupervisedProcess::start(ACCOUNT, folder, ready, "KILL", &command)?;
    Ok(MysqlServer::new(Running::new("mysql", endpoint, process)))
}

/// The command that runs the server with the loader shipped with it.
fn mysqld(programs: &Path, data: &str) -> Result<Command, StartError> {
    let libraries = programs.join("lib");
    let is_loader = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("ld-linux")
    };
    let mut files = fs::read_dir(&libraries)?
        .flatten()
        .map(|entry| entry.path());
    let loader = files.find(is_loader).ok_or(StartError::NotInstalled {
        program: "ld-linux",
        package: "libc6",
    })?;
    let mut command = Command::new(loader);
    command.arg("--library-path").arg(&libraries);
    command.arg(programs.join("bin/mysqld"));
    command.args(["--no-defaults", data]);
    command.arg(format!("--basedir={}", programs.display()));
    let share = programs.join("share");
    command.arg(format!("--lc-messages-dir={}", share.display()));
    let charsets = share.join("charsets");
    command.arg(format!("--character-sets-dir={}", charsets.display()));
    Ok(command)
}

/// Mirrors a folder in a new one that [`ACCOUNT`] may remove, with hard links, or with copies
/// across disks.
fn link_tree(from: &Path, to: &Path) -> Result<(), StartError> {
    fs::create_dir(to)?;
    let (user, group) = ACCOUNT.ids()?;
    chown(to, Some(user), Some(group))?;
    for entry in fs::read_dir(from)? {
        let (path, to) = {
            let entry = entry?;
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            link_tree(&path, &to)?;
        } else if fs::hard_link(&path, &to).is_err() {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}
