//! A server under test: a subprocess of this binary, with its CPU time and memory as the kernel
//! accounts for them. It does not know the server's protocol.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::wire::Ask;

/// The program that serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// `wayleave-mcp`, as the product serves it.
    Ours,
    /// The minimal server on rmcp.
    Bare,
}

impl Side {
    /// The subcommand that starts this server.
    pub(crate) fn subcommand(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Bare => "bare",
        }
    }
}

/// Printed by an HTTP server on stderr, before its address, once it accepts connections.
pub(crate) const LISTENING: &str = "listening on http://";

/// `/proc` counts CPU time in ticks of 1/100 s, whatever the kernel's timer frequency is.
const TICKS_PER_SECOND: u64 = 100;

/// A running server; killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    // Held open: an HTTP server exits when its stdin ends, even if this process is killed.
    _stdin: Option<ChildStdin>,
}

/// The client's ends of a stdio server's pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    /// Written by the client.
    pub(crate) to_server: ChildStdin,
    /// Read by the client.
    pub(crate) from_server: ChildStdout,
}

impl Server {
    /// Starts an HTTP server and waits until it prints its address.
    pub(crate) fn http(side: Side, ask: Ask) -> Result<(Self, SocketAddr)> {
        Self::listening(command(side, "--http", ask)?)
    }

    /// Starts an HTTP server and waits until it prints its address.
    pub(crate) fn listening(mut command: Command) -> Result<(Self, SocketAddr)> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting an HTTP server")?;
        let stdin = child.stdin.take();
        let stderr = child.stderr.take().context("a server has no stderr")?;
        let server = Self {
            child,
            _stdin: stdin,
        };
        let mut lines = BufReader::new(stderr);
        let mut line = String::new();
        loop {
            line.clear();
            if lines.read_line(&mut line)? == 0 {
                bail!("a server ended before it listened");
            }
            if let Some(address) = line.trim_end().strip_prefix(LISTENING) {
                let address = address.split('/').next().unwrap_or_default();
                let address = address.parse().context("where a server listens")?;
                // Drain stderr: a server that blocks on it would look slow.
                std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::stderr()));
                return Ok((server, address));
            }
            std::io::stderr().write_all(line.as_bytes())?;
        }
    }

    /// Starts a stdio server.
    pub(crate) fn stdio(side: Side, ask: Ask) -> Result<(Self, Pipes)> {
        let mut child = command(side, "--stdio", ask)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("starting a stdio server")?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let server = Self {
            child,
            _stdin: None,
        };
        let (to_server, from_server) = pipes.context("a stdio server has no pipes")?;
        Ok((
            server,
            Pipes {
                to_server,
                from_server,
            },
        ))
    }

    /// User and system time of the process, over all threads.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))
            .context("CPU time is read from Linux's /proc")?;
        cpu_of(&stat)
    }

    /// Resident memory, in KiB.
    pub(crate) fn resident_kib(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|rest| rest.split_whitespace().next());
        kib.context("`/proc` has no VmRSS")?
            .parse()
            .context("VmRSS is not a number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Exits when the parent has closed stdin.
pub(crate) fn exit_with_parent() {
    std::thread::spawn(|| {
        let mut sink = [0; 64];
        while matches!(std::io::stdin().read(&mut sink), Ok(1..)) {}
        std::process::exit(0);
    });
}

/// A command that runs this binary again.
pub(crate) fn this_binary() -> Result<Command> {
    let path = std::env::current_exe().context("the path of this binary")?;
    Ok(Command::new(path))
}

fn command(side: Side, transport: &str, ask: Ask) -> Result<Command> {
    let mut command = this_binary()?;
    command.arg(side.subcommand()).arg(transport);
    if let Ask::List { tools } = ask {
        command.arg("--tools").arg(tools.to_string());
    }
    Ok(command)
}

/// CPU time of this process over all threads, in nanoseconds.
pub(crate) fn own_cpu() -> Result<Duration> {
    let mut total = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        // A thread may end between being listed and being read.
        let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else {
            continue;
        };
        total += text
            .split_whitespace()
            .next()
            .and_then(|ran| ran.parse::<u64>().ok())
            .context("CPU time of a thread")?;
    }
    Ok(Duration::from_nanos(total))
}

fn cpu_of(stat: &str) -> Result<Duration> {
    // The second field is the program's name in parentheses, and may hold spaces.
    let (_, fields) = stat.rsplit_once(')').context("`/proc` stat has no name")?;
    let mut times = fields.split_whitespace().skip(11);
    let mut ticks = || -> Result<u64> { Ok(times.next().context("a short stat")?.parse()?) };
    let total = ticks()? + ticks()?;
    Ok(Duration::from_millis(total * 1000 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_user_and_system_time_whatever_the_program_is_called() {
        let stat = "41 (a ) b) S 1 41 41 0 -1 4194560 900 0 0 0 250 30 7 7 20 0 3 0 99 1 1";
        assert_eq!(cpu_of(stat).unwrap(), Duration::from_millis(2800));
    }
}
