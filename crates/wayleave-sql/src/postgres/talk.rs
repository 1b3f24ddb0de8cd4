//! What is said over a connection once it is logged in: a statement is prepared, run, and its rows
//! are looked at where they arrived.
//!
//! The driver's own way to its rows has a task, two queues and a small heap of ranges for every row
//! between the network and whoever asked. Here whoever asks reads the network. It knows messages,
//! and nothing of what statements mean.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf as _, BytesMut};
use postgres_protocol::IsNull as Null;
use postgres_protocol::message::{backend, frontend};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_postgres::error::SqlState;
use tokio_postgres::fallible_iterator::FallibleIterator as _;
use tokio_postgres::types::{IsNull, ToSql, Type};
use tokio_util::io::poll_read_buf;

use super::login::Stream;

/// How many bytes are read at once: of most answers the whole.
const READ: usize = 16 * 1024;
/// A session at rest keeps no more room than this.
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
    said: BytesMut,
    /// How many statements have been given a name.
    named: u64,
    /// Whether everything that was asked has been answered.
    at_rest: bool,
}

impl Talk {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            heard: BytesMut::with_capacity(READ),
            seen: 0,
            said: BytesMut::new(),
            named: 0,
            at_rest: true,
        }
    }

    /// Has a statement prepared, to be run as often as one likes.
    pub(super) async fn prepare(&mut self, text: &str) -> Result<Arc<Statement>, Failure> {
        self.named += 1;
        let name = format!("s{}", self.named);
        self.prepare_as(name, text).await.map(Arc::new)
    }

    async fn prepare_as(&mut self, name: String, text: &str) -> Result<Statement, Failure> {
        frontend::parse(&name, text, [], &mut self.said)?;
        frontend::describe(b'S', &name, &mut self.said)?;
        self.send().await?;
        let mut columns = Vec::new();
        while let Some(message) = self.answer().await? {
            if message.tag == backend::ROW_DESCRIPTION_TAG {
                columns = message.columns()?;
            }
        }
        Ok(Statement { name, columns })
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
        let written = |value: &T, out: &mut BytesMut| {
            // Statements of ours name the type of every value; none is looked at.
            Ok(match value.to_sql(&Type::TEXT, out)? {
                IsNull::No => Null::No,
                IsNull::Yes => Null::Yes,
            })
        };
        let formats = values.iter().map(|_| BINARY);
        let bound = frontend::bind(
            "",
            &statement.name,
            formats,
            values,
            written,
            [BINARY],
            &mut self.said,
        );
        bound.map_err(|error| match error {
            frontend::BindError::Conversion(error) => io::Error::other(error),
            frontend::BindError::Serialization(error) => error,
        })?;
        frontend::execute("", 0, &mut self.said)?;
        self.send().await
    }

    /// The next row; `None` after the last.
    pub(super) async fn row(&mut self) -> Result<Option<DataRow<'_>>, Failure> {
        loop {
            // Not in one go: a row that is given out would be borrowed for every turn.
            let Some(tag) = self.next().await? else {
                return Ok(None);
            };
            if tag == backend::DATA_ROW_TAG {
                break;
            }
        }
        DataRow::of(self.message().body).map(Some)
    }

    /// All rows of one of our constant statements.
    pub(super) async fn query<T: ToSql>(
        &mut self,
        text: &str,
        values: &[T],
    ) -> Result<Vec<Vec<Option<Vec<u8>>>>, Failure> {
        // A statement without a name goes with the next one.
        let statement = self.prepare_as(String::new(), text).await?;
        self.run(&statement, values).await?;
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
        match poll_read_buf(stream, &mut context, &mut self.heard) {
            Poll::Pending => true,
            // Whatever it is, another session is sooner opened than this one understood.
            Poll::Ready(_) => false,
        }
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
        self.at_rest = false;
        self.stream.write_all(&self.said).await?;
        self.stream.flush().await?;
        self.said.clear();
        Ok(())
    }

    /// The next message of an answer, if there is one; `None` once all is said. A failure is told
    /// when the server is done with it.
    async fn answer(&mut self) -> Result<Option<Message<'_>>, Failure> {
        Ok(self.next().await?.map(|_| self.message()))
    }

    /// The same: its tag.
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
                    let failure = self.message().failure();
                    return Err(self.give_up(failure?).await);
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
        if self.heard.capacity() > KEPT {
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
            self.heard.reserve(READ);
            if self.stream.read_buf(&mut self.heard).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The message that was heard last.
    fn message(&self) -> Message<'_> {
        let whole = self.heard.get(..self.seen).unwrap_or_default();
        Message {
            tag: whole.first().copied().unwrap_or_default(),
            body: whole.get(HEAD..).unwrap_or_default(),
            whole,
        }
    }
}

/// A tag, and a length that counts itself.
const HEAD: usize = 5;

