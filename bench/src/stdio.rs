//! The stdio load: one client that keeps a fixed number of requests in flight over a server's
//! pipes, with blocking reads and writes. It cannot deadlock: the requests in flight fit in the
//! server's pipe, so the client can always read.

use std::io::{Read as _, Write as _};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::measure::{Nanoseconds, nanoseconds};
use crate::process::Pipes;
use crate::wire::{self, Ask, Checker, Era};

/// A connection to a stdio server.
#[derive(Debug)]
pub(crate) struct StdioLoad {
    pipes: Pipes,
    ask: Ask,
    era: Era,
    depth: usize,
    checker: Checker,
    last_id: u64,
    in_flight: Vec<(u64, Instant)>,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

/// Bytes to read from the pipe at once: the default capacity of a pipe on Linux.
const READ: usize = 64 * 1024;

impl StdioLoad {
    /// Opens the connection; in the legacy era, with `initialize`.
    pub(crate) fn open(pipes: Pipes, ask: Ask, era: Era, depth: usize) -> Result<Self> {
        let checker = Checker::new(ask);
        let mut load = Self {
            pipes,
            ask,
            era,
            depth,
            checker,
            last_id: 0,
            in_flight: Vec::with_capacity(depth),
            outgoing: Vec::new(),
            incoming: Vec::with_capacity(READ),
        };
        if era == Era::Legacy {
            load.initialize().context("opening a session")?;
        }
        Ok(load)
    }

    fn initialize(&mut self) -> Result<()> {
        self.pipes
            .to_server
            .write_all(format!("{}\n", wire::INITIALIZE).as_bytes())?;
        while !self.incoming.ends_with(b"\n") {
            self.read_some()?;
        }
        wire::result_of(&self.incoming)?;
        self.incoming.clear();
        self.pipes
            .to_server
            .write_all(format!("{}\n", wire::INITIALIZED).as_bytes())?;
        Ok(())
    }

    /// Keeps `depth` requests in flight until `deadline`, waits for the last replies, and returns
    /// each latency.
    pub(crate) fn run(&mut self, deadline: Instant) -> Result<Vec<Nanoseconds>> {
        let mut latencies = Vec::new();
        let started = Instant::now();
        for _ in 0..self.depth {
            self.queue_request(started)?;
        }
        while !self.in_flight.is_empty() {
            self.pipes
                .to_server
                .write_all(&self.outgoing)
                .context("a server closed its stdin")?;
            self.outgoing.clear();
            self.read_some()?;
            self.take_replies(deadline, &mut latencies)?;
        }
        Ok(latencies)
    }

    fn queue_request(&mut self, now: Instant) -> Result<()> {
        self.last_id += 1;
        wire::write_request(&mut self.outgoing, self.ask, self.era, self.last_id)?;
        self.outgoing.push(b'\n');
        self.in_flight.push((self.last_id, now));
        Ok(())
    }

    /// Takes every complete reply, and queues a new request for each.
    fn take_replies(&mut self, deadline: Instant, out: &mut Vec<Nanoseconds>) -> Result<()> {
        let incoming = std::mem::take(&mut self.incoming);
        let mut rest = incoming.as_slice();
        let now = Instant::now();
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end + 1);
            rest = after;
            let id = self.checker.check(line.trim_ascii_end())?;
            let place = self.in_flight.iter().position(|&(sent, _)| sent == id);
            let (_, asked) = self
                .in_flight
                .swap_remove(place.context("an unasked reply")?);
            out.push(nanoseconds(now - asked));
            if now < deadline {
                self.queue_request(now)?;
            }
        }
        let left = rest.len();
        self.incoming = incoming;
        let taken = self.incoming.len() - left;
        self.incoming.drain(..taken);
        Ok(())
    }

    fn read_some(&mut self) -> Result<()> {
        let held = self.incoming.len();
        self.incoming.resize(held + READ, 0);
        let free = self.incoming.get_mut(held..).unwrap_or_default();
        let read = self
            .pipes
            .from_server
            .read(free)
            .context("reading a server's stdout")?;
        self.incoming.truncate(held + read);
        ensure!(read > 0, "a server closed its stdout");
        Ok(())
    }
}
