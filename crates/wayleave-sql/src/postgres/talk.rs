//! What is said over a connection once it is logged in: a statement is prepared, run, and its rows
//! are looked at where they arrived.
//!
//! The driver's own way to its rows has a task, two queues and a small heap of ranges for every row
//! between the network and whoever asked. Here whoever asks reads the network. It knows messages,
//! and nothing of what statements mean.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use bytes::{Buf as _, BytesMut};
use postgres_protocol::IsNull as Null;
use postgres_protocol::message::{backend, frontend};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type};
use tokio_util::io::poll_read_buf;

use super::login::Stream;
use super::message::{DataRow, Message, framed, strange};

/// How many bytes are read at once: of most answers the whole.
const READ: usize = 16 * 1024;
/// A session at rest keeps no more room than for this.
const KEPT: usize = 256 * 1024;
/// Values in PostgreSQL's own form, not as text.
const BINARY: i16 = 1;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server said so.
    Said {
        /// The SQLSTATE.
        code: SqlState,
        /// In the server's words.
        message: String,
    },
    /// The connection broke, or what came over it is no PostgreSQL.
    Lost(io::Error),
}

impl Failure {
    /// An answer to something else.
    pub(super) fn strange() -> Self {
        Self::Lost(strange())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

/// A statement that the session has prepared.
#[derive(Debug)]
pub(super) struct Statement {
    name: String,
    /// What its columns hold.
    pub(super) columns: Vec<Type>,
}

/// A connection and what has been heard over it.
pub(super) struct Talk {
    stream: Stream,
    heard: BytesMut,
    /// How much of that has been looked at.
    seen: usize,
    /// Whether a message was so long that its room is not worth keeping.
    grown: bool,
    said: BytesMut,
    /// What the names of its statements begin with: behind a pooler that hands one session to many, no
    /// other's statement is taken for one of these.
    mark: u64,
    /// How many statements have been given a name.
    named: u64,
    /// Whether the last of the rows has been told.
    complete: bool,
    /// Whether everything that was asked has been answered.
    at_rest: bool,
}

impl Talk {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            heard: BytesMut::with_capacity(READ),
            seen: 0,
            grown: false,
            said: BytesMut::new(),
            mark: RandomState::new().build_hasher().finish(),
            named: 0,
            complete: true,
            at_rest: true,
        }
    }

    /// Has a statement prepared, to be run as often as one likes.
    pub(super) async fn prepare(&mut self, text: &str) -> Result<Arc<Statement>, Failure> {
        self.named += 1;
        let name = format!("w{:016x}_{}", self.mark, self.named);
        self.prepare_as(name, text).await
    }

    /// Has a statement prepared that has no name, and is gone with the next one.
    pub(super) async fn prepare_unnamed(&mut self, text: &str) -> Result<Arc<Statement>, Failure> {
        self.prepare_as(String::new(), text).await
    }

    async fn prepare_as(&mut self, name: String, text: &str) -> Result<Arc<Statement>, Failure> {
        self.at_rest = false;
        frontend::parse(&name, text, [], &mut self.said)?;
        frontend::describe(b'S', &name, &mut self.said)?;
        self.send().await?;
        let mut columns = None;
        while let Some(tag) = self.next().await? {
            match tag {
                backend::ROW_DESCRIPTION_TAG => columns = Some(self.message().columns()?),
                backend::NO_DATA_TAG => columns = Some(Vec::new()),
                backend::PARSE_COMPLETE_TAG
                | backend::PARAMETER_DESCRIPTION_TAG
                | backend::CLOSE_COMPLETE_TAG => {}
                _ => return Err(Failure::strange()),
            }
        }
        let columns = columns.ok_or_else(Failure::strange)?;
        Ok(Arc::new(Statement { name, columns }))
    }

    /// Lets a statement go, with the next thing that is said.
    pub(super) fn forget(&mut self, statement: &Statement) -> Result<(), Failure> {
        Ok(frontend::close(b'S', &statement.name, &mut self.said)?)
    }

    /// Runs a statement. Its rows are to be [taken](Self::row) to the end.
    pub(super) async fn run<T: ToSql>(
        &mut self,
        statement: &Statement,
        values: &[T],
    ) -> Result<(), Failure> {
        self.run_named(&statement.name, values).await
    }

    async fn run_named<T: ToSql>(&mut self, name: &str, values: &[T]) -> Result<(), Failure> {
        self.at_rest = false;
        let written = |value: &T, out: &mut BytesMut| {
            // Statements of ours name the type of every value; none is looked at.
            Ok(match value.to_sql(&Type::TEXT, out)? {
                IsNull::No => Null::No,
                IsNull::Yes => Null::Yes,
            })
        };
        let formats = values.iter().map(|_| BINARY);
        let bound = frontend::bind("", name, formats, values, written, [BINARY], &mut self.said);
        bound.map_err(|error| match error {
            frontend::BindError::Conversion(error) => io::Error::other(error),
            frontend::BindError::Serialization(error) => error,
        })?;
        frontend::execute("", 0, &mut self.said)?;
        self.complete = false;
        self.send().await
    }

