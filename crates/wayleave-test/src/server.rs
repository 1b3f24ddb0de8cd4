//! A server process that lives exactly as long as the test binary.
//!
//! Knows processes, folders and users; must not know any database.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use thiserror::Error;

/// Why a private server could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// A program is not installed.
    #[error("`{program}` is not installed: run `apt-get install -y {package}`")]
    NotInstalled {
        /// The missing program.
        program: &'static str,
        /// The Debian package that holds it.
        package: &'static str,
    },
    /// The machine has no user to run the server as.
    #[error(
        "no user `{user}` to run the server as (it refuses root): run `apt-get install -y {package}`"
    )]
    NoUser {
        /// The user.
        user: &'static str,
        /// The Debian package that creates it.
        package: &'static str,
    },
    /// A program failed.
    #[error("`{program}` failed: {output}")]
    ProgramFailed {
        /// The program.
        program: String,
        /// Its output.
        output: String,
    },
    /// The server ended before it was ready.
    #[error("the server ended before it was ready: {log}")]
    NotReady {
        /// Its log.
        log: String,
    },
    /// A file, a port or a process could not be had from the machine.
    #[error("cannot prepare a server: {source}")]
    Machine {
        /// The cause.
        #[from]
        source: std::io::Error,
    },
    /// A statement failed while preparing a database.
    #[error("cannot prepare database `{database}`: {reason}")]
    Statement {
        /// The database.
        database: String,
        /// The server's message.
        reason: String,
    },
}

/// The address and the login of a private server. The password is a test's, not a secret.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// The superuser.
    pub user: &'static str,
    /// That user's password.
    pub password: &'static str,
    /// The server's certificate, for `localhost`; also its own authority.
    pub certificate: PathBuf,
}

/// A database of its own on a private server.
#[derive(Debug, Clone)]
pub struct Database {
    /// Its name.
    pub name: String,
    /// Its DSN, with the password.
    pub dsn: String,
}

/// The account a server runs as when the tests run as root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    pub(crate) user: &'static str,
    pub(crate) package: &'static str,
}

impl Account {
    /// A command that runs `program` as this account, in a process group of its own, so that a
    /// terminal's interrupt reaches the supervisor only through the end of its owner.
    pub(crate) fn command(self, program: impl AsRef<OsStr>) -> Command {
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args([
                "--reuid",
                self.user,
                "--regid",
                self.user,
                "--init-groups",
                "--",
            ]);
            command.arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir("/").process_group(0);
        command
    }

    /// Starts a server in a new folder that this account owns. The server's supervisor removes the
    /// folder; if none was started, it is removed here.
    pub(crate) fn in_folder<T>(
        self,
        prefix: &str,
        start: impl FnOnce(&Path) -> Result<T, StartError>,
    ) -> Result<T, StartError> {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))?;
        if rustix::process::geteuid().is_root() {
            let (uid, gid) = self.ids()?;
            chown(&folder, Some(uid), Some(gid))?;
        }
        let server = start(folder.path())?;
        let _supervised = folder.keep();
        Ok(server)
    }

    pub(crate) fn ids(self) -> Result<(u32, u32), StartError> {
        let missing = || StartError::NoUser {
            user: self.user,
            package: self.package,
        };
        let accounts = std::fs::read_to_string("/etc/passwd")?;
        let line = accounts
            .lines()
            .find(|line| line.split(':').next() == Some(self.user));
        let mut fields = line.ok_or_else(missing)?.split(':').skip(2);
        let mut number = || {
            fields
                .next()
                .and_then(|it| it.parse().ok())
                .ok_or_else(missing)
        };
        Ok((number()?, number()?))
    }
}

/// Runs a program to its end.
pub(crate) fn run(mut command: Command) -> Result<(), StartError> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(StartError::ProgramFailed {
        program: command.get_program().display().to_string(),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// The path of `program`, in the first of `folders` or of `PATH` that has it.
pub(crate) fn find(
    program: &'static str,
    folders: impl IntoIterator<Item = PathBuf>,
    package: &'static str,
) -> Result<PathBuf, StartError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders
        .into_iter()
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(program))
        .find(|it| it.is_file())
        .ok_or(StartError::NotInstalled { program, package })
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16, StartError> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?
        .local_addr()?
        .port())
}

/// A running server. It ends with this value, or with the process that owns it.
#[derive(Debug)]
pub(crate) struct SupervisedProcess {
    /// Held for its standard input: closing that stops the server.
    #[cfg_attr(not(test), expect(dead_code, reason = "held, not read"))]
    supervisor: Child,
}

impl SupervisedProcess {
    /// Starts `server` under the supervisor, and returns once its log has said `ready_text`.
    pub(crate) fn start(
        account: Account,
        folder: &Path,
        ready_text: &str,
        stop_signal: &str,
        server: &Command,
    ) -> Result<Self, StartError> {
        let mut supervisor = account
            .command("sh")
            .args(["-c", include_str!("supervise.sh"), "supervise"])
            .arg(folder)
            .args([ready_text, stop_signal])
            .arg(server.get_program())
            .args(server.get_args())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut word = String::new();
        if let Some(stdout) = supervisor.stdout.take() {
            BufReader::new(stdout).read_line(&mut word)?;
        }
        if word.trim() == "ready" {
            return Ok(Self { supervisor });
        }
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        drop(supervisor.stdin.take());
        supervisor.wait()?;
        Err(StartError::NotReady { log })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Account = Account {
        user: "daemon",
        package: "base-passwd",
    };

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_server_and_its_folder_go_when_the_owner_lets_go() {
        let script = "echo \"process $$\"; echo up; exec tail -f /dev/null";
        let (mut supervised, folder) = ANY
            .in_folder("wayleave-owner-", |folder| {
                let server = SupervisedProcess::start(ANY, folder, "up", "KILL", &shell(script))?;
                Ok((server, folder.to_owned()))
            })
            .unwrap();
        let log = std::fs::read_to_string(folder.join("log")).unwrap();
        let process = log.split_whitespace().nth(1).unwrap();
        let process = PathBuf::from("/proc").join(process);
        assert!(process.exists());
        // Closes the pipe like the kernel does for a killed process.
        drop(supervised.supervisor.stdin.take());
        supervised.supervisor.wait().unwrap();
        assert!(!folder.exists());
        assert!(!process.exists());
    }

    #[test]
    fn a_server_that_ends_at_once_is_an_error_with_its_log() {
        let started = ANY.in_folder("wayleave-owner-", |folder| {
            SupervisedProcess::start(ANY, folder, "up", "KILL", &shell("echo no room; exit 1"))
        });
        let error = started.unwrap_err();
        assert!(
            matches!(&error, StartError::NotReady { log } if log == "no room\n"),
            "{error}"
        );
    }
}
