//! Reads lines of bounded length from a pipe.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use crate::envelope::unparsed::outermost_id;

/// Longest line accepted, in bytes.
pub(crate) const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Size of the buffer between the pipe and a line, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// How reading a line ended.
pub(crate) enum LineEnd {
    /// The line is complete.
    Whole,
    /// The line is too long. It is skipped.
    TooLong {
        /// The id of its message, if it came early enough.
        id: Value,
    },
    /// The pipe is closed.
    End,
}

/// Reads lines.
pub(crate) struct LineReader<R> {
    read: BufReader<R>,
    /// Kept across calls: `next_line` may be dropped in the middle of a line.
    line: Vec<u8>,
    discarding: bool,
}

impl<R: AsyncRead + Send + Unpin> LineReader<R> {
    pub(crate) fn new(read: R) -> Self {
        Self {
            read: BufReader::with_capacity(BUFFER_BYTES, read),
            line: Vec::new(),
            discarding: false,
        }
    }

    /// Reads up to the end of a line. If dropped half-way, the next call continues there.
    pub(crate) async fn next_line(&mut self) -> io::Result<LineEnd> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                return Ok(LineEnd::End);
            }
            let (chunk, ended) = match memchr::memchr(b'\n', available) {
                Some(at) => (available.split_at(at).0, true),
                None => (available, false),
            };
            let consumed = chunk.len() + usize::from(ended);
            let too_long = !self.discarding && self.line.len() + chunk.len() > MAX_LINE_BYTES;
            // The part already read may contain the id for the answer.
            let refused = too_long.then(|| outermost_id(&self.line));
            if too_long {
                self.line = Vec::new();
            } else if !self.discarding {
                self.line.extend_from_slice(chunk);
            }
            self.read.consume(consumed);
            let was_discarding = self.discarding;
            self.discarding = (was_discarding || too_long) && !ended;
            if let Some(id) = refused {
                return Ok(LineEnd::TooLong { id });
            }
            if ended && !was_discarding {
                return Ok(LineEnd::Whole);
            }
        }
    }

    /// The line that was read.
    pub(crate) fn take_line(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.line)
    }

    /// Takes back the memory of a line for the next one.
    pub(crate) fn reuse(&mut self, line: Vec<u8>) {
        self.line = line;
        self.line.clear();
    }
}