    /// The next row; `None` after the last.
    pub(super) async fn row(&mut self) -> Result<Option<DataRow<'_>>, Failure> {
        loop {
            match self.next().await? {
                Some(backend::DATA_ROW_TAG) if !self.complete => break,
                Some(backend::COMMAND_COMPLETE_TAG) => self.complete = true,
                Some(
                    backend::PARSE_COMPLETE_TAG
                    | backend::BIND_COMPLETE_TAG
                    | backend::CLOSE_COMPLETE_TAG,
                ) => {}
                // Rows whose end was not told may be some of them only.
                None if self.complete => return Ok(None),
                _ => return Err(Failure::strange()),
            }
        }
        Ok(Some(DataRow::of(self.message().body)?))
    }

    /// All rows of one of our constant statements.
    pub(super) async fn query<T: ToSql>(
        &mut self,
        text: &str,
        values: &[T],
    ) -> Result<Vec<Vec<Option<Vec<u8>>>>, Failure> {
        // In one exchange: a statement without a name is whoever's was parsed last.
        frontend::parse("", text, [], &mut self.said)?;
        self.run_named("", values).await?;
        let mut rows = Vec::new();
        while let Some(mut row) = self.row().await? {
            let mut values = Vec::new();
            for _ in 0..row.columns() {
                values.push(row.value()?.map(<[u8]>::to_vec));
            }
            rows.push(values);
        }
        Ok(rows)
    }

    /// Whether it can be used: nothing is under way, and the server has not hung up, as far as has
    /// arrived here.
    pub(super) fn is_open(&mut self) -> bool {
        if !self.at_rest {
            return false;
        }
        let mut context = Context::from_waker(Waker::noop());
        self.heard.reserve(1);
        let stream = Pin::new(&mut self.stream);
        // Whatever has come, another session is sooner opened than that understood.
        poll_read_buf(stream, &mut context, &mut self.heard).is_pending()
    }

    /// Says goodbye.
    pub(super) async fn part(mut self) -> io::Result<()> {
        self.said.clear();
        frontend::terminate(&mut self.said);
        self.stream.write_all(&self.said).await?;
        self.stream.shutdown().await
    }

    /// Says what is to be said, and that an answer is expected.
    async fn send(&mut self) -> Result<(), Failure> {
        frontend::sync(&mut self.said);
        self.stream.write_all(&self.said).await?;
        self.stream.flush().await?;
        self.said.clear();
        if self.said.capacity() > KEPT {
            self.said = BytesMut::new();
        }
        Ok(())
    }

    /// The tag of the next message of an answer, if there is one; `None` once all is said. A failure
    /// is told when the server is done with it.
    #[inline]
    async fn next(&mut self) -> Result<Option<u8>, Failure> {
        loop {
            let tag = self.hear().await?;
            match tag {
                backend::READY_FOR_QUERY_TAG => {
                    self.rest();
                    return Ok(None);
                }
                backend::ERROR_RESPONSE_TAG => {
                    let (code, message) = self.message().failure()?;
                    return Err(self.give_up(Failure::Said { code, message }).await);
                }
                backend::NOTICE_RESPONSE_TAG
                | backend::PARAMETER_STATUS_TAG
                | backend::NOTIFICATION_RESPONSE_TAG => {}
                tag => return Ok(Some(tag)),
            }
        }
    }

    /// Waits until the server is ready again after a failure.
    async fn give_up(&mut self, failure: Failure) -> Failure {
        loop {
            match self.hear().await {
                Ok(backend::READY_FOR_QUERY_TAG) => {
                    self.rest();
                    return failure;
                }
                Ok(_) => {}
                // It hung up, and has said why.
                Err(_) => return failure,
            }
        }
    }

    fn rest(&mut self) {
        self.heard.advance(self.seen);
        self.seen = 0;
        self.at_rest = self.heard.is_empty();
        if std::mem::take(&mut self.grown) {
            self.heard = BytesMut::with_capacity(READ);
        }
    }

    /// Moves on to the next message, and waits until it is there.
    #[inline]
    async fn hear(&mut self) -> io::Result<u8> {
        self.heard.advance(self.seen);
        self.seen = 0;
        loop {
            if let Some((tag, length)) = framed(&self.heard)? {
                self.seen = length;
                return Ok(tag);
            }
            self.grown |= self.heard.len() > KEPT;
            self.heard.reserve(READ);
            if self.stream.read_buf(&mut self.heard).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The message that was heard last.
    fn message(&self) -> Message<'_> {
        Message::of(self.heard.get(..self.seen).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