/// The tag and the length of the message that these bytes begin with, if all of it is there.
#[inline]
fn framed(bytes: &[u8]) -> io::Result<Option<(u8, usize)>> {
    let Some((head, _)) = bytes.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let [tag, length @ ..] = *head;
    let length = usize::try_from(i32::from_be_bytes(length)).map_err(|_| strange())? + 1;
    if length < HEAD {
        return Err(strange());
    }
    Ok((bytes.len() >= length).then_some((tag, length)))
}

fn strange() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the server's answer is no PostgreSQL message",
    )
}

/// A message from the server.
struct Message<'a> {
    tag: u8,
    body: &'a [u8],
    whole: &'a [u8],
}

impl Message<'_> {
    fn parsed(&self) -> io::Result<backend::Message> {
        backend::Message::parse(&mut BytesMut::from(self.whole))?.ok_or_else(strange)
    }

    fn columns(&self) -> io::Result<Vec<Type>> {
        let backend::Message::RowDescription(described) = self.parsed()? else {
            return Err(strange());
        };
        // What is not known here is read as it was sent.
        let held = |oid| Type::from_oid(oid).unwrap_or(Type::BYTEA);
        described
            .fields()
            .map(|field| Ok(held(field.type_oid())))
            .collect()
    }

    fn failure(&self) -> io::Result<Failure> {
        let backend::Message::ErrorResponse(said) = self.parsed()? else {
            return Err(strange());
        };
        let (mut code, mut message) = (SqlState::INTERNAL_ERROR, String::new());
        let mut fields = said.fields();
        while let Some(field) = fields.next()? {
            let value = String::from_utf8_lossy(field.value_bytes());
            match field.type_() {
                b'C' => code = SqlState::from_code(&value),
                b'M' => message = value.into_owned(),
                _ => {}
            }
        }
        Ok(Failure::Said { code, message })
    }
}

/// The values of a row, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct DataRow<'a> {
    columns: usize,
    rest: &'a [u8],
}

impl<'a> DataRow<'a> {
    fn of(body: &'a [u8]) -> Result<Self, Failure> {
        let (columns, rest) = body.split_first_chunk::<2>().ok_or_else(strange)?;
        Ok(Self {
            columns: u16::from_be_bytes(*columns).into(),
            rest,
        })
    }

