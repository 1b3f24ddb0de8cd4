//! `wayleave top`: shows the calls of agents as they arrive.

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use wayleave_activity::ActivityFilter;
use wayleave_project::{Rendering, activity_log, render};

use crate::{failure::Failure, output::Output};

/// Deadline for the server to report its running calls.
const STATUS_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Length of the measured window, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    window: u64,
    /// Refresh interval, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    interval: u64,
    /// Print once and exit.
    #[arg(long)]
    once: bool,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open_to_read(project)?;
    let reader = activity_log::reader(&project);
    let is_live = !arguments.once && io::stdout().is_terminal();
    loop {
        let since = now_ms().saturating_sub(arguments.window.max(1) * 1_000);
        let filter = ActivityFilter {
            since_ms: Some(since),
            ..ActivityFilter::default()
        };
        let mut calls = Vec::new();
        let read = reader.each(&filter, |activity| calls.push(activity));
        read.map_err(|error| Failure::from_error(&error))?;
        let running = project.settings().telemetry.and_then(running_calls);
        let shown = render::activity::top(&calls, arguments.window.max(1), running.as_ref());
        if !is_live {
            return Ok(output.show(&shown));
        }
        redraw(&shown).map_err(|error| Failure::from_error(&error))?;
        tokio::time::sleep(Duration::from_secs(arguments.interval.max(1))).await;
    }
}

/// Clears the terminal, and prints the rendering.
fn redraw(shown: &Rendering) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "\x1b[2J\x1b[H{}", shown.text())?;
    out.flush()
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// The running calls, if a server answers at the address of `telemetry.listen`.
fn running_calls(address: SocketAddr) -> Option<Value> {
    let mut stream = TcpStream::connect_timeout(&address, STATUS_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(STATUS_TIMEOUT)).ok()?;
    let request = format!("GET /calls HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}