    /// How many there are.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// How many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        self.rest.len()
    }

    /// The next value as it was sent; `None` for NULL.
    #[inline]
    pub(super) fn value(&mut self) -> io::Result<Option<&'a [u8]>> {
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or_else(strange)?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.rest = rest;
            return Ok(None);
        };
        let (value, rest) = rest.split_at_checked(length).ok_or_else(strange)?;
        self.rest = rest;
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};
    use tokio_util::either::Either;
    use wayleave_model::mapping::SourceKind;
    use wayleave_store::Limits;

    use super::super::login::login;
    use super::*;
    use crate::dsn::{Dsn, Target};

    async fn talk(name: &str) -> Talk {
        let server = wayleave_test::postgres().await;
        let database = server.fresh_database(name, "").await.unwrap();
        let dsn = Dsn::parse(SourceKind::Postgres, &database.dsn).unwrap();
        let Target::Postgres(server) = dsn.into_target() else {
            panic!("not a server")
        };
        let (stream, _) = login(&server, Limits::default()).await.unwrap();
        Talk::new(stream)
    }

    async fn number(talk: &mut Talk, text: &str) -> Result<i32, Failure> {
        let rows = talk.query::<String>(text, &[]).await?;
        let value = rows[0][0].as_deref().unwrap();
        Ok(i32::from_be_bytes(value.try_into().unwrap()))
    }

    #[tokio::test]
    async fn rows_come_whole_however_many_and_however_long() {
        let mut talk = talk("talk_rows").await;
        let text = "SELECT n, repeat('x', n), NULL::text FROM generate_series(1, $1::int4) n";
        let statement = talk.prepare(text).await.unwrap();
        assert_eq!(statement.columns, [Type::INT4, Type::TEXT, Type::TEXT]);
        for most in [0, 1, 3_000] {
            talk.run(&statement, &[most]).await.unwrap();
            let mut expected = 0;
            while let Some(mut row) = talk.row().await.unwrap() {
                expected += 1;
                let number = row.value().unwrap().unwrap();
                assert_eq!(number, i32::to_be_bytes(expected));
                let text = row.value().unwrap().unwrap();
                assert_eq!(text.len(), usize::try_from(expected).unwrap());
                assert_eq!((row.value().unwrap(), row.bytes()), (None, 0));
            }
            assert_eq!(expected, most);
            assert!(talk.is_open());
        }
        assert!(talk.heard.capacity() <= KEPT);
    }

    #[tokio::test]
    async fn a_failure_is_told_in_the_servers_words_and_the_talk_goes_on() {
        let mut talk = talk("talk_failure").await;
        for text in [
            "SELECT nothing",
            "SELECT 1 / (n - 3) FROM generate_series(1, 9) n",
        ] {
            let Failure::Said { code, message } = number(&mut talk, text).await.unwrap_err() else {
                panic!("not said")
            };
            let expected = match code.code() {
                "42703" => "column \"nothing\" does not exist",
                _ => "division by zero",
            };
            assert_eq!(message, expected);
            assert!(talk.is_open());
            assert_eq!(number(&mut talk, "SELECT 7").await.unwrap(), 7);
        }
    }

    #[tokio::test]
    async fn what_is_said_beside_an_answer_is_no_part_of_it() {
        let mut talk = talk("talk_aside").await;
        let noisy = "CREATE FUNCTION noisy(n int4) RETURNS int4 LANGUAGE plpgsql AS \
            'BEGIN RAISE NOTICE ''%'', n; PERFORM set_config(''application_name'', n::text, false); \
            RETURN n; END'";
        talk.query::<String>(noisy, &[]).await.unwrap();
        let rows = talk
            .query::<String>("SELECT noisy(n) FROM generate_series(1, 100) n", &[])
            .await;
        assert_eq!(rows.unwrap().len(), 100);
        assert!(talk.is_open());
    }

    #[tokio::test]
    async fn a_statement_that_is_let_go_is_gone() {
        let mut talk = talk("talk_forget").await;
        let statement = talk.prepare("SELECT 1").await.unwrap();
        talk.forget(&statement).unwrap();
        let kept = "SELECT count(*)::int4 FROM pg_prepared_statements WHERE name <> ''";
        assert_eq!(number(&mut talk, kept).await.unwrap(), 0);
        assert!(talk.run::<String>(&statement, &[]).await.is_ok());
        let Err(Failure::Said { code, .. }) = talk.row().await else {
            panic!("still there")
        };
        assert_eq!(code, SqlState::INVALID_SQL_STATEMENT_NAME);
    }

    #[tokio::test]
    async fn a_talk_at_rest_learns_that_the_server_hung_up_and_one_under_way_is_not_used() {
        let (mut one, mut other) = (talk("talk_rest").await, talk("talk_rest_other").await);
        let backend = number(&mut one, "SELECT pg_backend_pid()").await.unwrap();
        assert!(one.is_open());
        let end = format!("SELECT pg_terminate_backend({backend}, 10000)::int4");
        assert_eq!(number(&mut other, &end).await.unwrap(), 1);
        // What has arrived is seen once the runtime has looked at its sockets.
        assert_eq!(number(&mut other, "SELECT 1").await.unwrap(), 1);
        assert!(!one.is_open());
        let statement = other.prepare("SELECT generate_series(1, 9)").await.unwrap();
        other.run::<String>(&statement, &[]).await.unwrap();
        assert!(!other.is_open());
    }

    /// What a talk makes of a server that answers everything with these bytes and hangs up.
    async fn answered(bytes: &'static [u8]) -> Result<usize, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = BytesMut::new();
            stream.read_buf(&mut asked).await.unwrap();
            stream.write_all(bytes).await.unwrap();
        });
        let stream = TcpStream::connect(address).await.unwrap();
        let mut talk = Talk::new(Either::Left(Either::Left(stream)));
        let statement = Statement {
            name: String::new(),
            columns: vec![Type::TEXT],
        };
        let answer = async {
            talk.run::<String>(&statement, &[]).await?;
            let mut rows = 0;
            while let Some(mut row) = talk.row().await? {
                for _ in 0..row.columns() {
                    row.value()?;
                }
                rows += 1;
            }
            Ok(rows)
        };
        let answer = answer.await;
        server.await.unwrap();
        answer
    }

    #[tokio::test]
    async fn what_is_no_message_or_not_whole_is_no_answer() {
        const ROW: &[u8] = b"2\0\0\0\x04D\0\0\0\x0c\0\x01\0\0\0\x02abZ\0\0\0\x05I";
        assert_eq!(answered(ROW).await.unwrap(), 1);
        for odd in [
            // Nothing, and less than all.
            &b""[..],
            b"D\0\0\0",
            b"D\0\0\0\x0c\0\x01\0\0\0\x02ab",
            // Lengths that cannot be.
            b"D\0\0\0\x03Z\0\0\0\x05I",
            b"D\xff\xff\xff\xffZ\0\0\0\x05I",
            b"D\x7f\xff\xff\xffZ\0\0\0\x05I",
            // Rows that say they hold more than they do.
            b"D\0\0\0\x05\0Z\0\0\0\x05I",
            b"D\0\0\0\x0c\0\x01\0\0\0\x03abZ\0\0\0\x05I",
            b"D\0\0\0\x0c\0\x02\0\0\0\x02abZ\0\0\0\x05I",
            // A failure that is none.
            b"E\0\0\0\x05XZ\0\0\0\x05I",
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
        ] {
            let answer = answered(odd).await;
            assert!(
                matches!(answer, Err(Failure::Lost(_))),
                "{odd:?}: {answer:?}"
            );
        }
    }
}
